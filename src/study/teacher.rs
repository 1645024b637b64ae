//! Teachers: trained by us or read from a checkpoint.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Model, Training};

/// A `teacher` declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Teacher {
    /// Its name in the file.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Where its weights come from.
    pub source: TeacherSource,
    /// How its logits reach the student.
    pub cache: Cache,
}

impl Teacher {
    /// The teachers that it learns from, theirs before them.
    pub fn behind(&self) -> Vec<&Arc<Teacher>> {
        let TeacherSource::Trained { teachers, .. } = &self.source else { return Vec::new() };
        teachers.iter().flat_map(|teacher| [teacher.behind(), vec![teacher]].concat()).collect()
    }
}

/// Where the weights come from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum TeacherSource {
    /// `model …` and `train 3_000 steps with base`: on the study's data, seed 0, one teacher for all seeds and arms.
    Trained {
        /// Its architecture.
        model: Arc<Model>,
        /// How it is trained.
        training: Arc<Training>,
        /// For how long.
        steps: u64,
        /// Its own teachers, as in a recipe.
        #[serde(default)]
        teachers: Vec<Arc<Teacher>>,
    },
    /// `checkpoint "Qwen3-8B-Base"`: weights that others have trained.
    Checkpoint {
        /// A Hugging Face folder, relative to the folder of the `.exp` file.
        folder: String,
        /// `model …` beside it: the architecture that it has to have, by which it is priced while it is not at hand.
        shape: Option<Arc<Model>>,
    },
}

/// `cache none | all | top K`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Cache {
    /// The teacher runs beside the student in every step.
    None,
    /// All log-probabilities of every sequence, computed once.
    All,
    /// The K most likely tokens; the missing mass is one more outcome.
    Top(usize),
}

impl Cache {
    /// How many of so many token types it keeps; `None`: all.
    pub fn kept(self, vocabulary: usize) -> Option<usize> {
        match self {
            Cache::Top(top) if top < vocabulary => Some(top),
            Cache::Top(_) | Cache::None | Cache::All => None,
        }
    }
    /// Bytes for a token, of which `top` of so many types are kept: their numbers, their log-probabilities and that of the rest, each in four;
    /// or the log-probabilities of all.
    pub fn bytes(top: Option<usize>, vocabulary: usize) -> usize {
        4 * top.map_or(vocabulary, |top| 2 * top + 1)
    }
}
