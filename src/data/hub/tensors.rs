//! The tensors of a safetensors file, or of a folder of shards with their index.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use half::{bf16, f16};
use memmap2::Mmap;
use safetensors::tensor::Dtype;
use safetensors::{SafeTensorError, SafeTensors};
use serde::Deserialize;

use super::{HubError, POINTED, POINTER, broken, json};

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Tensors by their names in the files, which are mapped and not read.
#[derive(Debug, Default)]
pub struct Tensors {
    files: Vec<Mmap>,
    all: BTreeMap<String, Tensor>,
}

#[derive(Debug)]
struct Tensor {
    file: usize,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Range<usize>,
}

/// The part of an index that matters.
#[derive(Deserialize)]
struct Index {
    weight_map: BTreeMap<String, String>,
}

impl Tensors {
    /// Those of a model's folder.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, HubError> {
        let index = folder.join(INDEX);
        if !index.exists() {
            return Self::of_file(&folder.join(WHOLE));
        }
        let refused = broken(&index);
        let Index { weight_map } =
            serde_json::from_slice(&json(&index)?).map_err(|error| refused(format!("not an index: {error}")))?;
        let mut tensors = Self::default();
        let shards: std::collections::BTreeSet<&String> = weight_map.values().collect();
        for shard in shards {
            if !matches!(Path::new(shard).components().collect::<Vec<_>>().as_slice(), [Component::Normal(_)]) {
                return Err(refused(format!("it names `{shard}`, which is no file of its folder")));
            }
            let path = folder.join(shard);
            if !path.exists() {
                return Err(refused(format!("it names `{shard}`, which is missing")));
            }
            tensors.add(&path, |name| weight_map.get(name).is_some_and(|at| at == shard))?;
        }
        match weight_map.iter().find(|(name, _)| !tensors.all.contains_key(*name)) {
            Some((name, shard)) => Err(refused(format!("it places `{name}` into `{shard}`, which has it not"))),
            None => Ok(tensors),
        }
    }

    /// Those of one file.
    pub fn of_file(path: &Path) -> Result<Self, HubError> {
        let mut tensors = Self::default();
        tensors.add(path, |_| true)?;
        Ok(tensors)
    }

    fn add(&mut self, path: &Path, wanted: impl Fn(&str) -> bool) -> Result<(), HubError> {
        let refused = broken(path);
        let cannot = |error: std::io::Error| match error.kind() {
            std::io::ErrorKind::NotFound => "it is missing".to_owned(),
            _ => format!("cannot be read: {error}"),
        };
        let file = File::open(path).map_err(|error| refused(cannot(error)))?;
        let length = file.metadata().map_err(|error| refused(cannot(error)))?.len();
        if length < 8 {
            return Err(refused(format!("{length} bytes are no safetensors file")));
        }
        // SAFETY: read only, and every access goes through bounds-checked slices; whoever truncates the file from outside while it is
        // read gets a bus error, as with any mapped file.
        let map = unsafe { Mmap::map(&file) }.map_err(|error| refused(cannot(error)))?;
        if map.starts_with(POINTER) {
            return Err(refused(POINTED.to_owned()));
        }
        let header = u64::from_le_bytes([map[0], map[1], map[2], map[3], map[4], map[5], map[6], map[7]]);
        if header > length - 8 {
            return Err(refused(format!("its header claims {header} bytes, the file has {length}")));
        }
        let (header, meta) = SafeTensors::read_metadata(&map).map_err(|error| {
            refused(match error {
                SafeTensorError::MetadataIncompleteBuffer => {
                    format!("the tensors of its header do not fill its {length} bytes: it is truncated, or something was added")
                }
                error => format!("its header cannot be read: {error}"),
            })
        })?;
        let start = 8 + header;
        for name in meta.offset_keys() {
            let Some(info) = meta.info(&name).filter(|_| wanted(&name)) else { continue };
            if !matches!(info.dtype, Dtype::F32 | Dtype::F16 | Dtype::BF16) {
                return Err(refused(format!("`{name}` is of type {:?}, expected F32, F16 or BF16", info.dtype)));
            }
            let (from, to) = info.data_offsets;
            let tensor =
                Tensor { file: self.files.len(), dtype: info.dtype, shape: info.shape.clone(), bytes: start + from..start + to };
            self.all.insert(name, tensor);
        }
        self.files.push(map);
        Ok(())
    }

    /// Names and shapes, by name.
    pub fn shapes(&self) -> impl Iterator<Item = (&str, &[usize])> {
        self.all.iter().map(|(name, tensor)| (name.as_str(), tensor.shape.as_slice()))
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> u64 {
        self.all.values().map(|tensor| tensor.bytes.len() as u64).sum()
    }

    /// A tensor's values in 32-bit floats, which hold those of every type that is read; `None`: there is none of this name.
    pub fn values(&self, name: &str) -> Option<(&[usize], Vec<f32>)> {
        let tensor = self.all.get(name)?;
        let bytes = self.raw(tensor);
        let values = match tensor.dtype {
            Dtype::F32 => bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect(),
            Dtype::F16 => bytes.chunks_exact(2).map(|word| f16::from_le_bytes([word[0], word[1]]).to_f32()).collect(),
            _ => bytes.chunks_exact(2).map(|word| bf16::from_le_bytes([word[0], word[1]]).to_f32()).collect(),
        };
        Some((&tensor.shape, values))
    }

    /// A hash of names, types, shapes and values: not of how they are spread over files, and not of what else stands in these.
    pub fn content(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("xrun 2026 weights v1");
        for (name, tensor) in &self.all {
            let about = format!("{name:?} {:?} {:?}\n", tensor.dtype, tensor.shape);
            hasher.update(about.as_bytes()).update(self.raw(tensor));
        }
        hasher.finalize().to_hex().to_string()
    }

    fn raw(&self, tensor: &Tensor) -> &[u8] {
        &self.files[tensor.file][tensor.bytes.clone()]
    }
}

/// Path of a file beside a study, or why it cannot be one.
pub fn beside(folder: &Path, file: &str) -> Result<PathBuf, String> {
    match Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        true => Ok(folder.join(file)),
        false => Err(format!("`{file}` is not beside the study")),
    }
}
