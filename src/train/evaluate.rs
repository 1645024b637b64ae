//! Validation: means over the counted tokens of the holdout, each token with the same weight, at any batch size.

use super::refused;
use super::step::in_vocabulary;
use super::teacher::Teacher;
use crate::budget::speaking::ROWS;
use crate::data::Batch;
use crate::data::corpus::Part;
use crate::model::{Network, Without};
use crate::run::worker::Failure;
use crate::tensor::{Device, Divergence, NoneTape, Operations, Real, Targets};

/// Means over counted tokens, in nats.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evaluation {
    /// Cross entropy; NaN over no token.
    pub ce: f64,
    /// KL(teacher ‖ student), where a teacher was given.
    pub kl: Option<f64>,
    /// Counted tokens.
    pub tokens: u64,
}

/// Evaluates a network on batches, which are held one at a time, and of one, unless a KL is asked for, the logits of a stretch of tokens.
/// `teacher` comes with the temperature of the KL. `each` is shown every batch with the cross entropy of its cells, in nats.
pub fn evaluate<E: Real, D: Device<E>, O: Operations<E, D>>(
    network: &Network<'_, E, D, O>,
    device: &D,
    batches: impl Iterator<Item = Batch>,
    teacher: Option<(&Teacher<E, D>, f64)>,
    without: Without,
    mut each: impl FnMut(&Batch, &[E]),
) -> Result<Evaluation, Failure> {
    let ops = O::default();
    let (mut ce, mut kl, mut tokens) = (0.0, 0.0, 0);
    for batch in batches {
        in_vocabulary(network.model, &batch)?;
        let rows = network.rows(device, &batch).map_err(refused)?;
        let x = network.stream(&rows, without, |_, _| ()).map_err(refused)?;
        let mut own = Vec::with_capacity(batch.labels.len());
        let cells = x.as_vec();
        let some = cells.chunks(ROWS * network.model.width).zip(batch.labels.chunks(ROWS)).zip(batch.counted.chunks(ROWS));
        for ((x, labels), real) in some {
            let x = device.try_tensor_from_vec(x.to_vec(), (labels.len(), network.model.width)).map_err(refused)?;
            let logits = ops.head(&mut NoneTape, &x, network.table()).map_err(refused)?;
            let targets = Targets::new(device, labels, real, 1).map_err(refused)?;
            own.extend(ops.cross_entropy(&mut NoneTape, &logits, &targets).map_err(refused)?.as_vec());
        }
        ce += counted(&own, &batch.counted);
        each(&batch, &own);
        if let Some((teacher, temperature)) = teacher {
            let logits = ops.head(&mut NoneTape, &x, network.table()).map_err(refused)?;
            let said = teacher.about::<O>(device, (&batch, Part::Holdout), |other| other == temperature)?;
            let apart = ops.apart(&mut NoneTape, &logits, said.at(temperature)?, Divergence::Kl, temperature).map_err(refused)?;
            kl += counted(&apart.as_vec(), &batch.counted);
        }
        tokens += batch.tokens();
    }
    Ok(Evaluation { ce: ce / tokens as f64, kl: teacher.map(|_| kl / tokens as f64), tokens })
}

/// Σ over counted tokens.
pub(crate) fn counted<E: Real>(values: &[E], counted: &[bool]) -> f64 {
    values.iter().zip(counted).filter(|(_, counted)| **counted).map(|(value, _)| -> f64 { (*value).into() }).sum()
}
