//! Tokens of a run: how many, how many of them distinct, through how many layers.
//!
//! Owns the counts that plans print and controls are matched on. Deliberately knows no text: documents are lengths. A [`Counter`]
//! is made once for data, corpus and seed; it is the [`StepTokens`] that a timeline is worked out with, and [`Counter::count`]
//! prices the timeline's segments. Invariant: with the corpus at hand every count is exact, by the windows and the order that
//! the reader reads by; without it, by what the file declares.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::iter::Sum;
use std::ops::{Add, Range};
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use crate::data::facts::Corpus;
use crate::data::order::Order;
use crate::data::pack::{Shards, Windows};
use crate::study::{Batch, Data, Layout, Quantity, Shard};
use crate::timeline::moment::relaid;
use crate::timeline::{DataPosition, Declared, Segment, StepTokens};

/// What steps read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Count {
    /// Sequences.
    pub sequences: u64,
    /// Real tokens.
    pub tokens: u64,
    /// Those that no earlier step of the run has read.
    pub unique_tokens: u64,
    /// Σ tokens × layers run.
    pub active_layer_tokens: u64,
    /// Σ tokens × layers that learn.
    pub trained_layer_tokens: u64,
}

impl Count {
    /// One that a control can be matched on; FLOPs are not among the counts.
    pub fn quantity(&self, quantity: Quantity) -> Option<u64> {
        match quantity {
            Quantity::ActiveLayerTokens => Some(self.active_layer_tokens),
            Quantity::TrainedLayerTokens => Some(self.trained_layer_tokens),
            Quantity::Tokens => Some(self.tokens),
            Quantity::Flops => None,
        }
    }
}

impl Add for Count {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            sequences: self.sequences + other.sequences,
            tokens: self.tokens + other.tokens,
            unique_tokens: self.unique_tokens + other.unique_tokens,
            active_layer_tokens: self.active_layer_tokens + other.active_layer_tokens,
            trained_layer_tokens: self.trained_layer_tokens + other.trained_layer_tokens,
        }
    }
}

impl Sum for Count {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), Add::add)
    }
}

/// Counts what the runs of one seed read.
#[derive(Debug)]
pub struct Counter {
    source: Source,
    layout: Layout,
    /// The data's own.
    context: usize,
}

#[derive(Debug)]
enum Source {
    /// The corpus is not at hand.
    Declared { pace: Declared, shard: Option<u64> },
    /// It is.
    Known { seed: u64, own: Rc<Laid>, others: RefCell<BTreeMap<usize, Rc<Laid>>> },
}

/// Documents in sequences of one length.
#[derive(Debug)]
struct Laid {
    windows: Windows,
    shards: Shards,
    epochs: RefCell<Epochs>,
}

impl Laid {
    fn new(seed: u64, windows: Windows, shards: Shards) -> Rc<Self> {
        let epochs = RefCell::new(Epochs { order: Order::new(seed, shards.clone()), last: None });
        Rc::new(Self { windows, shards, epochs })
    }

    /// What was read of a shard, as stretches of the corpus' tokens.
    fn stretches(&self, shard: u64, passed: &[Range<u64>], stretches: &mut Vec<Range<u64>>) {
        let all = self.shards.sequences(shard);
        let mut read = Vec::new();
        for passed in passed {
            if passed.end - passed.start >= all.end - all.start {
                read = all.collect();
                break;
            }
            let position = DataPosition { shard, sequence: passed.start, context: None };
            read.extend(self.epochs.borrow_mut().order.sequences(position, passed.end - passed.start));
        }
        stretches.extend(read.into_iter().map(|sequence| {
            let tokens = self.windows.tokens(sequence);
            tokens.start..tokens.end - 1
        }));
    }
}

impl Counter {
    /// For a `data` declaration; `batch` is that of the training, which `tokens per step` counts.
    pub fn new(data: &Data, batch: Batch, corpus: &Corpus, seed: u64) -> Self {
        let context = data.context as u64;
        let source = match corpus {
            Corpus::Known(facts) => {
                let windows = Windows::new(data.layout, data.context, &facts.train_documents);
                let shards = Shards::of(data, &windows);
                Source::Known { seed, own: Laid::new(seed, windows, shards), others: RefCell::default() }
            }
            Corpus::Absent(_) => {
                let shard = match (data.shard, data.layout) {
                    (Shard::Whole, _) => None,
                    (Shard::Tokens(tokens), Layout::Padded) => Some(tokens),
                    (Shard::Tokens(tokens), Layout::Packed) => Some((tokens / context.max(1)).max(1) * context),
                };
                Source::Declared { pace: Declared::of(data, batch), shard }
            }
        };
        Self { source, layout: data.layout, context: data.context }
    }

    /// Whether the documents were counted, not declared.
    pub fn is_exact(&self) -> bool {
        matches!(self.source, Source::Known { .. })
    }

    /// What each segment of a run reads; `None` while that cannot be known, or if it is too much to be counted in 64 bits.
    pub fn count(&self, segments: &[Segment]) -> Option<Vec<Count>> {
        let (mut reached, mut before) = (Reached::new(), 0);
        let mut counts = Vec::with_capacity(segments.len());
        for segment in segments {
            let tokens = u64::try_from(self.tokens(segment.data, segment.batch, segment.length())?).ok()?;
            let sequences = segment.length().checked_mul(segment.batch)?;
            let DataPosition { shard, sequence, context } = segment.data;
            passed(reached.entry((shard, context)).or_default(), sequence..sequence.checked_add(sequences)?);
            let unique = self.unique(&reached)?;
            counts.push(Count {
                sequences,
                tokens,
                unique_tokens: u64::try_from(unique.saturating_sub(before)).ok()?,
                active_layer_tokens: tokens.checked_mul(segment.depth() as u64)?,
                trained_layer_tokens: tokens.checked_mul(segment.trained_layers() as u64)?,
            });
            before = unique.max(before);
        }
        Some(counts)
    }

    /// Distinct tokens among what was read.
    fn unique(&self, reached: &Reached) -> Option<u128> {
        match &self.source {
            Source::Declared { pace, shard: most } => {
                let mut seen: BTreeMap<u64, u128> = BTreeMap::new();
                for ((shard, context), passed) in reached {
                    let position = DataPosition { context: *context, ..DataPosition::START };
                    let sequences = passed.iter().map(|passed| passed.end - passed.start).sum();
                    *seen.entry(*shard).or_default() += pace.tokens(position, sequences, 1)?;
                }
                let most = most.map_or(u128::MAX, u128::from);
                Some(seen.into_values().map(|seen| seen.min(most)).sum())
            }
            Source::Known { own, .. } => {
                let mut by_place: BTreeMap<u64, Vec<Range<u64>>> = BTreeMap::new();
                for ((shard, context), passed) in reached {
                    let laid = self.laid(*context)?;
                    if laid.shards.sequences(*shard).is_empty() {
                        return None;
                    }
                    laid.stretches(*shard, passed, by_place.entry(shard % own.shards.count()).or_default());
                }
                Some(by_place.into_values().map(covered).sum())
            }
        }
    }

    /// The documents in sequences of a length; `None` where they are not at hand.
    fn laid(&self, context: Option<usize>) -> Option<Rc<Laid>> {
        let Source::Known { seed, own, others } = &self.source else { return None };
        let Some(context) = context else { return Some(Rc::clone(own)) };
        let make = || {
            let windows = own.windows.relaid(context);
            let shards = own.shards.relaid(&own.windows, &windows);
            Laid::new(*seed, windows, shards)
        };
        Some(Rc::clone(others.borrow_mut().entry(context).or_insert_with(make)))
    }
}

/// Which sequences of a shard have been read, by their numbers in the order of its passes, in sequences of which length.
type Reached = BTreeMap<(u64, Option<usize>), Vec<Range<u64>>>;

/// Notes a stretch of sequences; stretches that meet become one.
fn passed(known: &mut Vec<Range<u64>>, new: Range<u64>) {
    let meets = |other: &Range<u64>| other.start <= new.end && new.start <= other.end;
    let (met, rest): (Vec<_>, Vec<_>) = known.drain(..).partition(meets);
    *known = rest;
    let start = met.iter().map(|other| other.start).fold(new.start, u64::min);
    known.push(start..met.iter().map(|other| other.end).fold(new.end, u64::max));
}

/// How much stretches cover together.
fn covered(mut stretches: Vec<Range<u64>>) -> u128 {
    stretches.sort_unstable_by_key(|stretch| (stretch.start, stretch.end));
    let (mut total, mut reached) = (0, 0);
    for stretch in stretches {
        total += u128::from(stretch.end.saturating_sub(stretch.start.max(reached)));
        reached = reached.max(stretch.end);
    }
    total
}

impl StepTokens for Counter {
    fn tokens(&self, position: DataPosition, batch: u64, steps: u64) -> Option<u128> {
        if let Source::Declared { pace, .. } = &self.source {
            return pace.tokens(position, batch, steps);
        }
        if self.layout == Layout::Packed {
            return Declared::Packed { context: self.context }.tokens(position, batch, steps);
        }
        let laid = self.laid(position.context)?;
        let all = laid.shards.sequences(position.shard);
        let end = position.sequence.checked_add(batch.checked_mul(steps)?)?;
        let mut epochs = laid.epochs.borrow_mut();
        let mut first = |sequences| epochs.first(position.shard, sequences, all.end - all.start, &laid.windows);
        Some(first(end)? - first(position.sequence)?)
    }

    fn relaid(&self, position: DataPosition, context: usize) -> DataPosition {
        relaid(position, self.layout, self.context, context)
    }
}

/// Tokens along the epochs of shards.
#[derive(Debug)]
struct Epochs {
    order: Order,
    /// The epoch counted last, as (shard, epoch, tokens of its first 0, 1, 2, … sequences).
    last: Option<(u64, u64, Vec<u128>)>,
}

impl Epochs {
    /// Tokens of the first so many sequences read of a shard of `length` sequences; `None` for an empty one.
    fn first(&mut self, shard: u64, sequences: u64, length: u64, windows: &Windows) -> Option<u128> {
        let epoch = sequences.checked_div(length)?;
        if !matches!(&self.last, Some((s, e, _)) if (*s, *e) == (shard, epoch)) {
            let read = self.order.sequences(DataPosition { shard, sequence: epoch * length, context: None }, length);
            let sums = read.iter().scan(0, |sum, sequence| {
                *sum += u128::from(windows.real_tokens(*sequence));
                Some(*sum)
            });
            self.last = Some((shard, epoch, std::iter::once(0).chain(sums).collect()));
        }
        let (_, _, sums) = self.last.as_ref()?;
        Some(u128::from(epoch) * sums.last()? + sums.get((sequences % length) as usize)?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::budget::testing::{data, grow, joint, model, training};
    use crate::data::facts::CorpusFacts;
    use crate::study::{Action, EventSpec, Moment, Schedule};
    use crate::timeline::build;

    fn absent() -> Corpus {
        Corpus::Absent("not here".into())
    }

    fn known(documents: &[u32]) -> Corpus {
        Corpus::Known(CorpusFacts {
            content: String::new(),
            vocabulary: 257,
            train_documents: Arc::new(documents.to_vec()),
            holdout_documents: Arc::default(),
        })
    }

    fn total(counter: &Counter, schedule: &Schedule, end: Option<u64>) -> Count {
        let timeline = build(schedule, &model(), &training(), counter, end).expect("a schedule");
        counter.count(&timeline.segments).expect("counts").into_iter().sum()
    }

    /// The budgets of 2608.13156, at 62,200 tokens a step and one shard of 50,000 steps.
    #[test]
    fn the_papers_budgets_come_out_to_the_digit() {
        let paper = data(Layout::Padded, Shard::Tokens(3_110_000_000), Some(62_200));
        let counter = Counter::new(&paper, training().batch, &absent(), 0);
        let counts = |count: Count| (count.tokens, count.unique_tokens, count.active_layer_tokens);
        assert_eq!(counts(total(&counter, &joint(50_000), None)), (3_110_000_000, 3_110_000_000, 27_990_000_000));
        let grown = total(&counter, &grow(50_000), None);
        assert_eq!(counts(grown), (9_330_000_000, 3_110_000_000, 55_980_000_000));

        let fresh = EventSpec {
            moment: Moment::Every { steps: 50_000, times: None },
            actions: vec![Action::RestartLr, Action::FreshData],
        };
        let long = Schedule { events: vec![fresh], ..joint(50_000) };
        let solved = |quantity| {
            let cost = |end| total(&counter, &long, Some(end)).quantity(quantity).map(|count| count as f64);
            let target = grown.quantity(quantity).expect("a count") as f64;
            let found = crate::budget::matching::solve(target, cost).expect("a length");
            assert_eq!(found.mismatch, 0.0);
            (found.end, counts(total(&counter, &long, Some(found.end))))
        };
        let by_layers = solved(Quantity::ActiveLayerTokens);
        assert_eq!(by_layers, (100_000, (6_220_000_000, 6_220_000_000, 55_980_000_000)));
        assert_eq!(solved(Quantity::Tokens), (150_000, (9_330_000_000, 9_330_000_000, 83_970_000_000)));
    }

    #[test]
    fn padded_documents_are_counted_along_the_order_of_the_seed() {
        let padded = data(Layout::Padded, Shard::Whole, None);
        let lengths = [2, 9, 4, 6, 5];
        let counter = Counter::new(&padded, training().batch, &known(&lengths), 3);
        let windows = Windows::new(Layout::Padded, padded.context, &lengths);
        let mut order = Order::new(3, Shards::of(&padded, &windows));
        for (start, count) in [(0, 1), (0, 5), (2, 7), (13, 12)] {
            let at = DataPosition { shard: 0, sequence: start, context: None };
            let read: u64 = order.sequences(at, count).into_iter().map(|sequence| windows.real_tokens(sequence)).sum();
            assert_eq!(counter.tokens(at, count, 1), Some(u128::from(read)));
            assert_eq!(counter.tokens(at, 1, count), Some(u128::from(read)));
        }
        assert_eq!(Counter::new(&padded, training().batch, &absent(), 3).tokens(DataPosition::START, 1, 1), None);
    }

    /// What is read in sequences of several lengths is counted by its tokens, against marking them one by one.
    #[test]
    fn tokens_are_unique_whatever_the_context() {
        for layout in [Layout::Packed, Layout::Padded] {
            let (data, lengths) = (data(layout, Shard::Tokens(24), None), [9, 4, 1, 17, 6, 12, 3, 8]);
            let counter = Counter::new(&data, training().batch, &known(&lengths), 5);
            let sets =
                [(3, Action::SetContext(3)), (7, Action::SetContext(7)), (12, Action::SetContext(4)), (14, Action::FreshData)];
            let events = sets.map(|(step, action)| EventSpec { moment: Moment::Step(step), actions: vec![action] }).into();
            let timeline = build(&Schedule { events, ..joint(20) }, &model(), &training(), &counter, None).expect("a schedule");
            let counts = counter.count(&timeline.segments).expect("counts");
            let own = Windows::new(layout, data.context, &lengths);
            let mut seen = std::collections::BTreeSet::new();
            for (segment, count) in timeline.segments.iter().zip(counts) {
                let windows = own.relaid(segment.context(&data));
                let mut order = Order::new(5, Shards::of(&data, &own).relaid(&own, &windows));
                let before = seen.len();
                let read = order.sequences(segment.data, segment.length());
                let tokens: Vec<u64> = read.into_iter().flat_map(|read| windows.tokens(read).skip(1)).collect();
                assert_eq!(count.tokens, tokens.len() as u64, "{layout:?}");
                seen.extend(tokens);
                assert_eq!(count.unique_tokens, (seen.len() - before) as u64, "{layout:?}");
            }
        }
    }

    #[test]
    fn repeated_sequences_are_not_unique() {
        // Ten sequences of 4 tokens in shards of 5.
        let packed = data(Layout::Packed, Shard::Tokens(20), None);
        let counter = Counter::new(&packed, training().batch, &known(&[41]), 0);
        let unique = |moves: &[Action], steps| {
            let moves = EventSpec { moment: Moment::Every { steps, times: None }, actions: moves.to_vec() };
            total(&counter, &Schedule { events: vec![moves], ..joint(1) }, Some(3 * steps)).unique_tokens
        };
        // A batch is one sequence.
        assert_eq!([unique(&[Action::RewindData], 2), unique(&[Action::RewindData], 6)], [8, 20]);
        assert_eq!([unique(&[Action::FreshData], 1), unique(&[Action::FreshData], 5)].map(|tokens| tokens >= 8), [true, true]);
        assert_eq!(unique(&[Action::FreshData], 5), 40);
        assert!(unique(&[Action::FreshData], 4) <= 36);
    }
}
