//! A tokenised corpus on disk: written once by the `corpus` node, then memory-mapped.
//!
//! Files: `train.tokens` and `holdout.tokens` (little-endian u16, u32 above 65,536 token types), `train.documents` and `holdout.documents`
//! (little-endian u32: tokens of each document, boundary included), `corpus.json` (a [`Header`]).

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use memmap2::Mmap;
use serde::{Deserialize, Serialize};

use super::documents::{self, Content, DocumentsError, HeldOut};
use super::tokenize::{Encoder, tokenise};
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
    /// A tokenizer cannot be trained on it.
    #[error("the tokenizer of `{data}` cannot be trained: {reason}")]
    Training {
        /// Whose.
        data: String,
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
    /// Whoever was told how far it is has ended it.
    #[error("it was stopped")]
    Stopped,
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

/// What a first look at the text of a `data` declaration finds.
#[derive(Debug)]
pub(super) struct Survey {
    /// A hash of all documents in their order and of the tokenizer: no path, no locale, no thread count, nor how files are packed.
    pub(super) content: String,
    held: HeldOut,
}

impl Survey {
    /// Whether each document, one after the other, is held out.
    pub(super) fn walk(&self) -> impl FnMut() -> bool + '_ {
        self.held.walk()
    }
}

/// Reads all documents once. `go_on` hears how much was read, of [`documents::size`], and may end it with [`CorpusError::Stopped`].
pub(super) fn survey(
    data: &Data,
    folder: &Path,
    encoder: &Encoder,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Survey, CorpusError> {
    let mut all = blake3::Hasher::new_derive_key("xrun 2026 corpus content v2");
    encoder.identify(&mut all);
    let (mut ranks, mut document) = (Vec::new(), blake3::Hasher::new());
    documents::each(data, folder, encoder.spelling(), &mut |part| {
        match part.content {
            Content::Text(text) => document.update(text.as_bytes()),
            Content::Tokens(tokens) => {
                let bytes: Vec<u8> = tokens.iter().flat_map(|token| token.to_le_bytes()).collect();
                document.update(b"tokens").update(&bytes)
            }
        };
        if part.last {
            let hash = document.finalize();
            document.reset();
            all.update(hash.as_bytes());
            let [a, b, c, d, e, f, g, h, ..] = *hash.as_bytes();
            ranks.push(u64::from_be_bytes([a, b, c, d, e, f, g, h]));
        }
        if go_on(part.read) { Ok(()) } else { Err(CorpusError::Stopped) }
    })?;
    if ranks.is_empty() {
        return Err(DocumentsError::TooSmall("the corpus has no document".into()).into());
    }
    Ok(Survey { content: all.finalize().to_hex().to_string(), held: HeldOut::of(ranks, data.holdout)? })
}

/// How many tokens each document has, boundary included: of the training part, and of the holdout.
pub(super) fn lengths(data: &Data, folder: &Path, encoder: &Encoder, survey: &Survey) -> Result<[Vec<u32>; 2], CorpusError> {
    let (mut train, mut holdout, mut sum) = (Vec::new(), Vec::with_capacity(survey.held.count()), 0);
    let mut is_held = survey.walk();
    tokenise(data, folder, encoder, &mut |tokens| {
        sum += tokens.ids.len() as u64;
        if tokens.last {
            let part = if is_held() { &mut holdout } else { &mut train };
            part.push(countable(std::mem::take(&mut sum))?);
        }
        Ok(())
    })?;
    Ok([train, holdout])
}

/// The length of a document, as it is kept.
fn countable(tokens: u64) -> Result<u32, CorpusError> {
    u32::try_from(tokens).map_err(|_| CorpusError::Encoding(format!("a document of {tokens} tokens")))
}

/// How far the writing of a corpus is.
#[derive(Debug, Clone, Copy)]
pub struct Written {
    /// Bytes of text read so far, each of them twice in all.
    pub done: u64,
    /// Bytes to be read.
    pub total: u64,
    /// Tokens written since this was told last.
    pub tokens: u64,
}

/// Reads, splits and tokenises the text of `data` and writes the corpus into the folder `into`; `folder` is that of the `.exp` file. Texts
/// that are not those that were `planned` ([`crate::data::facts::CorpusFacts::content`]) are refused. `trained` is the tokenizer where it was trained on the text. `go_on` hears now and then how far it is, and may end it:
/// then there is no corpus. What is in memory does not grow with the text, but for some bytes a document.
pub fn write(
    data: &Data,
    planned: Option<&str>,
    folder: &Path,
    trained: Option<&Path>,
    into: &Path,
    go_on: &mut dyn FnMut(Written) -> bool,
) -> Result<Option<Header>, CorpusError> {
    match write_whole(data, planned, folder, trained, into, go_on) {
        Err(CorpusError::Stopped) => Ok(None),
        result => result.map(Some),
    }
}

fn write_whole(
    data: &Data,
    planned: Option<&str>,
    folder: &Path,
    trained: Option<&Path>,
    into: &Path,
    go_on: &mut dyn FnMut(Written) -> bool,
) -> Result<Header, CorpusError> {
    let encoder = Encoder::open(&data.tokenizer, folder, trained)?;
    let size = documents::size(data, folder)?;
    let total = 2 * size;
    let mut told = 0;
    let survey = survey(data, folder, &encoder, &mut |read| {
        let due = read - told >= OFTEN;
        told = if due { read } else { told };
        !due || go_on(Written { done: read, total, tokens: 0 })
    })?;
    if planned.is_some_and(|planned| survey.content != planned) {
        return Err(CorpusError::Changed(data.name.clone()));
    }
    let mut header =
        Header { vocabulary: encoder.vocabulary(), boundary: encoder.boundary(), train_tokens: 0, holdout_tokens: 0 };
    let mut train = Writer::new(into, Part::Train, &header)?;
    let mut holdout = Writer::new(into, Part::Holdout, &header)?;
    let (mut is_held, mut held, mut tokens_untold) = (survey.walk(), None, 0);
    tokenise(data, folder, &encoder, &mut |tokens| {
        let part = if *held.get_or_insert_with(&mut is_held) { &mut holdout } else { &mut train };
        part.put(tokens.ids)?;
        if tokens.last {
            part.end()?;
            held = None;
        }
        tokens_untold += tokens.ids.len() as u64;
        if tokens_untold < OFTEN {
            return Ok(());
        }
        let tokens_told = std::mem::take(&mut tokens_untold);
        let goes_on = go_on(Written { done: size + tokens.read, total, tokens: tokens_told });
        if goes_on { Ok(()) } else { Err(CorpusError::Stopped) }
    })?;
    if !go_on(Written { done: total, total, tokens: tokens_untold }) {
        return Err(CorpusError::Stopped);
    }
    (header.train_tokens, header.holdout_tokens) = (train.finish()?, holdout.finish()?);
    let path = into.join("corpus.json");
    let text = serde_json::to_vec_pretty(&header).map_err(|error| io(&path)(error.into()))?;
    std::fs::write(&path, text).map_err(io(&path))?;
    Ok(header)
}

/// Bytes read, or tokens written, after which it is told how far a corpus is: some of them a second.
pub(super) const OFTEN: u64 = 1 << 18;

/// Writes one part of a corpus.
struct Writer {
    tokens: BufWriter<File>,
    tokens_path: PathBuf,
    lengths: BufWriter<File>,
    lengths_path: PathBuf,
    token_bytes: usize,
    /// Tokens in all, and of the document so far.
    total: u64,
    document: u64,
}

impl Writer {
    fn new(into: &Path, part: Part, header: &Header) -> Result<Self, CorpusError> {
        let tokens_path = into.join(format!("{}.tokens", part.name()));
        let lengths_path = into.join(format!("{}.documents", part.name()));
        let tokens = BufWriter::new(File::create(&tokens_path).map_err(io(&tokens_path))?);
        let lengths = BufWriter::new(File::create(&lengths_path).map_err(io(&lengths_path))?);
        Ok(Self { tokens, tokens_path, lengths, lengths_path, token_bytes: header.token_bytes(), total: 0, document: 0 })
    }
    /// More tokens of the document.
    fn put(&mut self, tokens: &[u32]) -> Result<(), CorpusError> {
        for token in tokens {
            self.tokens.write_all(&token.to_le_bytes()[..self.token_bytes]).map_err(io(&self.tokens_path))?;
        }
        self.document += tokens.len() as u64;
        Ok(())
    }
    /// The document ends.
    fn end(&mut self) -> Result<(), CorpusError> {
        let length = countable(self.document)?;
        self.total += std::mem::take(&mut self.document);
        self.lengths.write_all(&length.to_le_bytes()).map_err(io(&self.lengths_path))
    }
    /// How many tokens there are, all of them written.
    fn finish(mut self) -> Result<u64, CorpusError> {
        self.tokens.flush().map_err(io(&self.tokens_path))?;
        self.lengths.flush().map_err(io(&self.lengths_path))?;
        Ok(self.total)
    }
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
