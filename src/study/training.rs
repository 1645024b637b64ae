//! How a step is taken: loss, optimizer, learning rate, batch.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A `training` declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Training {
    /// Its name in the file.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// What is minimised.
    pub loss: Loss,
    /// How parameters move.
    pub optimizer: Optimizer,
    /// The shape of the learning rate; its peak is the optimizer's `lr`.
    pub rate: RateShape,
    /// How much is read per step.
    pub batch: Batch,
    /// Global norm to which gradients are clipped; `None`: they are not.
    pub clip: Option<f64>,
    /// Arithmetic.
    pub precision: Precision,
}

/// Σ factor × term, each the mean over the real tokens of the whole batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Loss {
    /// In the order written; equal terms added up.
    pub terms: Vec<(f64, LossTerm)>,
}

/// One term of a loss.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum LossTerm {
    /// −log softmax(z)\[label\], natural logarithm.
    CrossEntropy,
    /// τ² · KL(teacher ‖ student), both softened by τ (1503.02531).
    Kl {
        /// Name of the teacher.
        teacher: String,
        /// τ.
        temperature: f64,
    },
    /// τ² · KL(student ‖ teacher) (2306.08543).
    ReverseKl {
        /// Name of the teacher.
        teacher: String,
        /// τ.
        temperature: f64,
    },
    /// τ² · (β · KL(teacher ‖ m) + (1 − β) · KL(student ‖ m)), m = β · teacher + (1 − β) · student (2306.13649).
    Jsd {
        /// Name of the teacher.
        teacher: String,
        /// τ.
        temperature: f64,
        /// β, between 0 and 1.
        beta: f64,
    },
    /// The mean over the vocabulary of (z − t)², logits of student and teacher (2105.08919, there their sum).
    Mse {
        /// Name of the teacher.
        teacher: String,
    },
}

/// As the language would say it.
impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (factor, term)) in self.terms.iter().enumerate() {
            let sign = match (at, *factor < 0.0) {
                (0, false) => "",
                (0, true) => "-",
                (_, false) => " + ",
                (_, true) => " - ",
            };
            f.write_str(sign)?;
            if factor.abs() != 1.0 {
                write!(f, "{} * ", factor.abs())?;
            }
            match term {
                LossTerm::CrossEntropy => f.write_str("cross_entropy"),
                LossTerm::Kl { teacher, temperature } => write!(f, "kl({teacher}, temperature: {temperature})"),
                LossTerm::ReverseKl { teacher, temperature } => write!(f, "reverse_kl({teacher}, temperature: {temperature})"),
                LossTerm::Jsd { teacher, temperature, beta } => {
                    write!(f, "jsd({teacher}, temperature: {temperature}, beta: {beta})")
                }
                LossTerm::Mse { teacher } => write!(f, "mse({teacher})"),
            }?;
        }
        Ok(())
    }
}

impl LossTerm {
    /// The teacher that it learns from.
    pub fn teacher(&self) -> Option<&str> {
        match self {
            LossTerm::CrossEntropy => None,
            LossTerm::Kl { teacher, .. }
            | LossTerm::ReverseKl { teacher, .. }
            | LossTerm::Jsd { teacher, .. }
            | LossTerm::Mse { teacher } => Some(teacher),
        }
    }

    /// The temperature at which it hears its teacher; `None` for logits as they are.
    pub fn temperature(&self) -> Option<f64> {
        match self {
            LossTerm::CrossEntropy | LossTerm::Mse { .. } => None,
            LossTerm::Kl { temperature, .. } | LossTerm::ReverseKl { temperature, .. } | LossTerm::Jsd { temperature, .. } => {
                Some(*temperature)
            }
        }
    }
}

impl Loss {
    /// Whether a teacher has a say.
    pub fn is_taught(&self) -> bool {
        self.terms.iter().any(|(_, term)| term.teacher().is_some())
    }

    /// The teachers that it names, each once.
    pub fn teachers(&self) -> Vec<&str> {
        let mut names = Vec::new();
        for name in self.terms.iter().filter_map(|(_, term)| term.teacher()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        names
    }

    /// The temperatures at which it hears a teacher, each once; none for logits as they are.
    pub fn temperatures_of(&self, teacher: &str) -> Vec<f64> {
        let mut all = Vec::new();
        let heard = self.terms.iter().map(|(_, term)| term).filter(|term| term.teacher() == Some(teacher));
        for temperature in heard.filter_map(LossTerm::temperature) {
            if !all.contains(&temperature) {
                all.push(temperature);
            }
        }
        all
    }

    /// The first of them, at which the KL to a teacher is measured; 1 where there is none.
    pub fn temperature_of(&self, teacher: &str) -> f64 {
        self.temperatures_of(teacher).first().copied().unwrap_or(1.0)
    }
}

/// `optimizer adamw(…)` and its like. State and step count are each parameter's own; decay is decoupled (1711.05101).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Optimizer {
    /// Adam with decoupled decay (1711.05101).
    AdamW {
        /// Peak learning rate.
        lr: f64,
        /// Decay rates of the moments.
        betas: (f64, f64),
        /// Added to the root of the second moment.
        eps: f64,
        /// w is multiplied by 1 − lr · decay.
        decay: f64,
        /// On all tensors; otherwise on matrices and embeddings only.
        decay_all: bool,
    },
    /// Gradient descent, with momentum or without.
    Sgd {
        /// Peak learning rate.
        lr: f64,
        /// What is kept of the sum of gradients; 0: no sum is kept.
        momentum: f64,
        /// Looks one step ahead along the sum.
        nesterov: bool,
        /// As in AdamW.
        decay: f64,
        /// As in AdamW.
        decay_all: bool,
    },
    /// The sign of an interpolated momentum (2302.06675).
    Lion {
        /// Peak learning rate.
        lr: f64,
        /// Weight of the momentum in what is stepped along, and in what is kept.
        betas: (f64, f64),
        /// As in AdamW.
        decay: f64,
        /// As in AdamW.
        decay_all: bool,
    },
    /// The orthogonalised momentum of matrices of layers, scaled to the size of AdamW's updates (2502.16982); AdamW for all else.
    Muon {
        /// Peak learning rate of both.
        lr: f64,
        /// Weight of the momentum of matrices.
        momentum: f64,
        /// Mixes the gradient in once more.
        nesterov: bool,
        /// Of AdamW.
        betas: (f64, f64),
        /// Of AdamW.
        eps: f64,
        /// As in AdamW.
        decay: f64,
        /// As in AdamW.
        decay_all: bool,
    },
}

impl Optimizer {
    /// Peak learning rate.
    pub fn lr(&self) -> f64 {
        match *self {
            Optimizer::AdamW { lr, .. } | Optimizer::Sgd { lr, .. } | Optimizer::Lion { lr, .. } | Optimizer::Muon { lr, .. } => {
                lr
            }
        }
    }

    /// The same rule with another peak.
    pub fn with_lr(mut self, to: f64) -> Self {
        match &mut self {
            Optimizer::AdamW { lr, .. } | Optimizer::Sgd { lr, .. } | Optimizer::Lion { lr, .. } | Optimizer::Muon { lr, .. } => {
                *lr = to;
            }
        }
        self
    }

    /// w is multiplied by 1 − lr · decay; and whether in all tensors.
    pub fn decay(&self) -> (f64, bool) {
        match *self {
            Optimizer::AdamW { decay, decay_all, .. }
            | Optimizer::Sgd { decay, decay_all, .. }
            | Optimizer::Lion { decay, decay_all, .. }
            | Optimizer::Muon { decay, decay_all, .. } => (decay, decay_all),
        }
    }

    /// How many tensors of its shape are kept of a parameter's past; `in_layer`: it is a matrix of a layer.
    pub fn moments(&self, in_layer: bool) -> usize {
        match self {
            Optimizer::Sgd { momentum, .. } if *momentum == 0.0 => 0,
            Optimizer::Sgd { .. } | Optimizer::Lion { .. } => 1,
            Optimizer::Muon { .. } if in_layer => 1,
            Optimizer::AdamW { .. } | Optimizer::Muon { .. } => 2,
        }
    }
}

/// `lr warmup 100 steps then cosine to 1%`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct RateShape {
    /// At step r from the restart: peak · (r + 1) / warm-up.
    pub warmup: Warmup,
    /// From the end of the warm-up to the next restart or the end.
    pub shape: Shape,
}

/// Length of the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Warmup {
    /// In steps; 0 is none.
    Steps(u64),
    /// A fraction of the span between restarts, rounded to steps.
    Fraction(f64),
}

/// Shape after the warm-up.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Shape {
    /// The peak.
    Constant,
    /// A straight line from the peak to the floor.
    Linear {
        /// Where it ends.
        to: Floor,
    },
    /// floor + (peak − floor) · (1 + cos πx) / 2 (1608.03983).
    Cosine {
        /// Where it ends.
        to: Floor,
    },
    /// The peak, then a straight line to 0 over the last fraction of the span (2404.06395).
    Wsd {
        /// The fraction.
        decay: f64,
    },
}

/// Where a shape ends.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Floor {
    /// `to 1%`: of the peak.
    OfPeak(f64),
    /// `to 1e-6`: a learning rate.
    Rate(f64),
}

/// `batch 64 sequences in 8`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Batch {
    /// Sequences of one step.
    pub sequences: u64,
    /// Sequences held at a time; divides nothing in particular, the last micro-batch may be smaller.
    pub micro: u64,
}

/// `precision f32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Precision {
    /// 32-bit floats throughout.
    F32,
}
