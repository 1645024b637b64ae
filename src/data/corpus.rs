//! A tokenised corpus on disk: written once by the `corpus` node, then memory-mapped.
//!
//! Files: `train.tokens` and `holdout.tokens` (little-endian u16, u32 above 65,536 token types), `train.documents` and `holdout.documents`
//! (little-endian u32: tokens of each document, boundary included), `corpus.json` (a [`Header`]).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::documents::{self, DocumentsError};
use super::tokenize::{Encoder, stretches};
use crate::study::Data;

/// Why a corpus cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// Its text.
    #[error(transparent)]
    Documents(#[from] DocumentsError),
    /// Its tokenizer cannot be used.
    #[error("the tokenizer `{}`: {reason}", path.display())]
    Tokenizer {
        /// Its file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
    /// Its tokenizer gives up on a text.
    #[error("the tokenizer refuses a text: {0}")]
    Encoding(String),
    /// The disk.
    #[error("{}: {source}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The texts are not those that were planned.
    #[error("the text of `{0}` has changed since the plan was made; plan again")]
    Changed(String),
    /// A file that is not what the header says.
    #[error("`{}` is damaged: {reason}", path.display())]
    Damaged {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// `corpus.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Token types.
    pub vocabulary: usize,
    /// The token that ends a document.
    pub boundary: u32,
    /// Tokens of the training part.
    pub train_tokens: u64,
    /// Tokens of the holdout.
    pub holdout_tokens: u64,
}

impl Header {
    /// Bytes of one token on disk.
    fn token_bytes(&self) -> usize {
        if self.vocabulary <= 1 << 16 { 2 } else { 4 }
    }
}

/// The two parts of a corpus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// What arms train on.
    Train,
    /// What no arm trains on.
    Holdout,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Holdout => "holdout",
        }
    }
}

/// Documents of both parts as text, in the order of the corpus: (training, holdout).
pub fn parts(data: &Data, folder: &Path) -> Result<(Vec<String>, Vec<String>), CorpusError> {
    let all = documents::read(data, folder)?;
    let mut held = documents::holdout(&all, data.holdout)?.into_iter().peekable();
    let (mut train, mut holdout) = (Vec::new(), Vec::new());
    for (at, document) in all.into_iter().enumerate() {
        if held.next_if_eq(&at).is_some() { holdout.push(document) } else { train.push(document) }
    }
    Ok((train, holdout))
}

/// A hash of the documents of both parts and of the tokenizer: no path, no locale, no thread count.
pub fn content(encoder: &Encoder, train: &[String], holdout: &[String]) -> String {
    let mut hasher = blake3::Hasher::new_derive_key("xrun 2026 corpus content v1");
    encoder.identify(&mut hasher);
    for part in [train, holdout] {
        hasher.update(&(part.len() as u64).to_le_bytes());
        for document in part {
            hasher.update(&(document.len() as u64).to_le_bytes()).update(document.as_bytes());
        }
    }
    hasher.finalize().to_hex().to_string()
}

/// Reads, splits and tokenises the text of `data` and writes the corpus into the folder `into`; `folder` is that of the `.exp` file. Texts whose
/// [`content`] is not the one `planned` are refused. `go_on` hears now and then how many documents of how many are done, and may end it:
/// then there is no corpus.
pub fn write(
    data: &Data,
    planned: Option<&str>,
    folder: &Path,
    into: &Path,
    go_on: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Option<Header>, CorpusError> {
    let encoder = Encoder::open(&data.tokenizer, folder)?;
    let (train, holdout) = parts(data, folder)?;
    if planned.is_some_and(|planned| content(&encoder, &train, &holdout) != planned) {
        return Err(CorpusError::Changed(data.name.clone()));
    }
    let mut header =
        Header { vocabulary: encoder.vocabulary(), boundary: encoder.boundary(), train_tokens: 0, holdout_tokens: 0 };
    let all = (train.len() + holdout.len()) as u64;
    let written = write_part(&encoder, &train, &header, Part::Train, into, &mut |done| go_on(done, all))?;
    let Some(tokens) = written else { return Ok(None) };
    header.train_tokens = tokens;
    let before = train.len() as u64;
    let written = write_part(&encoder, &holdout, &header, Part::Holdout, into, &mut |done| go_on(before + done, all))?;
    let Some(tokens) = written else { return Ok(None) };
    header.holdout_tokens = tokens;
    let path = into.join("corpus.json");
    let text = serde_json::to_vec_pretty(&header).map_err(|error| io(&path)(error.into()))?;
    std::fs::write(&path, text).map_err(io(&path))?;
    Ok(Some(header))
}

fn write_part(
    encoder: &Encoder,
    documents: &[String],
    header: &Header,
    part: Part,
    into: &Path,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Option<u64>, CorpusError> {
    let tokens_path = into.join(format!("{}.tokens", part.name()));
    let lengths_path = into.join(format!("{}.documents", part.name()));
    let mut tokens = BufWriter::new(File::create(&tokens_path).map_err(io(&tokens_path))?);
    let mut lengths = BufWriter::new(File::create(&lengths_path).map_err(io(&lengths_path))?);
    let (mut total, mut done) = (0, 0);
    for some in stretches(documents) {
        if !go_on(done) {
            return Ok(None);
        }
        for document in encoder.encode(some)? {
            total += document.len() as u64;
            lengths.write_all(&(document.len() as u32).to_le_bytes()).map_err(io(&lengths_path))?;
            for token in document {
                tokens.write_all(&token.to_le_bytes()[..header.token_bytes()]).map_err(io(&tokens_path))?;
            }
        }
        done += some.len() as u64;
    }
    tokens.flush().map_err(io(&tokens_path))?;
    lengths.flush().map_err(io(&lengths_path))?;
    Ok(Some(total))
}

fn io(path: &Path) -> impl Fn(std::io::Error) -> CorpusError + '_ {
    |source| CorpusError::Io { path: path.into(), source }
}

/// A corpus that has been written.
#[derive(Debug)]
pub struct Corpus {
    /// What it holds.
    pub header: Header,
    train: PartMap,
    holdout: PartMap,
}

#[derive(Debug)]
struct PartMap {
    tokens: Option<Mmap>,
    documents: Vec<u32>,
}

impl Corpus {
    /// Maps the corpus in `folder`; sizes are checked against the header before anything is read.
    pub fn open(folder: &Path) -> Result<Self, CorpusError> {
        let path = folder.join("corpus.json");
        let text = std::fs::read(&path).map_err(io(&path))?;
        let header: Header = serde_json::from_slice(&text)
            .map_err(|error| CorpusError::Damaged { path: path.clone(), reason: error.to_string() })?;
        let train = PartMap::open(folder, Part::Train, &header, header.train_tokens)?;
        let holdout = PartMap::open(folder, Part::Holdout, &header, header.holdout_tokens)?;
        Ok(Self { header, train, holdout })
    }
    /// Tokens of each document of a part, boundary included.
    pub fn documents(&self, part: Part) -> &[u32] {
        &self.part(part).documents
    }
    /// A token by its place in a part.
    pub fn token(&self, part: Part, at: u64) -> u32 {
        let Some(map) = &self.part(part).tokens else { return 0 };
        let width = self.header.token_bytes();
        let start = at as usize * width;
        let mut bytes = [0; 4];
        bytes[..width].copy_from_slice(&map[start..start + width]);
        u32::from_le_bytes(bytes)
    }
    fn part(&self, part: Part) -> &PartMap {
        match part {
            Part::Train => &self.train,
            Part::Holdout => &self.holdout,
        }
    }
}

impl PartMap {
    fn open(folder: &Path, part: Part, header: &Header, tokens: u64) -> Result<Self, CorpusError> {
        let path = folder.join(format!("{}.documents", part.name()));
        let bytes = std::fs::read(&path).map_err(io(&path))?;
        let documents: Vec<u32> =
            bytes.chunks_exact(4).map(|chunk| u32::from_le_bytes([chunk[0], chunk[1], chunk[2], chunk[3]])).collect();
        let sum: u64 = documents.iter().map(|length| u64::from(*length)).sum();
        if sum != tokens {
            return Err(CorpusError::Damaged { path, reason: format!("documents of {sum} tokens, the header says {tokens}") });
        }
        let path = folder.join(format!("{}.tokens", part.name()));
        let file = File::open(&path).map_err(io(&path))?;
        let length = file.metadata().map_err(io(&path))?.len();
        let expected = tokens * header.token_bytes() as u64;
        if length != expected {
            return Err(CorpusError::Damaged { path, reason: format!("{length} bytes, expected {expected}") });
        }
        let map = match length {
            0 => None,
            // SAFETY: the file belongs to a finished node of the store, which xrun never writes again; whoever truncates it
            // from outside while it is read gets a bus error, as with any mapped file.
            _ => Some(unsafe { Mmap::map(&file) }.map_err(io(&path))?),
        };
        Ok(Self { tokens: map, documents })
    }
}
