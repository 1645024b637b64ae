//! Tensors of a checkpoint into a file of their own, under other names, without the optimizer's state.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

use safetensors::tensor::{Dtype, View};

use super::{ExportError, Named, io};
use crate::budget::hub;
use crate::budget::params::ParamSpec;
use crate::data::hub::{HubError, Tensors};
use crate::timeline::Segment;

/// Each parameter under the name that it gets: layers by their place, and `theirs` as Hugging Face calls them.
pub(super) fn names<'a>(specs: &'a [ParamSpec], segment: &Segment, theirs: bool) -> Vec<Named<'a>> {
    let name = |spec: &ParamSpec| {
        let place = spec.layer.and_then(|layer| segment.stack.iter().position(|other| *other == layer).zip(Some(layer)));
        let own = match place {
            Some((place, layer)) => spec.name.replacen(&format!("layers.{}.", layer.0), &format!("layers.{place}."), 1),
            None => spec.name.clone(),
        };
        let known = if theirs { hub::names(&own).into_iter().next() } else { None };
        known.unwrap_or(own)
    };
    specs.iter().map(|spec| (name(spec), spec)).collect()
}

/// Writes them, one in memory at a time.
pub(super) fn write(tensors: &Tensors, names: &[Named<'_>], path: &Path) -> Result<(), ExportError> {
    let shapes: BTreeMap<&str, &[usize]> = tensors.shapes().collect();
    for (_, spec) in names {
        let found = shapes.get(spec.name.as_str());
        if found.is_none_or(|shape| **shape != *spec.shape) {
            let found = found.map_or_else(|| "is missing".to_owned(), |shape| format!("has shape {shape:?}"));
            return Err(ExportError::Checkpoint(format!("`{}` {found}, expected {:?}", spec.name, spec.shape)));
        }
    }
    let failed = RefCell::new(None);
    let views = names.iter().map(|(name, spec)| (name, Lazy { tensors, spec, failed: &failed }));
    // What transformers asks for in a file of weights.
    let format = [("format".to_owned(), "pt".to_owned())].into();
    let written = safetensors::serialize_to_file(views, Some(format), path);
    if let Some(error) = failed.into_inner() {
        return Err(error.into());
    }
    written.map_err(|error| ExportError::Io { path: path.into(), reason: error.to_string() })?;
    std::fs::File::open(path).and_then(|file| file.sync_all()).map_err(io(path))
}

/// A tensor that is read when it is written.
struct Lazy<'a> {
    tensors: &'a Tensors,
    spec: &'a ParamSpec,
    failed: &'a RefCell<Option<HubError>>,
}

impl View for Lazy<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }

    fn shape(&self) -> &[usize] {
        &self.spec.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        let read = self.tensors.values(&self.spec.name);
        Cow::Owned(match read {
            Some(Ok((_, values))) => values.into_iter().flat_map(f32::to_le_bytes).collect(),
            Some(Err(error)) => {
                *self.failed.borrow_mut() = Some(error);
                vec![0; self.data_len()]
            }
            None => vec![0; self.data_len()],
        })
    }

    fn data_len(&self) -> usize {
        4 * self.spec.elements() as usize
    }
}
