//! RMS of the residual stream after each block: r_t = sqrt(mean_d h²), its moments over tokens by class (2608.13156).

use super::View;
use crate::model::Without;
use crate::run::record::{BoundaryRms, Moments, ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::{Home, Matrix};
use crate::train::refused;

/// One row for each block from the bottom.
pub(super) fn probe<D: Home>(view: &View<'_, D>) -> Result<ProbeRecord, Failure> {
    let network = &view.network;
    let width = network.model.width;
    // For each block the RMS of every counted token, and whether the token ends a document.
    let mut seen: Vec<Vec<(f64, bool)>> = vec![Vec::new(); network.block_ends.len()];
    for part in view.parts() {
        let rows = network.rows(view.device, &part).map_err(refused)?;
        let look = |block: usize, stream: &Matrix<f32, D>| {
            if block == 0 {
                return;
            }
            let square = |channel: &f32| f64::from(*channel) * f64::from(*channel);
            for (at, h) in stream.as_vec().chunks_exact(width).enumerate().filter(|(at, _)| part.counted[*at]) {
                let rms = libm::sqrt(h.iter().map(square).sum::<f64>() / width as f64);
                seen[block - 1].push((rms, part.structural[at]));
            }
        };
        network.stream(&rows, Without::Nothing, look).map_err(refused)?;
    }
    let class = |tokens: &[(f64, bool)], wanted: &dyn Fn(bool) -> bool| {
        let kept = tokens.iter().filter(|(_, structural)| wanted(*structural));
        moments(&kept.map(|(rms, _)| *rms).collect::<Vec<_>>())
    };
    let blocks = seen.iter().map(|tokens| BoundaryRms {
        all: class(tokens, &|_| true),
        structural: class(tokens, &|structural| structural),
        regular: class(tokens, &|structural| !structural),
    });
    Ok(ProbeRecord::BoundaryRms { blocks: blocks.collect() })
}

/// Central moments, divided by n; kurtosis is m₄ / m₂².
fn moments(values: &[f64]) -> Moments {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let central = |power: i32| values.iter().map(|value| (value - mean).powi(power)).sum::<f64>() / n;
    let variance = central(2);
    Moments {
        n: values.len() as u64,
        mean: Real(mean),
        std: Real(libm::sqrt(variance)),
        kurtosis: Real(central(4) / (variance * variance)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_of_a_known_sample() {
        let seen = moments(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        assert_eq!((seen.n, seen.mean.0), (5, 3.0));
        assert!((seen.std.0 - 2.0_f64.sqrt()).abs() < 1e-15);
        assert!((seen.kurtosis.0 - 1.7).abs() < 1e-12);
        assert!(moments(&[]).mean.0.is_nan());
    }
}
