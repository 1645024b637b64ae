//! The catalogue of metrics, probes and budget quantities: names, units, directions, definitions.

use serde::{Deserialize, Serialize};

/// `measure validation_ce every 100 steps`. Also taken just before and just after every event, and at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Measure {
    /// What.
    pub metric: Metric,
    /// After every so many steps of the run.
    pub every: u64,
}

/// What can be measured while training.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Metric {
    /// Cross entropy on the holdout.
    ValidationCe,
    /// exp(validation_ce).
    Perplexity,
    /// KL(teacher ‖ student) on the holdout at the loss' temperature.
    Kl,
    /// What is minimised, on the batch of the step.
    TrainLoss,
    /// Global norm of the gradients before clipping.
    GradNorm,
    /// Real tokens trained on per second of training.
    TokensPerSecond,
}

impl Metric {
    /// All of them, in the order of the reference.
    pub const ALL: [Metric; 6] =
        [Metric::ValidationCe, Metric::Perplexity, Metric::Kl, Metric::TrainLoss, Metric::GradNorm, Metric::TokensPerSecond];
    /// The word of the language.
    pub fn name(self) -> &'static str {
        match self {
            Metric::ValidationCe => "validation_ce",
            Metric::Perplexity => "perplexity",
            Metric::Kl => "kl",
            Metric::TrainLoss => "train_loss",
            Metric::GradNorm => "grad_norm",
            Metric::TokensPerSecond => "tokens_per_second",
        }
    }
    /// Its unit, empty for a pure number.
    pub fn unit(self) -> &'static str {
        match self {
            Metric::ValidationCe | Metric::Kl | Metric::TrainLoss => "nats/token",
            Metric::TokensPerSecond => "tokens/s",
            Metric::Perplexity | Metric::GradNorm => "",
        }
    }
    /// One line for the reference and for captions.
    pub fn definition(self) -> &'static str {
        match self {
            Metric::ValidationCe => "cross entropy on the holdout, mean over its real tokens",
            Metric::Perplexity => "exp of validation_ce",
            Metric::Kl => "KL(teacher ‖ student) on the holdout, mean over its real tokens",
            Metric::TrainLoss => "the training loss of the step's batch, before the update",
            Metric::GradNorm => "global norm of the step's gradients before clipping",
            Metric::TokensPerSecond => "real tokens trained on per second of training; depends on the machine and enters no key",
        }
    }
    /// Whether it is of a step rather than of a model: after the last step of a run there is none.
    pub fn is_of_a_step(self) -> bool {
        match self {
            Metric::TrainLoss | Metric::GradNorm => true,
            Metric::ValidationCe | Metric::Perplexity | Metric::Kl | Metric::TokensPerSecond => false,
        }
    }
    /// Whether a smaller value is the better one; `None` where neither is.
    pub fn smaller_is_better(self) -> Option<bool> {
        match self {
            Metric::ValidationCe | Metric::Perplexity | Metric::Kl | Metric::TrainLoss => Some(true),
            Metric::TokensPerSecond => Some(false),
            Metric::GradNorm => None,
        }
    }
}

/// `probe boundary_rms at every grow and at end`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Probe {
    /// What is looked at.
    pub kind: ProbeKind,
    /// When, without repetition.
    pub moments: Vec<ProbeMoment>,
    /// Sequences of the fixed probe batch, taken from the start of the holdout.
    pub sequences: u64,
    /// Tokens of each.
    pub tokens: u64,
}

/// When a probe is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeMoment {
    /// Just before every event that grows, on the model before it.
    EveryGrow,
    /// After the last step.
    End,
    /// After this many steps.
    Step(u64),
}

/// What can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum ProbeKind {
    /// r_t = sqrt(mean_d h²) after each block: mean, std, kurtosis over tokens, by token class (2608.13156).
    BoundaryRms,
    /// ΔCE when a block is skipped, and the angular distance arccos(cos(h_in, h_out))/π across it (2608.13156).
    BlockRemoval,
    /// ΔCE when the sublayers of a block say 0 and the wiring around them still runs.
    Identity,
    /// Cross entropy of the head, behind the exit equation, on the stream before the first and after each block.
    LogitLens,
    /// L2 norms of the gradient of the cross entropy, by layer and group of parameters.
    GradientNorms,
}

impl ProbeKind {
    /// All of them.
    pub const ALL: [ProbeKind; 5] =
        [ProbeKind::BoundaryRms, ProbeKind::BlockRemoval, ProbeKind::Identity, ProbeKind::LogitLens, ProbeKind::GradientNorms];
    /// The word of the language.
    pub fn name(self) -> &'static str {
        match self {
            ProbeKind::BoundaryRms => "boundary_rms",
            ProbeKind::BlockRemoval => "block_removal",
            ProbeKind::Identity => "identity",
            ProbeKind::LogitLens => "logit_lens",
            ProbeKind::GradientNorms => "gradient_norms",
        }
    }
}

/// What a control can be matched on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Quantity {
    /// Σ over steps of tokens × layers run.
    ActiveLayerTokens,
    /// Σ over steps of tokens × layers that learn.
    TrainedLayerTokens,
    /// Σ over steps of real tokens.
    Tokens,
    /// Student FLOPs with the head.
    Flops,
}

impl Quantity {
    /// All of them.
    pub const ALL: [Quantity; 4] = [Quantity::ActiveLayerTokens, Quantity::TrainedLayerTokens, Quantity::Tokens, Quantity::Flops];
    /// The word of the language.
    pub fn name(self) -> &'static str {
        match self {
            Quantity::ActiveLayerTokens => "active_layer_tokens",
            Quantity::TrainedLayerTokens => "trained_layer_tokens",
            Quantity::Tokens => "tokens",
            Quantity::Flops => "flops",
        }
    }
}
