//! How far the answer has come after each block: cross entropy of the head, behind the model's exit equation, on the stream there.

use super::View;
use crate::run::record::{ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::{Home, NoneTape, Operations, Targets};
use crate::train::{counted, refused};

/// The stream before the first block, then after each block from the bottom; the last is the model's own cross entropy.
pub(super) fn probe<D: Home>(view: &View<'_, D>) -> Result<ProbeRecord, Failure> {
    let View { device, network, .. } = view;
    let ops = D::Operations::default();
    let tape = &mut NoneTape;
    let blocks = network.block_ends.len();
    let mut sums = vec![0.0; blocks + 1];
    for part in view.parts() {
        let rows = network.rows(device, &part).map_err(refused)?;
        let targets = Targets::new(*device, &part.labels, &part.counted, 1).map_err(refused)?;
        let embedded = network.embed(tape, &rows).map_err(refused)?;
        let mut x = embedded.clone();
        for (place, sum) in sums.iter_mut().enumerate() {
            if let Some(block) = place.checked_sub(1) {
                x = network.layers(tape, network.block(block), &rows, x, &embedded).map_err(refused)?;
            }
            let read = network.exit(tape, &rows, &x, &embedded).map_err(refused)?;
            let logits = ops.head(tape, &read, network.table()).map_err(refused)?;
            let each = ops.cross_entropy(tape, &logits, &targets).map_err(refused)?;
            *sum += counted(&each.as_vec(), &part.counted);
        }
    }
    let tokens = view.batch.tokens() as f64;
    Ok(ProbeRecord::LogitLens { ce: sums.into_iter().map(|sum| Real(sum / tokens)).collect() })
}
