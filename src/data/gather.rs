//! Gathers what the planner has to be told about the data of a study.

use std::path::Path;
use std::sync::Arc;

use super::bpe;
use super::corpus::{self, CorpusError};
use super::documents::{self, DocumentsError};
use super::facts::{Checkpoint, Corpus, CorpusFacts, Facts, Found, Weights};
use super::hub::{self, Hub, HubError, Tensors};
use super::tokenize::Encoder;
use crate::study::{Data, Init, Study, TeacherSource, Tokenizer};

/// Documents' lengths in tokens: of the training part, and of the holdout.
pub type Lengths = [Vec<u32>; 2];

/// What gathering may lean on, and how far it goes.
pub struct Reach<'a> {
    /// The lengths of a corpus of this content that has been written already: it need not be tokenised to be counted.
    pub written: &'a dyn Fn(&Data, &str) -> Option<Lengths>,
    /// Texts and weights of more bytes than this are left alone.
    pub most_bytes: Option<u64>,
}

impl Reach<'_> {
    /// Everything is read, and nothing was written before.
    pub fn whole() -> Self {
        Self { written: &|_, _| None, most_bytes: None }
    }
}

/// Reads the corpora of a study; `folder` is that of the `.exp` file. What cannot be read is a fact too.
pub fn gather(study: &Study, folder: &Path, reach: &Reach<'_>) -> Facts {
    let mut facts = Facts::default();
    for arm in &study.arms {
        let data = &arm.recipe.data;
        if !facts.corpora.iter().any(|(known, _)| known == data) {
            // The text is read once, however many contexts and layouts vary.
            let same_text = facts.corpora.iter().find(|(known, _)| same_corpus(known, data)).map(|(_, corpus)| corpus.clone());
            let corpus = same_text.unwrap_or_else(|| match read(data, folder, reach) {
                Ok(corpus) => Corpus::Known(corpus),
                Err(error) => Corpus::Absent(error.to_string()),
            });
            facts.corpora.push((Arc::clone(data), corpus));
        }
        for teacher in arm.recipe.all_teachers() {
            if let TeacherSource::Checkpoint { folder: path, .. } = &teacher.source
                && !facts.checkpoints.iter().any(|(known, _)| known == path)
            {
                facts.checkpoints.push((path.clone(), checkpoint(&folder.join(path), &teacher.name, reach)));
            }
        }
        if let Init::From { file, .. } = &arm.recipe.model.init
            && !facts.starts.iter().any(|(known, _)| known == file)
        {
            facts.starts.push((file.clone(), start(folder, file, reach)));
        }
    }
    facts
}

fn checkpoint(folder: &Path, name: &str, reach: &Reach<'_>) -> Found<Checkpoint> {
    match Hub::open(folder, name) {
        Ok(hub) if reach.most_bytes.is_some_and(|most| hub.tensors.bytes() > most) => Found::Absent(TOO_LARGE.to_owned()),
        Ok(Hub { model, context, tensors }) => match weights(&tensors) {
            Ok(weights) => Found::Known(Checkpoint { model, context, weights }),
            Err(error) => Found::Broken(error.to_string()),
        },
        Err(error @ HubError::Absent(_)) => Found::Absent(error.to_string()),
        Err(error @ HubError::Broken { .. }) => Found::Broken(error.to_string()),
    }
}

fn start(folder: &Path, file: &str, reach: &Reach<'_>) -> Found<Weights> {
    let path = match hub::beside(folder, file) {
        Ok(path) if path.exists() => path,
        Ok(path) => return Found::Absent(format!("there is no file `{}`", path.display())),
        Err(reason) => return Found::Broken(reason),
    };
    match Tensors::of_file(&path) {
        Ok(tensors) if reach.most_bytes.is_some_and(|most| tensors.bytes() > most) => Found::Absent(TOO_LARGE.to_owned()),
        Ok(tensors) => weights(&tensors).map_or_else(|error| Found::Broken(error.to_string()), Found::Known),
        Err(error) => Found::Broken(error.to_string()),
    }
}

fn weights(tensors: &Tensors) -> Result<Weights, HubError> {
    let shapes = tensors.shapes().map(|(name, shape)| (name.to_owned(), shape.to_vec()));
    Ok(Weights { content: tensors.content()?, tensors: shapes.collect() })
}

const TOO_LARGE: &str = "its weights are too large to be read now";

/// Whether two declarations tokenise to the same corpus.
fn same_corpus(a: &Data, b: &Data) -> bool {
    (&a.text, &a.documents, &a.tokenizer, a.holdout) == (&b.text, &b.documents, &b.tokenizer, b.holdout)
}

fn read(data: &Data, folder: &Path, reach: &Reach<'_>) -> Result<CorpusFacts, CorpusError> {
    if let Some(most) = reach.most_bytes
        && documents::size(data, folder)? > most
    {
        return Err(DocumentsError::TooLarge(most).into());
    }
    let encoder = Encoder::open(&data.tokenizer, folder, None)?;
    let survey = corpus::survey(data, folder, &encoder, &mut |_| true)?;
    let written = if data.tokenizer == Tokenizer::Bytes { None } else { (reach.written)(data, &survey.content) };
    let [train, holdout] = match written {
        Some(lengths) => lengths,
        None => match data.tokenizer {
            // What is to be trained is trained here too: its tokens are to be counted.
            Tokenizer::Bpe(size) => {
                let json = bpe::train(data, size, folder, &survey, &mut |_| true)?;
                corpus::lengths(data, folder, &Encoder::trained(size, &json)?, &survey)?
            }
            Tokenizer::Bytes | Tokenizer::Teacher | Tokenizer::File(_) => corpus::lengths(data, folder, &encoder, &survey)?,
        },
    };
    Ok(CorpusFacts {
        content: survey.content,
        vocabulary: encoder.vocabulary(),
        train_documents: Arc::new(train),
        holdout_documents: Arc::new(holdout),
    })
}
