//! `documents.json`: what the model after a phase's last step makes of the holdout, document by document.

use std::path::Path;

use super::disk;
use crate::data::{Batch, Reader};
use crate::run::record::{DOCUMENTS, DocumentsRecord, Real};
use crate::run::worker::Failure;

/// Sums that grow while the holdout is read.
pub(super) struct Documents {
    step: u64,
    tokens: Vec<u64>,
    ce: Vec<f64>,
}

impl Documents {
    /// Nothing of any document, after so many steps.
    pub(super) fn of(reader: &Reader, step: u64) -> Self {
        let documents = reader.holdout_documents();
        Self { step, tokens: vec![0; documents], ce: vec![0.0; documents] }
    }

    /// Adds the cells (B·T, nats) of a batch of the holdout.
    pub(super) fn add(&mut self, reader: &Reader, batch: &Batch, ce: &[f32]) {
        for (row, sequence) in batch.sequences.iter().enumerate() {
            let first = reader.holdout_document(*sequence);
            for cell in (row * batch.context..(row + 1) * batch.context).filter(|cell| batch.counted[*cell]) {
                let document = first + batch.document[cell] as usize;
                self.tokens[document] += 1;
                self.ce[document] += f64::from(ce[cell]);
            }
        }
    }

    /// Writes the file.
    pub(super) fn write(self, folder: &Path) -> Result<(), Failure> {
        let Self { step, tokens, ce } = self;
        let record = DocumentsRecord { step, tokens, ce: ce.into_iter().map(Real).collect() };
        let text = serde_json::to_string(&record).map_err(|error| Failure::Input(error.to_string()))?;
        std::fs::write(folder.join(DOCUMENTS), text + "\n").map_err(disk(format!("cannot write {DOCUMENTS}")))
    }
}
