//! Text into tokens: bytes, or a tokenizer in Hugging Face's format, given or trained on the text.
//!
//! Owns which token ends a document. Invariant: a document is text from its first character to its last: no special token is added to
//! it, and none that it spells out is taken for one.

use std::path::{Path, PathBuf};

use super::bpe;
use super::corpus::CorpusError;
use super::documents::{self, Content};
use super::pretokenised::Spelling;
use crate::study::{Data, Tokenizer};

/// A larger `tokenizer.json` was not made by anyone: those of vocabularies of 256,000 have 40 MB.
const LARGEST: u64 = 1 << 28;
/// Tokens that end a text in the vocabularies of common models, where nothing beside the tokenizer says which one does.
const ENDS: [&str; 5] = ["<|endoftext|>", "<|end_of_text|>", "</s>", "<eos>", "[EOS]"];

/// What makes tokens of text.
pub enum Encoder {
    /// A byte is a token.
    Bytes,
    /// By a file.
    File(Box<Vocabulary>),
    /// By what is trained on the text itself.
    Bpe {
        /// Token types.
        size: usize,
        /// `None`: it is still to be trained, and can be asked for its name alone.
        trained: Option<Box<Vocabulary>>,
    },
}

/// A tokenizer that has been read.
pub struct Vocabulary {
    tokenizer: tokenizers::Tokenizer,
    hash: blake3::Hash,
    boundary: u32,
    size: usize,
}

impl Encoder {
    /// The tokenizer of a declaration; `folder` is that of the `.exp` file, `trained` the file of one that was trained on the text.
    pub fn open(tokenizer: &Tokenizer, folder: &Path, trained: Option<&Path>) -> Result<Self, CorpusError> {
        match tokenizer {
            Tokenizer::Bytes => Ok(Self::Bytes),
            Tokenizer::Teacher => panic!("this is a bug in xrun: the tokenizer of a teacher is told by its file"),
            Tokenizer::File(path) => {
                let path = folder.join(path);
                Vocabulary::open(&path, |tokenizer| boundary(tokenizer, &path)).map(|read| Self::File(Box::new(read)))
            }
            Tokenizer::Bpe(size) => {
                let trained = trained.map(|path| Vocabulary::open(path, bpe::boundary)).transpose()?;
                Ok(Self::Bpe { size: *size, trained: trained.map(Box::new) })
            }
        }
    }
    /// The same, trained: `json` is what [`bpe::train`] gave.
    pub(super) fn trained(size: usize, json: &[u8]) -> Result<Self, CorpusError> {
        let read = Vocabulary::of(json, bpe::boundary).map_err(CorpusError::Encoding)?;
        Ok(Self::Bpe { size, trained: Some(Box::new(read)) })
    }
    fn vocabulary_of(&self) -> &Vocabulary {
        match self {
            Self::File(vocabulary) | Self::Bpe { trained: Some(vocabulary), .. } => vocabulary,
            Self::Bytes | Self::Bpe { .. } => panic!("this is a bug in xrun: there is no vocabulary yet"),
        }
    }
    /// Token types: one more than the largest token.
    pub fn vocabulary(&self) -> usize {
        match self {
            Self::Bytes => Tokenizer::BYTE_VOCABULARY,
            Self::File(vocabulary) => vocabulary.size,
            Self::Bpe { size, .. } => *size,
        }
    }
    /// The token that ends a document.
    pub fn boundary(&self) -> u32 {
        match self {
            Self::Bytes => Tokenizer::BYTE_BOUNDARY,
            Self::File(_) | Self::Bpe { .. } => self.vocabulary_of().boundary,
        }
    }
    /// How the token that ends a document is spelt; `None`: it is no text.
    pub fn spelt(&self) -> Option<String> {
        match self {
            Self::Bytes => None,
            Self::File(_) | Self::Bpe { .. } => self.vocabulary_of().tokenizer.id_to_token(self.boundary()),
        }
    }
    /// What it does, for the hash of a corpus: the bytes of its file and the token that ends documents.
    pub(super) fn identify(&self, hasher: &mut blake3::Hasher) {
        match self {
            Self::Bytes => hasher.update(b"bytes"),
            Self::File(vocabulary) => {
                hasher.update(b"file").update(vocabulary.hash.as_bytes()).update(&vocabulary.boundary.to_le_bytes())
            }
            // What it becomes follows from the text and this; the number counts changes of how it is trained.
            Self::Bpe { size, .. } => hasher.update(b"bpe 1").update(&(*size as u64).to_le_bytes()),
        };
    }
    /// What files of tokens have to keep to; `None`: there can be none.
    pub(super) fn spelling(&self) -> Option<Spelling> {
        match self {
            Self::Bytes | Self::File(_) => Some(Spelling { vocabulary: self.vocabulary(), boundary: self.boundary() }),
            Self::Bpe { .. } => None,
        }
    }
    /// Tokens of each text, no boundary. The number of threads has no say.
    pub fn encode(&self, texts: &[String]) -> Result<Vec<Vec<u32>>, CorpusError> {
        match self {
            Self::Bytes => Ok(texts.iter().map(|text| text.bytes().map(u32::from).collect()).collect()),
            Self::File(_) | Self::Bpe { .. } => self.vocabulary_of().encode(texts),
        }
    }
}

/// Tokens of a document, or of a part of a long one.
pub(super) struct Tokens<'a> {
    /// The boundary comes last in the last part.
    pub ids: &'a [u32],
    /// Nothing of the document comes after.
    pub last: bool,
    /// How much of [`documents::size`] was read so far.
    pub read: u64,
}

/// Hears the tokens of documents; an error ends the reading.
type See<'a> = dyn FnMut(Tokens<'_>) -> Result<(), CorpusError> + 'a;

/// Shows the tokens of the documents of a `data` declaration, one after the other.
pub(super) fn tokenise(data: &Data, folder: &Path, encoder: &Encoder, see: &mut See<'_>) -> Result<(), CorpusError> {
    let mut stretch = Stretch::default();
    let mut ids = Vec::new();
    documents::each(data, folder, encoder.spelling(), &mut |part| {
        stretch.read = part.read;
        match part.content {
            Content::Text(text) => {
                stretch.bytes += text.len();
                stretch.texts.push(text.to_owned());
                stretch.last.push(part.last);
                if stretch.bytes >= STRETCH { stretch.show(encoder, see) } else { Ok(()) }
            }
            Content::Tokens(tokens) => {
                stretch.show(encoder, see)?;
                ids.clear();
                ids.extend_from_slice(tokens);
                ids.extend(part.last.then_some(encoder.boundary()));
                see(Tokens { ids: &ids, last: part.last, read: part.read })
            }
        }
    })?;
    stretch.show(encoder, see)
}

/// Bytes of text that are tokenised at a time (an assumption): enough for all cores, few enough that their tokens are some hundred MB at most.
const STRETCH: usize = 4 << 20;

/// Texts that wait to be tokenised.
#[derive(Default)]
struct Stretch {
    texts: Vec<String>,
    /// Of each, whether its document ends with it.
    last: Vec<bool>,
    bytes: usize,
    read: u64,
}

impl Stretch {
    fn show(&mut self, encoder: &Encoder, see: &mut See<'_>) -> Result<(), CorpusError> {
        for (mut ids, last) in encoder.encode(&self.texts)?.into_iter().zip(self.last.drain(..)) {
            ids.extend(last.then_some(encoder.boundary()));
            see(Tokens { ids: &ids, last, read: self.read })?;
        }
        self.texts.clear();
        self.bytes = 0;
        Ok(())
    }
}

impl Vocabulary {
    /// Reads a file; `boundary` finds the token that ends a document.
    fn open(path: &Path, boundary: impl FnOnce(&tokenizers::Tokenizer) -> Result<u32, String>) -> Result<Self, CorpusError> {
        let refused = |reason: String| CorpusError::Tokenizer { path: path.into(), reason };
        let size = std::fs::metadata(path).map_err(|error| refused(error.to_string()))?.len();
        if size > LARGEST {
            return Err(refused(format!("larger than {} MiB", LARGEST >> 20)));
        }
        let bytes = std::fs::read(path).map_err(|error| refused(error.to_string()))?;
        if bytes.starts_with(b"version https://git-lfs") {
            return Err(refused("a pointer of Git LFS in the place of the file: fetch it with `git lfs pull`".to_owned()));
        }
        Self::of(&bytes, boundary).map_err(refused)
    }

    fn of(bytes: &[u8], boundary: impl FnOnce(&tokenizers::Tokenizer) -> Result<u32, String>) -> Result<Self, String> {
        let mut tokenizer = tokenizers::Tokenizer::from_bytes(bytes).map_err(|error| error.to_string())?;
        // A model that was trained on cut or padded rows must not cut or pad documents.
        tokenizer.with_truncation(None).map_err(|error| error.to_string())?;
        tokenizer.with_padding(None);
        tokenizer.set_encode_special_tokens(true);
        let largest = tokenizer.get_vocab(true).into_values().max();
        let size = largest.ok_or_else(|| "it has no token".to_owned())? as usize + 1;
        let boundary = boundary(&tokenizer)?;
        Ok(Self { hash: blake3::hash(bytes), tokenizer, boundary, size })
    }

    fn encode(&self, texts: &[String]) -> Result<Vec<Vec<u32>>, CorpusError> {
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let all = self.tokenizer.encode_batch_fast(texts, false).map_err(|error| CorpusError::Encoding(error.to_string()))?;
        Ok(all.into_iter().map(|encoding| encoding.get_ids().to_vec()).collect())
    }
}

/// The token that ends a text: what `tokenizer_config.json`, else `config.json` beside the tokenizer says, else one by its usual name.
fn boundary(tokenizer: &tokenizers::Tokenizer, path: &Path) -> Result<u32, String> {
    let beside = |name: &str| -> Option<(PathBuf, serde_json::Value)> {
        let path = path.with_file_name(name);
        let text = std::fs::read(&path).ok().filter(|text| text.len() as u64 <= LARGEST)?;
        Some((path, serde_json::from_slice(&text).ok()?))
    };
    if let Some((path, config)) = beside("tokenizer_config.json") {
        let end = &config["eos_token"];
        if let Some(end) = end.as_str().or_else(|| end["content"].as_str()) {
            let unknown = || format!("`{}` ends texts with `{end}`, which the tokenizer does not know", path.display());
            return tokenizer.token_to_id(end).ok_or_else(unknown);
        }
    }
    if let Some((path, config)) = beside("config.json") {
        let end = &config["eos_token_id"];
        if let Some(end) = end.as_u64().or_else(|| end[0].as_u64()) {
            let unknown = || format!("`{}` ends texts with token {end}, which the tokenizer does not know", path.display());
            let known = u32::try_from(end).ok().filter(|end| tokenizer.id_to_token(*end).is_some());
            return known.ok_or_else(unknown);
        }
    }
    let found = ENDS.iter().find_map(|end| tokenizer.token_to_id(end));
    found.ok_or_else(|| {
        let names = ENDS.join("`, `");
        format!("no token ends a document: there is no `eos_token` in a `tokenizer_config.json` beside it, and none of `{names}`")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A tokenizer of words, with an end and a special token; `names` of its files beside it.
    fn words(folder: &Path, beside: &[(&str, &str)]) -> Result<Encoder, CorpusError> {
        let json = r#"{
            "version": "1.0",
            "truncation": {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0},
            "padding": null,
            "added_tokens": [
                {"id": 3, "content": "</s>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true},
                {"id": 4, "content": "<end>", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}
            ],
            "normalizer": null,
            "pre_tokenizer": {"type": "Whitespace"},
            "post_processor": null,
            "decoder": null,
            "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "red": 1, "green": 2}, "unk_token": "[UNK]"}
        }"#;
        std::fs::write(folder.join("tokenizer.json"), json).expect("writes");
        for (name, text) in beside {
            std::fs::write(folder.join(name), text).expect("writes");
        }
        Encoder::open(&Tokenizer::File("tokenizer.json".into()), folder, None)
    }

    #[test]
    fn documents_are_neither_cut_nor_do_they_hold_special_tokens() {
        let folder = tempfile::tempdir().expect("a folder");
        let encoder = words(folder.path(), &[]).expect("a tokenizer");
        assert_eq!((encoder.vocabulary(), encoder.boundary()), (5, 3));
        let documents = ["red green red green".to_owned(), "red </s> green".to_owned()];
        let tokens = encoder.encode(&documents).expect("encodes");
        assert_eq!(tokens[0], [1, 2, 1, 2]);
        assert_eq!((tokens[1].first(), tokens[1].iter().filter(|token| **token == 3).count()), (Some(&1), 0));
    }

    #[test]
    fn what_stands_beside_a_tokenizer_says_what_ends_a_text() {
        let of = |beside: &[(&str, &str)]| {
            let folder = tempfile::tempdir().expect("a folder");
            words(folder.path(), beside).map(|encoder| encoder.boundary()).map_err(|error| error.to_string())
        };
        assert_eq!(of(&[("tokenizer_config.json", r#"{"eos_token": "<end>"}"#)]), Ok(4));
        assert_eq!(of(&[("tokenizer_config.json", r#"{"eos_token": {"content": "<end>"}}"#)]), Ok(4));
        assert_eq!(of(&[("config.json", r#"{"eos_token_id": [4, 3]}"#)]), Ok(4));
        assert!(of(&[("config.json", r#"{"eos_token_id": 77}"#)]).is_err_and(|error| error.contains("token 77")));
        assert!(of(&[("tokenizer_config.json", r#"{"eos_token": "<none>"}"#)]).is_err_and(|error| error.contains("`<none>`")));
    }
}
