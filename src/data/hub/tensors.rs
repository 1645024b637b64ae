//! The tensors of a safetensors file, or of a folder of shards with their index.
//!
//! Owns their decoding. Invariant: of a file no more than a window is mapped at a time, so that weights that do not fit into memory can be
//! read through it.

use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use half::{bf16, f16};
use memmap2::{Mmap, MmapOptions};
use safetensors::tensor::Dtype;
use safetensors::{SafeTensorError, SafeTensors};
use serde::Deserialize;

use super::{HubError, POINTED, POINTER, broken, json};

const WHOLE: &str = "model.safetensors";
const INDEX: &str = "model.safetensors.index.json";

/// Bytes that are mapped at a time: few beside any model that is worth streaming (an assumption), many beside a page.
const WINDOW: usize = 16 << 20;

/// Tensors by their names in the files.
#[derive(Debug, Default)]
pub struct Tensors {
    files: Vec<(PathBuf, File)>,
    all: BTreeMap<String, Tensor>,
}

/// Shape and values in row-major order.
pub type Values = (Vec<usize>, Vec<f32>);

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
        self.files.push((path.into(), file));
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

    /// A tensor's shape and values in 32-bit floats, which hold those of every type that is read; `None`: there is none of this name.
    pub fn values(&self, name: &str) -> Option<Result<Values, HubError>> {
        let tensor = self.all.get(name)?;
        let elements = tensor.bytes.len() / tensor.element();
        Some(self.decoded(tensor, 0..elements).map(|values| (tensor.shape.clone(), values)))
    }

    /// Some rows of a matrix, one after the other; `None`: there is no matrix of this name.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn rows(&self, name: &str, rows: &[u32]) -> Option<Result<Vec<f32>, HubError>> {
        let tensor = self.all.get(name)?;
        let [_, width] = *tensor.shape.as_slice() else { return None };
        let mut values = Vec::with_capacity(rows.len() * width);
        for row in rows {
            match self.decoded(tensor, *row as usize * width..(*row as usize + 1) * width) {
                Ok(some) => values.extend(some),
                Err(error) => return Some(Err(error)),
            }
        }
        Some(Ok(values))
    }

    /// A hash of names, types, shapes and values: not of how they are spread over files, and not of what else stands in these.
    pub fn content(&self) -> Result<String, HubError> {
        let mut hasher = blake3::Hasher::new_derive_key("xrun 2026 weights v1");
        for (name, tensor) in &self.all {
            hasher.update(format!("{name:?} {:?} {:?}\n", tensor.dtype, tensor.shape).as_bytes());
            self.windows(tensor, 0..tensor.bytes.len(), |bytes| {
                hasher.update(bytes);
            })?;
        }
        Ok(hasher.finalize().to_hex().to_string())
    }

    fn decoded(&self, tensor: &Tensor, elements: Range<usize>) -> Result<Vec<f32>, HubError> {
        let mut values = Vec::with_capacity(elements.len());
        let bytes = elements.start * tensor.element()..elements.end * tensor.element();
        self.windows(tensor, bytes, |bytes| match tensor.dtype {
            Dtype::F32 => {
                values.extend(bytes.chunks_exact(4).map(|word| f32::from_le_bytes([word[0], word[1], word[2], word[3]])));
            }
            Dtype::F16 => values.extend(bytes.chunks_exact(2).map(|word| f16::from_le_bytes([word[0], word[1]]).to_f32())),
            _ => values.extend(bytes.chunks_exact(2).map(|word| bf16::from_le_bytes([word[0], word[1]]).to_f32())),
        })?;
        Ok(values)
    }

    /// Shows some bytes of a tensor, window by window; windows end between elements.
    fn windows(&self, tensor: &Tensor, bytes: Range<usize>, mut see: impl FnMut(&[u8])) -> Result<(), HubError> {
        let (path, file) = &self.files[tensor.file];
        for at in bytes.clone().step_by(WINDOW) {
            let (start, length) = (tensor.bytes.start + at, WINDOW.min(bytes.end - at));
            // SAFETY: the range was compared with the file's length when it was opened, and is read only; whoever truncates the file from
            // outside while it is read gets a bus error, as with any mapped file.
            let map = unsafe { MmapOptions::new().offset(start as u64).len(length).map(file) };
            see(&map.map_err(|error| broken(path)(format!("cannot be read: {error}")))?);
        }
        Ok(())
    }
}

impl Tensor {
    /// Bytes of an element.
    fn element(&self) -> usize {
        if self.dtype == Dtype::F32 { 4 } else { 2 }
    }
}

/// Path of a file beside a study, or why it cannot be one.
pub fn beside(folder: &Path, file: &str) -> Result<PathBuf, String> {
    match Path::new(file).components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
        true => Ok(folder.join(file)),
        false => Err(format!("`{file}` is not beside the study")),
    }
}
