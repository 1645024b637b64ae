//! Sequences of a corpus as batches.

use std::path::Path;

use super::batch::Batch;
use super::corpus::{Corpus, CorpusError, Part};
use super::order::Order;
use super::pack::{Shards, Windows};
use crate::study::Data;
use crate::timeline::DataPosition;

/// Reads the sequences of one `data` declaration.
#[derive(Debug)]
pub struct Reader {
    corpus: Corpus,
    train: Windows,
    holdout: Windows,
    shards: Shards,
    context: usize,
}

impl Reader {
    /// Opens the corpus in `folder` for the context, layout and shard of `data`.
    pub fn open(folder: &Path, data: &Data) -> Result<Self, CorpusError> {
        let corpus = Corpus::open(folder)?;
        let train = Windows::new(data.layout, data.context, corpus.documents(Part::Train));
        let holdout = Windows::new(data.layout, data.context, corpus.documents(Part::Holdout));
        let shards = Shards::of(data, &train);
        Ok(Self { corpus, train, holdout, shards, context: data.context })
    }
    /// The same with the training part in sequences of `context` tokens, where that is given; the holdout keeps the data's own.
    pub fn relaid(self, context: Option<usize>) -> Self {
        let Some(context) = context else { return self };
        let train = self.train.relaid(context);
        Self { shards: self.shards.relaid(&self.train, &train), train, ..self }
    }
    /// Token types of the corpus.
    pub fn vocabulary(&self) -> usize {
        self.corpus.header.vocabulary
    }
    /// The shards of the training part.
    pub fn shards(&self) -> &Shards {
        &self.shards
    }
    /// The order in which a run of this seed reads; see [`Order::sequences`].
    pub fn order(&self, seed: u64) -> Order {
        Order::new(seed, self.shards.clone())
    }
    /// The batch of `count` sequences from `position` on.
    pub fn train(&self, order: &mut Order, position: DataPosition, count: u64) -> Batch {
        self.batch(Part::Train, &order.sequences(position, count))
    }
    /// Sequences of the training part by their indices.
    pub fn train_sequences(&self, sequences: &[u64]) -> Batch {
        self.batch(Part::Train, sequences)
    }
    /// How many sequences the holdout has.
    pub fn holdout_sequences(&self) -> u64 {
        self.holdout.sequences()
    }
    /// Sequences `range` of the holdout.
    pub fn holdout(&self, range: std::ops::Range<u64>) -> Batch {
        self.batch(Part::Holdout, &range.collect::<Vec<_>>())
    }
    /// How many documents the holdout has.
    pub fn holdout_documents(&self) -> usize {
        self.corpus.documents(Part::Holdout).len()
    }
    /// The document of the holdout that a sequence of it begins in.
    pub fn holdout_document(&self, sequence: u64) -> usize {
        self.holdout.document(self.holdout.tokens(sequence).start)
    }
    /// The first `sequences` of the holdout, cut to `tokens` each: the fixed batch of probes.
    pub fn probe_batch(&self, sequences: u64, tokens: usize) -> Batch {
        let rows: Vec<u64> = (0..sequences.min(self.holdout.sequences())).collect();
        self.rows(Part::Holdout, &rows, tokens.min(self.context))
    }

    fn batch(&self, part: Part, sequences: &[u64]) -> Batch {
        let windows = self.windows(part);
        // Padded rows are as long as the longest of the batch, not as the context.
        let context = sequences.iter().map(|sequence| windows.real_tokens(*sequence) as usize).max().unwrap_or(0);
        self.rows(part, sequences, context)
    }
    fn rows(&self, part: Part, sequences: &[u64], context: usize) -> Batch {
        let windows = self.windows(part);
        let mut batch = Batch { rows: sequences.len(), context, sequences: sequences.to_vec(), ..Batch::default() };
        for sequence in sequences {
            let tokens = windows.tokens(*sequence);
            let mut document = windows.document(tokens.start);
            let (mut ends, mut number, mut position) = (windows.document_end(document), 0, 0);
            for at in tokens.start..tokens.start + context as u64 {
                let real = at + 1 < tokens.end;
                if real && at == ends {
                    document += 1;
                    (ends, number, position) = (windows.document_end(document), number + 1, 0);
                }
                batch.inputs.push(if real { self.corpus.token(part, at) } else { 0 });
                batch.labels.push(if real { self.corpus.token(part, at + 1) } else { 0 });
                batch.counted.push(real);
                batch.document.push(number);
                batch.position.push(position);
                batch.structural.push(real && at + 1 == ends);
                position += 1;
            }
        }
        batch
    }
    fn windows(&self, part: Part) -> &Windows {
        match part {
            Part::Train => &self.train,
            Part::Holdout => &self.holdout,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::corpus;
    use crate::study::{Documents, Holdout, Layout, Shard, Text, Tokenizer};

    fn data(layout: Layout) -> Data {
        Data {
            name: "d".into(),
            doc: None,
            text: Text::Files(vec!["*.txt".into()]),
            documents: Documents::Line,
            tokenizer: Tokenizer::Bytes,
            context: 4,
            layout,
            shard: Shard::Whole,
            holdout: Holdout::Fraction(0.0),
            tokens_per_step: None,
        }
    }

    fn reader(layout: Layout) -> Reader {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("a.txt"), "ab\nc\n\ndefghi\n").expect("writes");
        corpus::write(&data(layout), None, folder.path(), None, folder.path(), &mut |_| true).expect("a corpus");
        Reader::open(folder.path(), &data(layout)).expect("opens")
    }

    #[test]
    fn packed_rows_know_their_documents() {
        // Tokens: a b | c | d e f g h i |, with | = 256.
        let batch = reader(Layout::Packed).train_sequences(&[0, 1]);
        let (a, end) = (u32::from(b'a'), 256);
        assert_eq!(batch.inputs, [a, a + 1, end, a + 2, end, a + 3, a + 4, a + 5]);
        assert_eq!(batch.labels, [a + 1, end, a + 2, end, a + 3, a + 4, a + 5, a + 6]);
        assert_eq!(batch.document, [0, 0, 0, 1, 0, 1, 1, 1]);
        assert_eq!(batch.position, [0, 1, 2, 0, 0, 0, 1, 2]);
        assert_eq!(batch.structural, [false, false, true, false, true, false, false, false]);
        assert_eq!(batch.tokens(), 8);
    }

    #[test]
    fn the_training_part_can_be_laid_anew() {
        let own = reader(Layout::Packed);
        let whole = own.train_sequences(&[0, 1]);
        let anew = reader(Layout::Packed).relaid(Some(2));
        assert_eq!(anew.shards().sequences(0), 0..4);
        let halves = anew.train_sequences(&[0, 1, 2, 3]);
        assert_eq!((halves.rows, halves.context, &halves.inputs), (4, 2, &whole.inputs));
        assert_eq!(halves.labels, whole.labels);
        let position = DataPosition { shard: 0, sequence: 3, context: Some(2) };
        assert_eq!(anew.train(&mut anew.order(1), position, 2).context, 2);
        // A document's tokens are the same, cut sooner.
        let cut = reader(Layout::Padded).relaid(Some(2)).train_sequences(&[2]);
        let long = reader(Layout::Padded).train_sequences(&[2]);
        assert_eq!((&cut.inputs[..], cut.tokens(), long.tokens()), (&long.inputs[..2], 2, 4));
    }

    #[test]
    fn padded_rows_are_documents_and_padding_does_not_count() {
        let batch = reader(Layout::Padded).train_sequences(&[1, 0]);
        let (a, end) = (u32::from(b'a'), 256);
        assert_eq!((batch.rows, batch.context, batch.tokens()), (2, 2, 3));
        assert_eq!((batch.inputs, batch.labels), (vec![a + 2, 0, a, a + 1], vec![end, 0, a + 1, end]));
        assert_eq!(batch.counted, [true, false, true, true]);
    }
}
