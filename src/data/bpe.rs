//! `tokenizer bpe(N)`: byte-pair encoding over bytes, trained on the training part of a corpus.
//!
//! Text is split as GPT-2 splits it; the alphabet is all 256 bytes, so that every text can be spelt; `<|endoftext|>`, token 0, ends a document.
//! Deliberately sees no held-out document. Invariant: the same text and size give the same bytes, whatever the number of threads.

use std::path::Path;
use std::sync::mpsc::sync_channel;

use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::{AddedToken, Tokenizer};

use super::corpus::{self, CorpusError, Survey, Written};
use super::documents::{self, Content};
use super::tokenize::Encoder;
use crate::study::{self, Data};

/// The token that ends a document.
const END: &str = "<|endoftext|>";
/// Its place.
const BOUNDARY: u32 = 0;
/// Parts of documents that wait to be counted (an assumption: some MiB at most).
const WAITING: usize = 64;
/// The file of the node.
pub const FILE: &str = "tokenizer.json";

/// Trains the tokenizer of `size` tokens that `data` declares on what `survey` found; `go_on` hears how much was read, and may end it.
pub(super) fn train(
    data: &Data,
    size: usize,
    folder: &Path,
    survey: &Survey,
    go_on: &mut dyn FnMut(u64) -> bool,
) -> Result<Vec<u8>, CorpusError> {
    let failed = |reason: String| CorpusError::Training { data: data.name.clone(), reason };
    let mut tokenizer = Tokenizer::new(BPE::default());
    tokenizer.with_pre_tokenizer(Some(ByteLevel::new(false, true, true)));
    tokenizer.with_decoder(Some(ByteLevel::default()));
    let trainer = BpeTrainer::builder()
        .vocab_size(size)
        .show_progress(false)
        .special_tokens(vec![AddedToken::from(END, true)])
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build();
    let mut trainer = TrainerWrapper::BpeTrainer(trainer);
    let (send, receive) = sync_channel::<String>(WAITING);
    let trained = std::thread::scope(|scope| {
        let (tokenizer, trainer) = (&mut tokenizer, &mut trainer);
        let work = move || tokenizer.train(trainer, receive.into_iter()).map(|_| ()).map_err(|error| error.to_string());
        let training = scope.spawn(work);
        let (mut is_held, mut held) = (survey.walk(), None);
        let read = documents::each(data, folder, None, &mut |part| {
            let Content::Text(text) = part.content else { return Ok(()) };
            let is_out = *held.get_or_insert_with(&mut is_held);
            if part.last {
                held = None;
            }
            let gone = !is_out && send.send(text.to_owned()).is_err();
            if gone || !go_on(part.read) { Err(CorpusError::Stopped) } else { Ok(()) }
        });
        drop(send);
        let trained = training.join().map_err(|_| "the training ended in a panic".to_owned()).and_then(|trained| trained);
        read.and(trained.map_err(failed))
    });
    trained?;
    let found = tokenizer.get_vocab_size(true);
    if found != size {
        return Err(failed(format!("its text gives {found} tokens, `bpe({size})` asks for {size}")));
    }
    tokenizer.to_string(true).map(String::into_bytes).map_err(|error| failed(error.to_string()))
}

/// The token that ends a document of a trained tokenizer.
pub(super) fn boundary(tokenizer: &Tokenizer) -> Result<u32, String> {
    match tokenizer.token_to_id(END) {
        Some(BOUNDARY) => Ok(BOUNDARY),
        _ => Err(format!("`{END}` is not its first token")),
    }
}

/// Trains the tokenizer of `data` and writes it into the folder `into`; as [`corpus::write`].
pub fn write(
    data: &Data,
    planned: Option<&str>,
    folder: &Path,
    into: &Path,
    go_on: &mut dyn FnMut(Written) -> bool,
) -> Result<Option<usize>, CorpusError> {
    let study::Tokenizer::Bpe(size) = data.tokenizer else {
        panic!("this is a bug in xrun: only `bpe` is trained");
    };
    let mut written = || {
        let encoder = Encoder::open(&data.tokenizer, folder, None)?;
        let bytes = documents::size(data, folder)?;
        let mut told = 0;
        let mut tell = |done: u64| {
            let due = done - told >= corpus::OFTEN;
            told = if due { done } else { told };
            !due || go_on(Written { done, total: 2 * bytes, tokens: 0 })
        };
        let survey = corpus::survey(data, folder, &encoder, &mut tell)?;
        if planned.is_some_and(|planned| survey.content != planned) {
            return Err(CorpusError::Changed(data.name.clone()));
        }
        let text = train(data, size, folder, &survey, &mut |read| tell(bytes + read))?;
        let path = into.join(FILE);
        std::fs::write(&path, text).map_err(|source| CorpusError::Io { path, source })?;
        Ok(size)
    };
    match written() {
        Err(CorpusError::Stopped) => Ok(None),
        result => result.map(Some),
    }
}

#[cfg(test)]
mod tests {
    use super::super::documents::tests::of_files;
    use super::*;
    use crate::study::{Documents, Holdout, Text};

    fn tales(size: usize) -> Data {
        Data {
            text: Text::Tales { documents: 200, seed: 1 },
            tokenizer: study::Tokenizer::Bpe(size),
            holdout: Holdout::Documents(20),
            ..of_files("", Documents::Paragraph)
        }
    }

    fn trained(data: &Data, folder: &Path) -> Result<Vec<u8>, CorpusError> {
        write(data, None, folder, folder, &mut |_| true)?;
        Ok(std::fs::read(folder.join(FILE)).expect("reads"))
    }

    #[test]
    fn the_same_text_gives_the_same_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        let data = tales(400);
        let first = trained(&data, folder.path()).expect("trains");
        assert!(trained(&data, folder.path()).expect("trains") == first);
        let encoder = Encoder::open(&data.tokenizer, folder.path(), Some(&folder.path().join(FILE))).expect("opens");
        assert_eq!((encoder.vocabulary(), encoder.boundary(), encoder.spelt().as_deref()), (400, 0, Some(END)));
        let text = "Ada had the brass key. Größe, 北京 and <|endoftext|>\n".to_owned();
        let tokens = encoder.encode(std::slice::from_ref(&text)).expect("encodes").remove(0);
        assert!(tokens.len() < text.len() && !tokens.contains(&0) && tokens.iter().all(|token| *token < 400));
        let tokenizer = Tokenizer::from_bytes(&first).expect("a tokenizer");
        assert_eq!(tokenizer.decode(&tokens, false).expect("decodes"), text);
    }

    #[test]
    fn held_out_documents_are_not_seen() {
        let folder = tempfile::tempdir().expect("a folder");
        let lines: Vec<String> = (0..60).map(|at| format!("word{at} {}", "xyz".repeat(at % 7 + 1))).collect();
        let write = |lines: &[&String]| {
            let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
            std::fs::write(folder.path().join("a.txt"), text).expect("writes");
        };
        let data = |holdout| Data {
            tokenizer: study::Tokenizer::Bpe(280),
            holdout: Holdout::Documents(holdout),
            ..of_files("a.txt", Documents::Line)
        };
        write(&lines.iter().collect::<Vec<_>>());
        let encoder = Encoder::open(&data(30).tokenizer, folder.path(), None).expect("opens");
        let survey = corpus::survey(&data(30), folder.path(), &encoder, &mut |_| true).expect("reads");
        let of_train = trained(&data(30), folder.path()).expect("trains");
        let mut is_held = survey.walk();
        let train: Vec<&String> = lines.iter().filter(|_| !is_held()).collect();
        assert_eq!(train.len(), 30);
        write(&train);
        assert!(trained(&data(0), folder.path()).expect("trains") == of_train);
    }

    #[test]
    fn a_text_that_is_too_small_says_what_it_gives() {
        let folder = tempfile::tempdir().expect("a folder");
        let said = trained(&tales(100_000), folder.path()).expect_err("refused").to_string();
        assert!(said.contains("its text gives") && said.contains("`bpe(100000)`"), "{said}");
    }
}
