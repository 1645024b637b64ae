//! Axes, arms and controls: what is compared with what.

use std::sync::Arc;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};

use super::{Data, Model, Quantity, Schedule, Teacher, Training};

/// A factor that varies.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// Its short name, the last word of the field: `lr` for `training.optimizer.lr`; `width, heads` for a zipped axis.
    pub name: String,
    /// The field or fields as written.
    pub fields: Vec<String>,
    /// Its values in the order of the file.
    pub values: Vec<AxisValue>,
}

/// One value of an axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AxisValue {
    /// The shortest words that tell it from the axis' other values: `grow`, or `grow(phase: 2_000 steps)` where `grow` stands twice.
    pub label: String,
    /// As written in the file.
    pub text: String,
}

/// One cell of the comparison; with a seed it is a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Arm {
    /// `[post, grow]`, or the name of a control.
    pub name: String,
    /// Axis name to the value's label. A control has those of the arm that it is made from.
    pub values: IndexMap<String, String>,
    /// For an arm that is not a cell of the axes.
    pub control: Option<Control>,
    /// What is trained.
    pub recipe: Recipe,
}

impl Recipe {
    /// Its teachers and those behind them, these first, each once.
    pub fn all_teachers(&self) -> Vec<&Arc<Teacher>> {
        let mut all: Vec<&Arc<Teacher>> = Vec::new();
        for teacher in self.teachers.iter().flat_map(|teacher| [teacher.behind(), vec![teacher]].concat()) {
            if !all.contains(&teacher) {
                all.push(teacher);
            }
        }
        all
    }
}

/// How a control came about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Control {
    /// As written after the colon.
    pub text: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Its length is solved.
    pub matched: Option<Matched>,
}

/// `matched to [arm] on quantity`: the end of the schedule is moved until the quantities agree, up to one step.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Matched {
    /// Index into [`super::Study::arms`].
    pub to: usize,
    /// What agrees.
    pub on: Quantity,
}

/// All that determines a run but its seed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// What is read.
    pub data: Arc<Data>,
    /// What is trained.
    pub model: Arc<Model>,
    /// How a step is taken.
    pub training: Arc<Training>,
    /// What happens when.
    pub schedule: Arc<Schedule>,
    /// Whose logits, embedding or head are used, in the order in which losses name them. The first lends what the model takes, and the KL is
    /// measured against it.
    pub teachers: Vec<Arc<Teacher>>,
}
