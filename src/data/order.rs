//! Which sequence at which step: a function of seed, shard and position.

use std::ops::Range;

use rand::seq::SliceRandom;

use super::pack::Shards;
use crate::study::seed;
use crate::timeline::DataPosition;

/// Yields the sequences of a run. Every epoch over a shard visits each of its sequences once, in an order of its own. The shards are
/// those of one context: which is told by a position and asked of nobody here.
///
/// The order depends on the seed and the data alone, so that all arms of one seed read the same sequences at the same position.
#[derive(Debug, Clone)]
pub struct Order {
    seed: u64,
    shards: Shards,
    /// The epoch shuffled last, as (shard, epoch, sequences): steps come in order, so that one is nearly always enough.
    epoch: Option<(u64, u64, Vec<u64>)>,
}

impl Order {
    /// The order of a run.
    pub fn new(seed: u64, shards: Shards) -> Self {
        Self { seed, shards, epoch: None }
    }
    /// The `count` sequences from `position` on.
    pub fn sequences(&mut self, position: DataPosition, count: u64) -> Vec<u64> {
        let shard = self.shards.sequences(position.shard);
        let length = shard.end - shard.start;
        (position.sequence..position.sequence + count)
            .map(|at| self.epoch(position.shard, at / length, &shard)[(at % length) as usize])
            .collect()
    }
    fn epoch(&mut self, shard: u64, epoch: u64, sequences: &Range<u64>) -> &[u64] {
        let fresh = !matches!(&self.epoch, Some((s, e, _)) if (*s, *e) == (shard, epoch));
        if fresh {
            let mut shuffled: Vec<u64> = sequences.clone().collect();
            let laid = self.shards.context().map_or_else(String::new, |context| format!("context/{context}/"));
            shuffled.shuffle(&mut seed::stream(self.seed, &format!("order/{laid}shard/{shard}/epoch/{epoch}")));
            self.epoch = Some((shard, epoch, shuffled));
        }
        self.epoch.as_ref().map_or(&[], |(_, _, shuffled)| shuffled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::pack::Windows;
    use crate::study::{Layout, Shard};

    #[test]
    fn an_epoch_visits_every_sequence_once_and_depends_on_seed_and_position_alone() {
        let shards = || Shards::new(Shard::Tokens(40), &Windows::new(Layout::Packed, 4, &[401]));
        let mut order = Order::new(3, shards());
        let at = |sequence| DataPosition { shard: 1, sequence, context: None };
        let first = order.sequences(at(0), 10);
        let second = order.sequences(at(10), 10);
        assert_ne!(first, second);
        for epoch in [&first, &second] {
            let mut sorted = epoch.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (10..20).collect::<Vec<_>>());
        }
        let mut again = Order::new(3, shards());
        assert_eq!(again.sequences(at(7), 6), [&first[7..], &second[..3]].concat());
        assert_ne!(Order::new(4, shards()).sequences(at(0), 10), first);
    }
}
