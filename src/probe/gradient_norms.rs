//! How large the gradient is in each layer: L2 norms by group of parameters, of the cross entropy of the probe's batch.
//!
//! Cross entropy and not the loss that is trained: arms of different losses stay comparable, and no teacher has to be asked. Every parameter
//! counts, frozen or not: it is the slope of the loss at this checkpoint, not of the next step.

use indexmap::IndexMap;

use super::View;
use crate::budget::params::{Group, parameters};
use crate::run::record::{LayerGradient, ProbeRecord, Real};
use crate::run::worker::Failure;
use crate::tensor::{Home, Operations, OwnedTape, Param, Targets, Term, backward};
use crate::train::refused;

/// One row for each layer from the bottom, and what lies around them.
pub(super) fn probe<D: Home>(view: &View<'_, D>) -> Result<ProbeRecord, Failure> {
    let View { device, network, .. } = view;
    let ops = D::Operations::default();
    let tokens = view.batch.tokens();
    let mut ce = 0.0;
    let mut sums: IndexMap<&str, Param<f32, D>> = IndexMap::new();
    for part in view.parts() {
        let mut tape = OwnedTape::default();
        let rows = network.rows(device, &part).map_err(refused)?;
        let targets = Targets::new(*device, &part.labels, &part.counted, tokens).map_err(refused)?;
        let embedded = network.embed(&mut tape, &rows).map_err(refused)?;
        let layers = 0..network.stack.len();
        let x = network.layers(&mut tape, layers, &rows, embedded.clone(), &embedded).map_err(refused)?;
        let x = network.exit(&mut tape, &rows, &x, &embedded).map_err(refused)?;
        let terms = [Term::CrossEntropy { factor: 1.0 }];
        let loss = ops.loss(&mut tape, &x, network.table(), &targets, &terms).map_err(refused)?;
        ce += f64::from(loss.as_vec()[0]);
        let mut found = backward(loss, tape).map_err(refused)?;
        for (name, param) in &network.params.0 {
            let gradient = ops.gradient(param, &mut found).map_err(refused)?;
            let sum = match sums.swap_remove(name.as_str()) {
                Some(sum) => sum.plus(gradient).map_err(refused)?,
                None => gradient,
            };
            sums.insert(name, sum);
        }
    }
    // Sums of squares until the end, then roots.
    let (mut embedding, mut ends, mut head) = (0.0, None, None);
    let mut layers = vec![LayerGradient::default(); network.stack.len()];
    for spec in parameters(network.model, network.stack, network.block_ends) {
        let squares = sums.get(spec.name.as_str()).map_or(0.0, |gradient| ops.sum_of_squares(gradient));
        let place = spec.layer.and_then(|layer| network.stack.iter().position(|other| *other == layer));
        match (spec.group, place) {
            (Group::Embedding, _) => embedding += squares,
            (Group::Head, _) => *head.get_or_insert(0.0) += squares,
            (_, None) => *ends.get_or_insert(0.0) += squares,
            (Group::Norm, Some(place)) => layers[place].norms.0 += squares,
            (Group::Gain, Some(place)) => layers[place].gains.0 += squares,
            (Group::Matrix, Some(place)) if spec.name.contains(".attention.") => layers[place].attention.0 += squares,
            (Group::Matrix, Some(place)) => layers[place].ffn.0 += squares,
        }
    }
    for LayerGradient { attention, ffn, norms, gains } in &mut layers {
        for squares in [attention, ffn, norms, gains] {
            squares.0 = libm::sqrt(squares.0);
        }
    }
    let root = |squares: f64| Real(libm::sqrt(squares));
    Ok(ProbeRecord::GradientNorms {
        ce: Real(ce),
        embedding: root(embedding),
        layers,
        ends: ends.map(root),
        head: head.map(root),
    })
}
