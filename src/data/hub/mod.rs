//! Models in Hugging Face's format: a folder with `config.json` and safetensors, whole or in shards.
//!
//! Owns what such a folder says, read without trust: nothing is allocated by a size that was not compared with the files. Deliberately
//! knows no parameter of ours: which tensors there should be is `budget`'s to say. Invariant: weights are mapped and decoded one tensor at a
//! time, on demand.

mod config;
mod tensors;

use std::path::{Path, PathBuf};

pub use config::write;
pub use tensors::{Tensors, Values, beside};

use crate::study::Model;

/// A larger `config.json` or index was not made by anyone: the index of 10,000 tensors has 1 MB.
const LARGEST_JSON: u64 = 1 << 26;

/// Why a folder cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum HubError {
    /// There is none.
    #[error("there is no folder `{}`", .0.display())]
    Absent(PathBuf),
    /// Something in it is not as it should be.
    #[error("`{}`: {reason}", path.display())]
    Broken {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
}

/// A model that has been looked at, its weights still on the disk.
#[derive(Debug)]
pub struct Hub {
    /// Its architecture, a pre-norm transformer.
    pub model: Model,
    /// Tokens of the longest text that it was made for, where it says so.
    pub context: Option<usize>,
    /// Its weights.
    pub tensors: Tensors,
}

impl Hub {
    /// Looks at the folder of a model, which is called `name`.
    pub fn open(folder: &Path, name: &str) -> Result<Self, HubError> {
        if !folder.is_dir() {
            return Err(HubError::Absent(folder.into()));
        }
        let path = folder.join("config.json");
        let text = json(&path)?;
        let (model, context) = config::read(&text, name).map_err(broken(&path))?;
        Ok(Self { model, context, tensors: Tensors::of_folder(folder)? })
    }
}

fn broken(path: &Path) -> impl Fn(String) -> HubError + '_ {
    |reason| HubError::Broken { path: path.into(), reason }
}

/// A JSON file of bounded size.
fn json(path: &Path) -> Result<Vec<u8>, HubError> {
    let broken = broken(path);
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "it is missing".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    let size = std::fs::metadata(path).map_err(|error| broken(cannot(error)))?.len();
    if size > LARGEST_JSON {
        return Err(broken(format!("larger than {} MiB", LARGEST_JSON >> 20)));
    }
    let text = std::fs::read(path).map_err(|error| broken(cannot(error)))?;
    match text.starts_with(POINTER) {
        true => Err(broken(POINTED.to_owned())),
        false => Ok(text),
    }
}

/// How Git LFS begins what it leaves in the place of a large file.
const POINTER: &[u8] = b"version https://git-lfs";
const POINTED: &str = "a pointer of Git LFS in the place of the file: fetch it with `git lfs pull`";
