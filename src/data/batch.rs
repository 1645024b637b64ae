//! What one step, or one stretch of evaluation, reads.

/// Sequences side by side; every field but `sequences` has `rows * context` entries, row-major.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// Number of sequences B.
    pub rows: usize,
    /// Tokens of a row T, padding included; the same for all rows.
    pub context: usize,
    /// Index of each row's sequence in its part of the corpus.
    pub sequences: Vec<u64>,
    /// Input tokens; 0 where padded.
    pub inputs: Vec<u32>,
    /// The token after each input; 0 where padded.
    pub labels: Vec<u32>,
    /// The position is real: its prediction counts in loss and budgets.
    pub counted: Vec<bool>,
    /// Number of the document within the row, from 0: a position sees only its own document.
    pub document: Vec<u32>,
    /// Position within the document, from 0 at its first token in the row.
    pub position: Vec<u32>,
    /// The input token ends a document.
    pub structural: Vec<bool>,
}

impl Batch {
    /// Real tokens.
    pub fn tokens(&self) -> u64 {
        self.counted.iter().filter(|counted| **counted).count() as u64
    }
    /// Rows `rows` as a batch of their own (a micro-batch).
    pub fn slice(&self, rows: std::ops::Range<usize>) -> Batch {
        let cells = rows.start * self.context..rows.end * self.context;
        Batch {
            rows: rows.len(),
            context: self.context,
            sequences: self.sequences[rows].to_vec(),
            inputs: self.inputs[cells.clone()].to_vec(),
            labels: self.labels[cells.clone()].to_vec(),
            counted: self.counted[cells.clone()].to_vec(),
            document: self.document[cells.clone()].to_vec(),
            position: self.position[cells.clone()].to_vec(),
            structural: self.structural[cells].to_vec(),
        }
    }
}
