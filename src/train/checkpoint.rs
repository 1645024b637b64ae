//! Checkpoints: a safetensors file with parameters, optimizer state, step and data position.
//!
//! Tensors: each parameter by its name; what the optimizer keeps of it as `adam.m/NAME` and `adam.v/NAME`, or, where that is one tensor, as
//! `momentum/NAME`. Metadata: one entry `xrun`, JSON of [`Meta`]
//! (one entry, because safetensors keeps metadata in a map without order). Invariants: a file appears whole or not at all, and nothing of it
//! is used before names, shapes and types are those expected; besides the tensors themselves, one at a time is held, reading and writing.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use indexmap::IndexMap;
use memmap2::Mmap;
use safetensors::tensor::{Dtype, SafeTensors, TensorInfo};
use safetensors::{SafeTensorError, View};
use serde::{Deserialize, Serialize};

use crate::budget::params::ParamSpec;
use crate::timeline::{DataPosition, LayerId};

const ENTRY: &str = "xrun";
/// What precedes the name of a parameter of which one tensor is kept, and of which two are.
const MOMENTUM: &str = "momentum/";
const ADAM: [&str; 2] = ["adam.m/", "adam.v/"];

/// A tensor on the host: sides and values in row-major order.
pub type Values = (Vec<usize>, Vec<f32>);

/// What a checkpoint knows besides tensors.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Version of this layout.
    pub version: u32,
    /// Steps of the run that are done.
    pub step: u64,
    /// Where the next step would read.
    pub data: DataPosition,
    /// The stack from bottom to top.
    pub stack: Vec<LayerId>,
    /// Updates t of each parameter that has optimizer state.
    pub updates: BTreeMap<String, u64>,
    /// Counts of this phase so far, by their names in the record.
    pub counts: BTreeMap<String, u64>,
    /// Length of `metrics.jsonl` that belongs to this step.
    pub metrics_bytes: u64,
}

impl Meta {
    /// The layout described here.
    pub const VERSION: u32 = 1;
}

/// A checkpoint on the host.
#[derive(Debug, Clone, PartialEq)]
pub struct Checkpoint {
    /// Parameters.
    pub params: IndexMap<String, Values>,
    /// By parameter what the optimizer keeps of it: m and v, or the momentum alone.
    pub moments: IndexMap<String, Vec<Values>>,
    /// The rest.
    pub meta: Meta,
}

/// Why a checkpoint cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    /// The disk.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// Not a safetensors file of ours.
    #[error("{0}")]
    Damaged(String),
    /// It belongs to another model.
    #[error("{0}")]
    Mismatch(String),
}

impl Checkpoint {
    /// Writes it to `folder/name`: whole after a kill at any moment, or as it was before.
    pub fn save(&self, folder: &Path, name: &str) -> Result<(), CheckpointError> {
        let moments = self.moments.iter().map(|(name, kept)| (name, kept.as_slice()));
        write(self.params.iter(), moments, &self.meta, folder, name)
    }

    /// Reads `path`, trusting nothing.
    pub fn load(path: &Path) -> Result<Self, CheckpointError> {
        let mut file = File::open(path)?;
        // An empty file cannot be mapped.
        let (start, header) = match file.metadata()?.len() {
            0 => SafeTensors::read_metadata(&[]),
            // SAFETY: what is mapped is read in this expression and never kept as a reference; checkpoints are written under another
            // name and then renamed, never changed or cut where they lie.
            _ => SafeTensors::read_metadata(&unsafe { Mmap::map(&file) }?),
        }
        .map_err(damaged)?;
        let meta = header.metadata().as_ref().and_then(|entries| entries.get(ENTRY));
        let meta = meta.ok_or_else(|| CheckpointError::Damaged("it is not a checkpoint of xrun".to_owned()))?;
        let meta: Meta = serde_json::from_str(meta).map_err(damaged)?;
        if meta.version != Meta::VERSION {
            let (found, known) = (meta.version, Meta::VERSION);
            return Err(CheckpointError::Damaged(format!("its layout has version {found}, this program reads {known}")));
        }
        let mut params = IndexMap::new();
        let mut moments: IndexMap<String, Vec<Values>> = IndexMap::new();
        let mut second = IndexMap::new();
        for (name, info) in header.tensors() {
            let values = values(&name, info, &mut file, SIZE + start as u64)?;
            let [momentum, m, v] = [MOMENTUM, ADAM[0], ADAM[1]].map(|kind| name.strip_prefix(kind));
            if let Some(name) = momentum.or(m) {
                if moments.insert(name.to_owned(), vec![values]).is_some() {
                    return Err(CheckpointError::Damaged(format!("`{name}` has a momentum and a first moment")));
                }
                if m.is_some() {
                    second.entry(name.to_owned()).or_insert(None);
                }
            } else if let Some(name) = v {
                second.insert(name.to_owned(), Some(values));
            } else {
                params.insert(name, values);
            }
        }
        params.sort_unstable_keys();
        for (name, v) in second {
            let v = v.ok_or_else(|| CheckpointError::Damaged(format!("`{name}` has a first moment but no second")))?;
            let kept = moments.get_mut(&name);
            kept.ok_or_else(|| CheckpointError::Damaged(format!("`{name}` has a second moment but no first")))?.push(v);
        }
        moments.sort_unstable_keys();
        for name in moments.keys() {
            if !meta.updates.contains_key(name) || !params.contains_key(name) {
                return Err(CheckpointError::Damaged(format!("moments of `{name}` stand without it or its count of updates")));
            }
        }
        Ok(Self { params, moments, meta })
    }

    /// Whether its parameters are exactly those of `specs`, and moments have their shapes.
    pub fn check(&self, specs: &[ParamSpec]) -> Result<(), CheckpointError> {
        let expected: IndexMap<&str, &[usize]> = specs.iter().map(|spec| (spec.name.as_str(), spec.shape.as_slice())).collect();
        let missing: Vec<&str> = expected.keys().copied().filter(|name| !self.params.contains_key(*name)).collect();
        let extra: Vec<&str> = self.params.keys().map(String::as_str).filter(|name| !expected.contains_key(name)).collect();
        if !missing.is_empty() || !extra.is_empty() {
            let list = |names: &[&str]| if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let text = format!("tensors missing: {}; not expected: {}", list(&missing), list(&extra));
            return Err(CheckpointError::Mismatch(text));
        }
        let moments = self.moments.iter().flat_map(|(name, both)| both.iter().map(move |values| (name, values)));
        for (name, (shape, _)) in self.params.iter().chain(moments) {
            let expected = expected.get(name.as_str()).copied().unwrap_or(&[]);
            if shape != expected {
                return Err(CheckpointError::Mismatch(format!("`{name}` has shape {shape:?}, expected {expected:?}")));
            }
        }
        Ok(())
    }
}

/// Bytes of a file before its header: the header's length.
const SIZE: u64 = 8;

/// The float32 values of a tensor; any other type is refused. `start`: where the file's data begins; its header has been held against
/// its length.
fn values(name: &str, info: &TensorInfo, file: &mut File, start: u64) -> Result<Values, CheckpointError> {
    if info.dtype != Dtype::F32 {
        return Err(CheckpointError::Damaged(format!("`{name}` is {:?}, expected F32", info.dtype)));
    }
    let (first, end) = info.data_offsets;
    let mut bytes = vec![0; end - first];
    file.seek(SeekFrom::Start(start + first as u64))?;
    file.read_exact(&mut bytes)?;
    let values = bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]));
    Ok((info.shape.clone(), values.collect()))
}

/// What a checkpoint can keep as a tensor.
pub(super) trait Kept {
    /// Sides.
    fn sides(&self) -> Vec<usize>;
    /// Values in row-major order.
    fn floats(&self) -> Cow<'_, [f32]>;
}

impl Kept for Values {
    fn sides(&self) -> Vec<usize> {
        self.0.clone()
    }
    fn floats(&self) -> Cow<'_, [f32]> {
        Cow::Borrowed(&self.1)
    }
}

/// A tensor that is asked for its values when they are written.
struct Late<'a, K>(&'a K, Vec<usize>);

impl<K: Kept> View for Late<'_, K> {
    fn dtype(&self) -> Dtype {
        Dtype::F32
    }
    fn shape(&self) -> &[usize] {
        &self.1
    }
    fn data(&self) -> Cow<'_, [u8]> {
        Cow::Owned(self.0.floats().iter().flat_map(|value| value.to_le_bytes()).collect())
    }
    fn data_len(&self) -> usize {
        4 * self.1.iter().product::<usize>()
    }
}

/// Writes parameters, and what is kept of each, to `folder/name`: whole after a kill at any moment, or as it was before.
pub(super) fn write<'a, K: Kept + 'a>(
    params: impl Iterator<Item = (&'a String, &'a K)>,
    moments: impl Iterator<Item = (&'a String, &'a [K])>,
    meta: &Meta,
    folder: &Path,
    name: &str,
) -> Result<(), CheckpointError> {
    let moments = moments.flat_map(|(name, kept)| {
        let kinds: &[&str] = if kept.len() == 1 { &[MOMENTUM] } else { &ADAM };
        kinds.iter().zip(kept).map(move |(kind, kept)| (format!("{kind}{name}"), kept))
    });
    let tensors = params.map(|(name, param)| (name.clone(), param)).chain(moments);
    let tensors = tensors.map(|(name, tensor)| (name, Late(tensor, tensor.sides())));
    let entries = HashMap::from([(ENTRY.to_owned(), serde_json::to_string(meta).map_err(damaged)?)]);
    let temporary = tempfile::NamedTempFile::new_in(folder)?.into_temp_path();
    safetensors::serialize_to_file(tensors, Some(entries), &temporary).map_err(|error| match error {
        SafeTensorError::IoError(error) => CheckpointError::Io(error),
        error => damaged(error),
    })?;
    File::open(&temporary)?.sync_all()?;
    temporary.persist(folder.join(name)).map_err(|error| error.error)?;
    File::open(folder)?.sync_all()?;
    Ok(())
}

fn damaged(error: impl std::fmt::Display) -> CheckpointError {
    CheckpointError::Damaged(error.to_string())
}

#[cfg(test)]
mod tests {
    use safetensors::tensor::TensorView;

    use super::*;
    use crate::budget::params::{FirstValue, Group};

    fn checkpoint() -> Checkpoint {
        let values = |n: usize| (vec![n], (0..n).map(|at| at as f32).collect::<Vec<f32>>());
        Checkpoint {
            params: IndexMap::from([("a".to_owned(), values(3)), ("b".to_owned(), values(2))]),
            moments: IndexMap::from([("a".to_owned(), vec![values(3), values(3)]), ("b".to_owned(), vec![values(2)])]),
            meta: Meta {
                version: Meta::VERSION,
                step: 9_007_199_254_740_993,
                data: DataPosition { shard: 1, sequence: 2, context: Some(3) },
                stack: vec![LayerId(0)],
                updates: BTreeMap::from([("a".to_owned(), 4), ("b".to_owned(), 3)]),
                counts: BTreeMap::from([("tokens".to_owned(), 5)]),
                metrics_bytes: 6,
            },
        }
    }

    fn spec(name: &str, shape: &[usize]) -> ParamSpec {
        let (first, group) = (FirstValue::Constant(1.0), Group::Norm);
        ParamSpec { name: name.into(), shape: shape.to_vec(), first, group, layer: None }
    }

    #[test]
    fn what_is_saved_is_what_is_loaded_and_saved_again() {
        let folder = tempfile::tempdir().expect("a folder");
        checkpoint().save(folder.path(), "one").expect("saves");
        let read = Checkpoint::load(&folder.path().join("one")).expect("loads");
        assert_eq!(read, checkpoint());
        read.save(folder.path(), "two").expect("saves");
        let bytes = |name: &str| std::fs::read(folder.path().join(name)).expect("a file");
        assert!(bytes("one") == bytes("two"));
    }

    #[test]
    fn names_and_shapes_are_compared_before_use() {
        let check = |specs: &[ParamSpec]| checkpoint().check(specs).map_err(|error| error.to_string());
        assert_eq!(check(&[spec("b", &[2]), spec("a", &[3])]), Ok(()));
        assert_eq!(check(&[spec("a", &[3]), spec("c", &[1])]), Err("tensors missing: c; not expected: b".to_owned()));
        assert_eq!(check(&[spec("a", &[3]), spec("b", &[1, 2])]), Err("`b` has shape [2], expected [1, 2]".to_owned()));
    }

    #[test]
    fn files_of_other_kinds_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("file");
        let refused = |bytes: &[u8]| {
            std::fs::write(&path, bytes).expect("writes");
            matches!(Checkpoint::load(&path), Err(CheckpointError::Damaged(_)))
        };
        assert!(refused(b""));
        assert!(refused(b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n"));
        assert!(refused(&[0xFF; 64]));
        let foreign = |dtype, entries| {
            let view = TensorView::new(dtype, vec![1], &[0; 4]).expect("a tensor");
            safetensors::serialize([("a", view)], entries).expect("serialises")
        };
        assert!(refused(&foreign(Dtype::F32, None)));
        let meta = serde_json::to_string(&checkpoint().meta).expect("JSON");
        assert!(refused(&foreign(Dtype::I32, Some(HashMap::from([(ENTRY.to_owned(), meta)])))));
        checkpoint().save(folder.path(), "whole").expect("saves");
        let whole = std::fs::read(folder.path().join("whole")).expect("a file");
        for cut in [7, 8, 100, whole.len() - 1] {
            assert!(refused(&whole[..cut]), "cut at {cut}");
        }
    }
}
