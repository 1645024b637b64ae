//! A trained model as a folder for others: weights, configuration, tokenizer, card.
//!
//! Owns which files such a folder has, and what a tensor is called in it: Hugging Face's names where `transformers` has the architecture,
//! else ours, layers counted from the bottom. Deliberately knows no plan and no store: it is told which checkpoint is meant. Invariant: the
//! values that are written are those of the checkpoint, to the bit.

mod architecture;
mod loading;
mod weights;

use std::path::{Path, PathBuf};

use crate::budget::params::{ParamSpec, parameters};
use crate::data::hub::{self, HubError, Tensors};
use crate::report::{Exhibit, Story, card};
use crate::study::Model;
use crate::timeline::Segment;

/// A model to be exported.
#[derive(Debug)]
pub struct Trained<'a> {
    /// The study and what came out.
    pub story: &'a Story,
    /// Index of the arm.
    pub arm: usize,
    /// The seed.
    pub seed: u64,
    /// Its last phase: an index into the run's segments.
    pub phase: usize,
    /// The architecture at its final depth, vocabulary resolved.
    pub model: &'a Model,
    /// That phase.
    pub segment: &'a Segment,
    /// Tokens of the longest sequence that it was trained on.
    pub context: usize,
    /// Real tokens trained on, where they are known.
    pub tokens: Option<u64>,
    /// Its checkpoint, which has been compared with its hash.
    pub checkpoint: &'a Path,
    /// How text becomes its tokens.
    pub words: Words,
}

/// How text becomes tokens.
#[derive(Debug)]
pub struct Words {
    /// The token that ends a document.
    pub end: u32,
    /// How it is spelt, and the `tokenizer.json`; `None`: bytes.
    pub file: Option<(String, PathBuf)>,
}

/// What was written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Written {
    /// The class of `transformers` that loads it, or why there is none.
    pub class: Result<String, String>,
    /// Tensors.
    pub tensors: usize,
    /// Elements of all of them.
    pub parameters: u64,
}

/// Why a model cannot be exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// Its checkpoint.
    #[error("the checkpoint cannot be used: {0}")]
    Checkpoint(String),
    /// Its checkpoint cannot be read.
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The disk.
    #[error("cannot write `{}`: {reason}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

/// Writes the files of a model into `folder`, which is there and empty.
pub fn write(trained: &Trained<'_>, folder: &Path) -> Result<Written, ExportError> {
    let Trained { model, segment, .. } = *trained;
    let specs = parameters(model, &segment.stack, &segment.block_ends);
    let config = match architecture::strange(model, segment) {
        Some(reason) => Err(reason),
        None => hub::write(model, segment.depth(), trained.context, trained.words.end).ok_or_else(|| architecture::kinds(model)),
    };
    let names = weights::names(&specs, segment, config.is_ok());
    let tensors = Tensors::of_file(trained.checkpoint)?;
    weights::write(&tensors, &names, &folder.join("model.safetensors"))?;
    let put = |name: &str, text: String| {
        let path = folder.join(name);
        std::fs::write(&path, text).map_err(io(&path))
    };
    let pretty = |value: &serde_json::Value| format!("{value:#}\n");
    if let Ok(config) = &config {
        put("config.json", pretty(config))?;
        put("generation_config.json", pretty(&serde_json::json!({"eos_token_id": trained.words.end})))?;
    }
    if let Some((end, from)) = &trained.words.file {
        let path = folder.join("tokenizer.json");
        std::fs::copy(from, &path).map_err(io(&path))?;
        // The class by name: by the kind of model, transformers would choose one that adds tokens.
        let tokenizer = serde_json::json!({
            "tokenizer_class": "PreTrainedTokenizerFast", "eos_token": end, "model_max_length": trained.context,
        });
        put("tokenizer_config.json", pretty(&tokenizer))?;
    }
    let parameters: u64 = names.iter().map(|(_, spec)| spec.elements()).sum();
    let Trained { story, arm, seed, phase, tokens, .. } = *trained;
    let exhibit = Exhibit { story, arm, seed, phase, tokens, parameters };
    let (library, loading) = match &config {
        Ok(_) => ("transformers", loading::theirs(&trained.words)),
        Err(reason) => ("xrun", loading::ours(model, segment, reason, &trained.words)),
    };
    put("README.md", card(&exhibit, library, &loading))?;
    let class = config.map(|config| config["architectures"][0].as_str().unwrap_or_default().to_owned());
    Ok(Written { class, tensors: names.len(), parameters })
}

/// A parameter under the name that it gets.
type Named<'a> = (String, &'a ParamSpec);

fn io(path: &Path) -> impl Fn(std::io::Error) -> ExportError + '_ {
    |error| ExportError::Io { path: path.into(), reason: error.to_string() }
}
