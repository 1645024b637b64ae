//! What each block is worth: ΔCE without it, and how far it turns the residual stream (2608.13156).

use crate::data::Batch;
use crate::model::Network;
use crate::run::record::{BlockRemoval, ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::{Home, Matrix};
use crate::train::{evaluate, refused};

/// One row for each block from the bottom.
pub(super) fn probe<D: Home>(
    device: &D,
    network: &Network<'_, f32, D, D::Operations>,
    batch: &Batch,
) -> Result<ProbeRecord, Failure> {
    let ce = |skip| evaluate(network, device, std::iter::once(batch.clone()), None, skip).map(|seen| seen.ce);
    let whole = ce(None)?;
    let rows = network.rows(device, batch).map_err(refused)?;
    let mut streams: Vec<Vec<f32>> = Vec::new();
    let look = |_, stream: &Matrix<f32, D>| streams.push(stream.as_vec());
    network.logits(&rows, None, look).map_err(refused)?;
    let mut blocks = Vec::new();
    for block in 0..network.block_ends.len() {
        let delta_ce = Real(ce(Some(block))? - whole);
        let angle = Real(angle(&streams[block], &streams[block + 1], network.model.width, &batch.counted));
        blocks.push(BlockRemoval { delta_ce, angle });
    }
    Ok(ProbeRecord::BlockRemoval { ce: Real(whole), blocks })
}

/// Mean over counted tokens of arccos(cos(before, after))/π.
fn angle(before: &[f32], after: &[f32], width: usize, counted: &[bool]) -> f64 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    let (mut sum, mut n) = (0.0, 0.0);
    let tokens = before.chunks_exact(width).zip(after.chunks_exact(width)).zip(counted);
    for ((before, after), _) in tokens.filter(|(_, counted)| **counted) {
        let cosine = dot(before, after) / libm::sqrt(dot(before, before) * dot(after, after));
        sum += libm::acos(cosine.clamp(-1.0, 1.0)) / std::f64::consts::PI;
        n += 1.0;
    }
    sum / n
}

#[cfg(test)]
mod tests {
    use super::angle;

    #[test]
    fn angles_of_known_vectors() {
        let seen = angle(&[1.0, 0.0, 1.0, 0.0, 9.0, 9.0], &[0.0, 2.0, -3.0, 0.0, 0.0, 9.0], 2, &[true, true, false]);
        assert!((seen - 0.75).abs() < 1e-15);
    }
}
