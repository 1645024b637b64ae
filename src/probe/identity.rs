//! What the sublayers of each block are worth: ΔCE with their answers at 0, the wiring around them still running.
//!
//! The other reading of "without a block" beside [`super::block_removal`], which takes the block's norms and boundary equation with it.
//! The two agree where the stream passes a silent block unchanged (pre-norm without a boundary equation), and tell the norms on the stream
//! from the sublayers where it does not (post-norm).

use super::View;
use crate::model::Without;
use crate::run::record::{ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::Home;
use crate::train::evaluate;

/// One number for each block from the bottom.
pub(super) fn probe<D: Home>(view: &View<'_, D>) -> Result<ProbeRecord, Failure> {
    let View { device, network, .. } = view;
    let ce = |without| evaluate(network, *device, view.parts(), None, without, |_, _| ()).map(|seen| seen.ce);
    let whole = ce(Without::Nothing)?;
    let blocks = 0..network.block_ends.len();
    let deltas = blocks.map(|block| Ok(Real(ce(Without::Sublayers(block))? - whole)));
    Ok(ProbeRecord::Identity { ce: Real(whole), delta_ce: deltas.collect::<Result<_, Failure>>()? })
}
