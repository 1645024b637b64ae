//! Gathers what the planner has to be told about the data of a study.

use std::path::Path;
use std::sync::Arc;

use super::corpus;
use super::facts::{Corpus, CorpusFacts, Facts};
use crate::study::{Data, Study, Tokenizer};

/// Reads the corpora of a study; `folder` is that of the `.exp` file. What cannot be read is a fact too.
pub fn gather(study: &Study, folder: &Path) -> Facts {
    let mut facts = Facts::default();
    for arm in &study.arms {
        let data = &arm.recipe.data;
        if !facts.corpora.iter().any(|(known, _)| known == data) {
            // The text is read once, however many contexts and layouts vary.
            let same_text = facts.corpora.iter().find(|(known, _)| same_corpus(known, data)).map(|(_, corpus)| corpus.clone());
            let corpus = same_text.unwrap_or_else(|| match read(data, folder) {
                Ok(corpus) => Corpus::Known(corpus),
                Err(error) => Corpus::Absent(error.to_string()),
            });
            facts.corpora.push((Arc::clone(data), corpus));
        }
    }
    facts
}

/// Whether two declarations tokenise to the same corpus.
fn same_corpus(a: &Data, b: &Data) -> bool {
    (&a.text, &a.documents, &a.tokenizer, a.holdout) == (&b.text, &b.documents, &b.tokenizer, b.holdout)
}

fn read(data: &Data, folder: &Path) -> Result<CorpusFacts, corpus::CorpusError> {
    let (train, holdout) = corpus::parts(data, folder)?;
    let lengths = |part: &[String]| -> Result<Vec<u32>, corpus::CorpusError> {
        part.iter().map(|document| corpus::document_tokens(&data.tokenizer, document)).collect()
    };
    Ok(CorpusFacts {
        content: corpus::content(&data.tokenizer, &train, &holdout)?,
        vocabulary: Tokenizer::BYTE_VOCABULARY,
        train_documents: Arc::new(lengths(&train).and_then(nonempty)?),
        holdout_documents: Arc::new(lengths(&holdout)?),
    })
}

fn nonempty(lengths: Vec<u32>) -> Result<Vec<u32>, corpus::CorpusError> {
    match lengths.is_empty() {
        true => Err(super::documents::DocumentsError::TooSmall("the corpus has no document".into()).into()),
        false => Ok(lengths),
    }
}
