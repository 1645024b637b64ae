//! RMS of the residual stream after each block: r_t = sqrt(mean_d h²), its moments over tokens by class (2608.13156).

use crate::data::Batch;
use crate::model::Network;
use crate::run::record::{BoundaryRms, Moments, ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::Home;
use crate::train::refused;

/// One row for each block from the bottom.
pub(super) fn probe<D: Home>(
    device: &D,
    network: &Network<'_, f32, D, D::Operations>,
    batch: &Batch,
) -> Result<ProbeRecord, Failure> {
    let rows = network.rows(device, batch).map_err(refused)?;
    let width = network.model.width;
    let mut blocks = Vec::new();
    let look = |block: usize, stream: &crate::tensor::Matrix<f32, D>| {
        if block == 0 {
            return;
        }
        let square = |channel: &f32| f64::from(*channel) * f64::from(*channel);
        let values = stream.as_vec();
        let rms = values.chunks_exact(width).map(|h| libm::sqrt(h.iter().map(square).sum::<f64>() / width as f64));
        let rms: Vec<f64> = rms.collect();
        let class = |wanted: &dyn Fn(usize) -> bool| {
            let kept = rms.iter().enumerate().filter(|(at, _)| batch.counted[*at] && wanted(*at));
            moments(&kept.map(|(_, value)| *value).collect::<Vec<_>>())
        };
        blocks.push(BoundaryRms {
            all: class(&|_| true),
            structural: class(&|at| batch.structural[at]),
            regular: class(&|at| !batch.structural[at]),
        });
    };
    network.logits(&rows, None, look).map_err(refused)?;
    Ok(ProbeRecord::BoundaryRms { blocks })
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
