//! The stack of layers under growth: where new ones go and how they start.
//!
//! Owns identities and places. Deliberately knows no steps. Invariant: identities are given in the order of creation and never
//! again; copies are of layers that stood in the stack before the event.

use super::error::Fault;
use super::{FirstValues, LayerId, NewLayer};
use crate::study::schedule::{GrowFrom, Insert};

/// A stack and the layers that its latest growth made.
#[derive(Debug, Clone)]
pub(super) struct Stack {
    /// From bottom to top.
    pub(super) layers: Vec<LayerId>,
    /// The newest block: layers of the latest growth; before any, the top block.
    pub(super) newest: Vec<LayerId>,
    next: u32,
    most: usize,
}

impl Stack {
    /// The first `depth` layers of a model that has `most` of them, in blocks of `block`.
    pub(super) fn new(depth: usize, block: usize, most: usize) -> Self {
        let layers: Vec<LayerId> = (0..depth as u32).map(LayerId).collect();
        let newest = layers[depth.saturating_sub(block)..].to_vec();
        Self { layers, newest, next: depth as u32, most }
    }

    /// Adds `count` layers; `before` is the stack before the event, of which copies are made.
    pub(super) fn grow(&mut self, count: usize, at: Insert, from: GrowFrom, before: &[LayerId]) -> Result<Vec<NewLayer>, Fault> {
        let old = self.layers.len();
        let wanted = old.saturating_add(count);
        if count == 0 {
            return Err(Fault::GrowsNothing);
        }
        if wanted > self.most {
            return Err(Fault::GrowsPast { wanted, layers: self.most });
        }
        let firsts = firsts(count, from, before)?;
        let places: Vec<usize> = match at {
            Insert::Top => vec![old; count],
            Insert::Bottom => vec![0; count],
            Insert::After(place) if (1..=old).contains(&place) => vec![place; count],
            Insert::After(place) => return Err(Fault::NoSuchLayer { place, depth: old }),
            Insert::Middle => vec![old / 2; count],
            // The j-th of n new layers lies above the first (j + 1) · old / n old ones.
            Insert::Interleaved if count <= old => (1..=count).map(|group| group * old / count).collect(),
            Insert::Interleaved => return Err(Fault::Interleaved { new: count, old }),
        };
        let new: Vec<NewLayer> = (self.next..).map(LayerId).zip(firsts).map(|(layer, first)| NewLayer { layer, first }).collect();
        self.next += count as u32;
        // From the top down, so that places keep their meaning while others are filled.
        for (place, layer) in places.iter().zip(&new).rev() {
            self.layers.insert(*place, layer.layer);
        }
        self.newest = new.iter().map(|layer| layer.layer).collect();
        Ok(new)
    }

    /// Takes layers from the top.
    pub(super) fn drop(&mut self, count: usize, block: usize) -> Result<(), Fault> {
        let depth = self.layers.len();
        if count >= depth {
            return Err(Fault::DropsAll { layers: count, depth });
        }
        self.layers.truncate(depth - count);
        self.newest.retain(|layer| self.layers.contains(layer));
        if self.newest.is_empty() {
            self.newest = self.layers[self.layers.len().saturating_sub(block)..].to_vec();
        }
        Ok(())
    }

    /// The layers at places `first..=last`, from 1.
    pub(super) fn range(&self, first: usize, last: usize) -> Result<&[LayerId], Fault> {
        places(&self.layers, first, last)
    }

    /// How many layers lie below the newest block.
    pub(super) fn below_newest(&self) -> usize {
        self.layers.iter().position(|layer| self.newest.contains(layer)).unwrap_or(0)
    }

    /// After how many layers each block ends. Blocks are counted from the bottom; the last may be incomplete.
    pub(super) fn block_ends(&self, block: usize) -> Vec<usize> {
        let depth = self.layers.len();
        (1..).map(|number| number * block.max(1)).take_while(|end| *end < depth).chain([depth]).collect()
    }
}

fn places(stack: &[LayerId], first: usize, last: usize) -> Result<&[LayerId], Fault> {
    if first == 0 || last > stack.len() {
        let place = if first == 0 { 0 } else { last };
        return Err(Fault::NoSuchLayer { place, depth: stack.len() });
    }
    if first > last {
        return Err(Fault::EmptyRange { first, last });
    }
    Ok(&stack[first - 1..last])
}

/// How each of `count` new layers starts, from the lowest up.
fn firsts(count: usize, from: GrowFrom, before: &[LayerId]) -> Result<Vec<FirstValues>, Fault> {
    let copies = |of: &[LayerId]| of.iter().cycle().take(count).map(|layer| FirstValues::CopyOf(*layer)).collect();
    Ok(match from {
        GrowFrom::Init => vec![FirstValues::Init; count],
        GrowFrom::Identity => vec![FirstValues::Identity; count],
        GrowFrom::CopyLast => copies(&before[before.len().saturating_sub(count)..]),
        GrowFrom::CopyAll => copies(before),
        GrowFrom::CopyLayers { first, last } => copies(places(before, first, last)?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(layers: &[LayerId]) -> Vec<u32> {
        layers.iter().map(|layer| layer.0).collect()
    }

    fn grown(depth: usize, count: usize, at: Insert) -> Vec<u32> {
        let mut stack = Stack::new(depth, 2, 100);
        stack.grow(count, at, GrowFrom::Init, &[]).expect("grows");
        ids(&stack.layers)
    }

    #[test]
    fn new_layers_go_where_they_are_told() {
        assert_eq!(grown(2, 2, Insert::Top), [0, 1, 2, 3]);
        assert_eq!(grown(2, 2, Insert::Bottom), [2, 3, 0, 1]);
        assert_eq!(grown(3, 2, Insert::After(2)), [0, 1, 3, 4, 2]);
        assert_eq!(grown(3, 1, Insert::Middle), [0, 3, 1, 2]);
        assert_eq!(grown(4, 2, Insert::Interleaved), [0, 1, 4, 2, 3, 5]);
        assert_eq!(grown(3, 2, Insert::Interleaved), [0, 3, 1, 2, 4]);
    }

    #[test]
    fn copies_repeat_as_needed() {
        let mut stack = Stack::new(3, 1, 100);
        let before = stack.layers.clone();
        let sources = |new: Vec<NewLayer>| -> Vec<u32> {
            new.iter().map(|layer| if let FirstValues::CopyOf(of) = layer.first { of.0 } else { 99 }).collect()
        };
        let mut grow = |count, from| stack.grow(count, Insert::Top, from, &before).map(sources);
        assert_eq!(grow(2, GrowFrom::CopyLast), Ok(vec![1, 2]));
        assert_eq!(grow(4, GrowFrom::CopyLast), Ok(vec![0, 1, 2, 0]));
        assert_eq!(grow(5, GrowFrom::CopyAll), Ok(vec![0, 1, 2, 0, 1]));
        assert_eq!(grow(3, GrowFrom::CopyLayers { first: 2, last: 3 }), Ok(vec![1, 2, 1]));
        assert_eq!(grow(1, GrowFrom::CopyLayers { first: 2, last: 4 }), Err(Fault::NoSuchLayer { place: 4, depth: 3 }));
        assert_eq!(grow(1, GrowFrom::CopyLayers { first: 3, last: 2 }), Err(Fault::EmptyRange { first: 3, last: 2 }));
    }

    #[test]
    fn dropped_identities_are_not_given_again() {
        let mut stack = Stack::new(3, 1, 4);
        stack.drop(1, 1).expect("drops");
        stack.grow(1, Insert::Top, GrowFrom::Init, &[]).expect("grows");
        assert_eq!(ids(&stack.layers), [0, 1, 3]);
        assert_eq!(stack.drop(3, 1), Err(Fault::DropsAll { layers: 3, depth: 3 }));
        assert_eq!(stack.block_ends(2), [2, 3]);
    }
}
