//! The state with which a phase begins: its parent's, after the event, or a fresh one.

use std::cell::OnceCell;
use std::path::PathBuf;

use indexmap::IndexMap;

use super::checkpoint::Values;
use super::optimizer::Moments;
use super::sets::Learning;
use super::step::{State, param};
use super::teacher::load_checkpoint;
use super::{Checkpoint, imported};
use crate::budget::params::{ParamSpec, TeacherTensor};
use crate::data::hub::{Hub, Tensors, beside};
use crate::model::{Params, first_values};
use crate::run::worker::Failure;
use crate::tensor::{Device, Real};
use crate::timeline::{FirstValues, Segment};

/// Where first values come from that are neither drawn nor copied.
#[derive(Debug)]
pub struct Sources {
    teacher: Option<Lies>,
    folder: PathBuf,
    taken: OnceCell<Result<Weights, String>>,
    file: OnceCell<Result<Tensors, String>>,
}

/// Where a teacher lies.
#[derive(Debug)]
pub enum Lies {
    /// In the folder of the node that trained it.
    Node(PathBuf),
    /// In a folder of others.
    Folder(PathBuf),
}

#[derive(Debug)]
enum Weights {
    Ours(Checkpoint),
    Theirs(Hub),
}

impl Sources {
    /// `folder`: that of the `.exp` file.
    pub fn new(teacher: Option<Lies>, folder: PathBuf) -> Self {
        Self { teacher, folder, taken: OnceCell::new(), file: OnceCell::new() }
    }
}

impl crate::model::Teacher for Sources {
    fn tensor(&self, tensor: TeacherTensor) -> Result<Vec<f32>, String> {
        let read = self.taken.get_or_init(|| match &self.teacher {
            Some(Lies::Node(folder)) => {
                load_checkpoint(folder, "the teacher").map(Weights::Ours).map_err(|failure| failure.to_string())
            }
            Some(Lies::Folder(folder)) => imported::open(folder).map(Weights::Theirs).map_err(|failure| failure.to_string()),
            None => Err("the model takes a tensor from a teacher, and there is none".to_owned()),
        });
        let weights = read.as_ref().map_err(String::clone)?;
        let names = tensor.names();
        let found = names.iter().find_map(|name| match weights {
            Weights::Ours(checkpoint) => checkpoint.params.get(*name).map(|(_, values)| values.clone()),
            Weights::Theirs(hub) => imported::values(&hub.tensors, name).ok().map(|(_, values)| values),
        });
        found.ok_or_else(|| format!("the teacher has no `{}`", names[0]))
    }

    fn file(&self, file: &str, content: Option<&str>, name: &str) -> Result<Vec<f32>, String> {
        // A model starts from one file.
        let read = self.file.get_or_init(|| {
            let tensors = Tensors::of_file(&beside(&self.folder, file)?).map_err(|error| error.to_string())?;
            match content {
                Some(content) if tensors.content().map_err(|error| error.to_string())? != content => {
                    Err(format!("the weights in \"{file}\" have changed since the plan was made; plan again"))
                }
                _ => Ok(tensors),
            }
        });
        let tensors = read.as_ref().map_err(String::clone)?;
        imported::values(tensors, name).map(|(_, values)| values).map_err(|error| format!("`{file}`: {error}"))
    }
}

/// Parameters and optimizer state at the first step of a segment.
///
/// The event's order: layers leave, layers arrive (copies are of the model before the event), the optimizer is reset, what is frozen
/// loses its state. A parameter that the parent does not have starts as new. What stays is moved, not copied.
pub fn begin<E: Real, D: Device<E>>(
    device: &D,
    seed: u64,
    specs: &[ParamSpec],
    segment: &Segment,
    learning: &Learning,
    parent: Option<Checkpoint>,
    sources: &Sources,
) -> Result<State<E, D>, Failure> {
    let (mut before, mut moments, meta) = match parent {
        Some(Checkpoint { params, moments, meta }) => (params, moments, Some(meta)),
        None => Default::default(),
    };
    let new = |spec: &ParamSpec| spec.layer.and_then(|layer| segment.new_layers.iter().find(|new| new.layer == layer));
    let mut copies: IndexMap<&str, Values> = IndexMap::new();
    for spec in specs {
        if let (Some(FirstValues::CopyOf(source)), Some(own)) = (new(spec).map(|new| &new.first), spec.layer) {
            let name = spec.name.replacen(&format!("layers.{}.", own.0), &format!("layers.{}.", source.0), 1);
            // A copy may have a norm that its source has not: placements can depend on the layer.
            if let Some(values) = before.get(&name).filter(|(shape, _)| *shape == spec.shape) {
                copies.insert(&spec.name, values.clone());
            }
        }
    }
    let mut state = State { params: Params::default(), moments: IndexMap::new() };
    for spec in specs {
        let new = new(spec);
        let inherited = if new.is_some() { copies.swap_remove(spec.name.as_str()) } else { before.swap_remove(&spec.name) };
        let values = match inherited {
            Some((shape, values)) if shape == spec.shape => values,
            Some((shape, _)) => {
                let text = format!("`{}` of the phase before has shape {shape:?}, expected {:?}", spec.name, spec.shape);
                return Err(Failure::Input(text));
            }
            None => {
                let identity = new.is_some_and(|new| new.first == FirstValues::Identity);
                first_values(seed, spec, identity, sources).map_err(Failure::Input)?
            }
        };
        state.params.0.insert(spec.name.clone(), param(device, (spec.shape.clone(), values))?);
        let keeps = new.is_none() && !segment.reset_optimizer && learning.keeps_state(&spec.name);
        if let Some(kept) = moments.swap_remove(&spec.name).filter(|_| keeps) {
            let updates = meta.as_ref().and_then(|meta| meta.updates.get(&spec.name)).copied().unwrap_or(0);
            state.moments.insert(spec.name.clone(), Moments::load(device, kept, updates)?);
        }
    }
    Ok(state)
}

/// Every layer of the segment is new or stands in the parent's checkpoint: the plan and what was trained agree.
pub(super) fn agrees(segment: &Segment, parent: Option<&Checkpoint>) -> Result<(), Failure> {
    let known = |layer| {
        segment.new_layers.iter().any(|new| new.layer == layer) || parent.is_some_and(|parent| parent.meta.stack.contains(&layer))
    };
    if let Some(layer) = segment.stack.iter().find(|layer| !known(**layer)) {
        return Err(Failure::Input(format!("layer {} is neither new nor in the phase before", layer.0)));
    }
    if let Some(parent) = parent.filter(|parent| parent.meta.step != segment.steps.start) {
        let (at, start) = (parent.meta.step, segment.steps.start);
        return Err(Failure::Input(format!("the phase before ends at step {at}, this one begins at {start}")));
    }
    Ok(())
}

/// A checkpoint made in the middle of a segment is of its stack, at one of its steps, and only what it lets learn has optimizer state.
pub(super) fn goes_on(segment: &Segment, learning: &Learning, partial: &Checkpoint) -> bool {
    let Segment { steps, stack, .. } = segment;
    let within =
        (steps.start..=steps.end).contains(&partial.meta.step) && partial.meta.data == segment.position(partial.meta.step);
    within && partial.meta.stack == *stack && partial.moments.keys().all(|name| learning.keeps_state(name))
}
