//! What each block is worth: ΔCE without it, and how far it turns the residual stream (2608.13156).

use super::View;
use crate::model::Without;
use crate::run::record::{BlockRemoval, ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::{Home, Matrix};
use crate::train::{evaluate, refused};

/// One row for each block from the bottom.
pub(super) fn probe<D: Home>(view: &View<'_, D>) -> Result<ProbeRecord, Failure> {
    let View { device, network, .. } = view;
    let ce = |without| evaluate(network, *device, view.parts(), None, without, |_, _| ()).map(|seen| seen.ce);
    let whole = ce(Without::Nothing)?;
    let mut angles = vec![0.0; network.block_ends.len()];
    for part in view.parts() {
        let rows = network.rows(device, &part).map_err(refused)?;
        let mut before = Vec::new();
        let look = |block: usize, stream: &Matrix<f32, D>| {
            let after = stream.as_vec();
            if block > 0 {
                angles[block - 1] += turned(&before, &after, network.model.width, &part.counted);
            }
            before = after;
        };
        network.stream(&rows, Without::Nothing, look).map_err(refused)?;
    }
    let tokens = view.batch.tokens() as f64;
    let mut blocks = Vec::new();
    for (block, angle) in angles.into_iter().enumerate() {
        blocks.push(BlockRemoval { delta_ce: Real(ce(Without::Block(block))? - whole), angle: Real(angle / tokens) });
    }
    Ok(ProbeRecord::BlockRemoval { ce: Real(whole), blocks })
}

/// Sum over counted tokens of arccos(cos(before, after))/π.
fn turned(before: &[f32], after: &[f32], width: usize, counted: &[bool]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let tokens = before.chunks_exact(width).zip(after.chunks_exact(width)).zip(counted);
    let angles = tokens.filter(|(_, counted)| **counted).map(|((before, after), _)| {
        let cosine = dot(before, after) / libm::sqrt(dot(before, before) * dot(after, after));
        libm::acos(cosine.clamp(-1.0, 1.0)) / std::f64::consts::PI
    });
    angles.sum()
}

#[cfg(test)]
mod tests {
    use super::turned;

    #[test]
    fn angles_of_known_vectors() {
        let seen = turned(&[1.0, 0.0, 1.0, 0.0, 9.0, 9.0], &[0.0, 2.0, -3.0, 0.0, 0.0, 9.0], 2, &[true, true, false]);
        assert!((seen - 1.5).abs() < 1e-15);
    }
}
