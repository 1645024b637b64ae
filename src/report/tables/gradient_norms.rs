//! How large the gradient is in each layer, by group of parameters.

use crate::report::model::{Cell, Format, Table};
use crate::report::number;
use crate::report::reading::{Paired, Reading};
use crate::run::record::{LayerGradient, ProbeRecord, Real};
use crate::study::ProbeKind;

use super::INTERVALS;

/// Where parameters are.
#[derive(Clone, Copy)]
enum Place {
    Embedding,
    Layer(usize),
    Ends,
    Head,
}

/// A group of a layer's parameters.
type Group = fn(&LayerGradient) -> Real;

/// Of all parameters of a layer.
fn whole(layer: &LayerGradient) -> Real {
    let squares = [layer.attention, layer.ffn, layer.norms, layer.gains].map(|norm| norm.0 * norm.0);
    Real(squares.iter().sum::<f64>().sqrt())
}

/// What a probe saw of a place: of all its parameters, unless a group of a layer's is asked for.
fn read(record: &ProbeRecord, place: Place, group: Option<Group>) -> Option<f64> {
    let ProbeRecord::GradientNorms { embedding, layers, ends, head, .. } = record else { return None };
    let seen = match (place, group) {
        (Place::Layer(layer), _) => layers.get(layer).map(group.unwrap_or(whole)),
        (_, Some(_)) => None,
        (Place::Embedding, None) => Some(*embedding),
        (Place::Ends, None) => *ends,
        (Place::Head, None) => *head,
    };
    seen.map(|norm| norm.0)
}

fn records<'a>(reading: &'a Reading<'_>, arm: usize, step: u64) -> impl Iterator<Item = &'a ProbeRecord> {
    let probes = reading.runs_of(arm).filter_map(move |run| reading.probe(arm, run.seed, ProbeKind::GradientNorms, Some(step)));
    probes.map(|probe| &probe.record)
}

/// The places that an arm had at a step, from the input to the output.
fn places(reading: &Reading<'_>, arm: usize, step: u64) -> Vec<Place> {
    let seen = |place: &Place| records(reading, arm, step).any(|record| read(record, *place, None).is_some());
    let layers = (0..).map(Place::Layer).take_while(seen);
    let ends = [Place::Ends, Place::Head].into_iter().filter(seen);
    [Place::Embedding].into_iter().chain(layers).chain(ends).collect()
}

fn number_of(reading: &Reading<'_>, arm: usize, step: u64, place: Place, group: Option<Group>) -> Paired {
    reading.probed(arm, ProbeKind::GradientNorms, step, |probe| read(&probe.record, place, group))
}

/// The norm over all parameters of each layer of an arm from the bottom, by the step of the probe.
pub fn layers(reading: &Reading<'_>, arm: usize) -> Vec<(u64, Vec<Paired>)> {
    let at = |step: u64| {
        let layers = places(reading, arm, step).into_iter().filter(|place| matches!(place, Place::Layer(_)));
        (step, layers.map(|place| number_of(reading, arm, step, place, None)).collect())
    };
    reading.probed_at(arm, ProbeKind::GradientNorms).into_iter().map(at).collect()
}

pub fn table(reading: &Reading<'_>) -> Option<Table> {
    let mut groups: Vec<(&str, Option<Group>)> = vec![
        ("attention", Some(|layer| layer.attention)),
        ("ffn", Some(|layer| layer.ffn)),
        ("norms", Some(|layer| layer.norms)),
        ("gains", Some(|layer| layer.gains)),
        ("all", None),
    ];
    let probes = reading.story.runs.iter().flat_map(|run| &run.probes);
    let mut layers = probes.flat_map(|probe| match &probe.record {
        ProbeRecord::GradientNorms { layers, .. } => layers.as_slice(),
        _ => &[],
    });
    if !layers.any(|layer| layer.gains.0 != 0.0) {
        groups.retain(|(label, _)| *label != "gains");
    }
    let mut table = Table::new("Gradient norms", &["arm", "after step", "of"]);
    for (label, _) in &groups {
        table.column((*label).to_owned(), Format::Value { family: 0, otherwise: 4 });
    }
    for (index, arm) in reading.study().arms.iter().enumerate() {
        for step in reading.probed_at(index, ProbeKind::GradientNorms) {
            for place in places(reading, index, step) {
                let name = match place {
                    Place::Embedding => "embedding".to_owned(),
                    Place::Layer(layer) => format!("layer {}", layer + 1),
                    Place::Ends => "entry and exit".to_owned(),
                    Place::Head => "head".to_owned(),
                };
                let cell = |group: Option<Group>| match (place, group) {
                    (Place::Layer(_), _) | (_, None) => Cell::mean(&number_of(reading, index, step, place, group)),
                    (_, Some(_)) => Cell::blank(),
                };
                let cells = groups.iter().map(|(_, group)| cell(*group));
                table.row(vec![arm.name.clone(), number::exact(step), name], cells.collect());
            }
        }
    }
    table.finish(format!(
        "L2 norm of the gradient of the cross entropy (nats/token) on the probe's batch, whether or not the parameters learn; layers counted from \
         1 at the bottom, norms and gains of a boundary with the layer below it. At an event, the model before it. {INTERVALS}"
    ))
}
