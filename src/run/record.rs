//! What the store keeps of a node: plain types of their own, versioned, apart from the types of the domain.
//!
//! Files of a node: `record.ron` (a [`Record`]), `metrics.jsonl` (a [`MetricLine`] a line), for phases `checkpoint.safetensors` and, where
//! they are evaluated at their end, `documents.json` (a [`DocumentsRecord`]), for probes `probe.json` (a [`ProbeRecord`]). Wall-clock times are kept elsewhere, so that the same plan gives the same bytes.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Version of the layout described here.
pub const VERSION: u32 = 1;
/// Name of the file that holds a [`MetricLine`] a line.
pub const METRICS: &str = "metrics.jsonl";
/// Name of the file that holds the model that a phase ends in, with its optimizer state.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// Name of the file that holds a [`DocumentsRecord`].
pub const DOCUMENTS: &str = "documents.json";
/// Name of the file that holds a [`ProbeRecord`].
pub const PROBE: &str = "probe.json";

/// `record.ron`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`VERSION`].
    pub version: u32,
    /// The node's key.
    pub key: String,
    /// `corpus`, `teacher`, `teacher_logits`, `phase`, `probe`.
    pub kind: String,
    /// BLAKE3 of each other file of the node, by name.
    pub files: BTreeMap<String, String>,
    /// Counts that the worker kept while working (`steps`, `tokens`, `active_layer_tokens`, `trained_layer_tokens`), to be compared with the plan's.
    pub counts: BTreeMap<String, u64>,
    /// BLAKE3 of all of the above; see [`Record::seal`].
    pub seal: String,
}

impl Record {
    /// The seal that belongs to the other fields.
    pub fn seal(&self) -> String {
        let mut hasher = blake3::Hasher::new_derive_key("xrun 2026 record seal v1");
        let mut field = |text: &str| {
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        };
        field(&self.version.to_string());
        field(&self.key);
        field(&self.kind);
        for (name, hash) in &self.files {
            field(name);
            field(hash);
        }
        for (name, count) in &self.counts {
            field(name);
            field(&count.to_string());
        }
        hasher.finalize().to_hex().to_string()
    }
}

/// `failures/KEY.ron`: why the last attempt at a node ended badly. Removed by the next attempt.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FailureRecord {
    /// For people.
    pub label: String,
    /// What was said.
    pub reason: String,
    /// The step at which the loss was not finite, if that was it.
    pub diverged_at: Option<u64>,
}

/// A number that survives JSON: NaN and the infinities are the texts `NaN`, `inf`, `-inf`.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(into = "RealText", from = "RealText")]
pub struct Real(pub f64);

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum RealText {
    Number(f64),
    Text(String),
}
impl From<Real> for RealText {
    fn from(real: Real) -> Self {
        if real.0.is_finite() { RealText::Number(real.0) } else { RealText::Text(format!("{}", real.0)) }
    }
}
impl From<RealText> for Real {
    fn from(text: RealText) -> Self {
        match text {
            RealText::Number(value) => Real(value),
            RealText::Text(text) => Real(text.parse().unwrap_or(f64::NAN)),
        }
    }
}

/// A line of `metrics.jsonl`: what was seen after `step` steps of the run (`train_loss`, `grad_norm` and `lr` belong to the step that then follows).
///
/// A phase's first line with measures is the model after the event that began it; its last, the model before the next event.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MetricLine {
    /// Steps done.
    pub step: u64,
    /// Metric name to value.
    pub values: BTreeMap<String, Real>,
}

/// `speed.ron`: what `xrun bench` has measured on this machine; no part of any result.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct SpeedRecord {
    /// FLOPs of the plan's convention per second of training.
    pub flops_per_second: f64,
    /// Threads that took part.
    pub threads: usize,
}

/// `documents.json`: the evaluation after a phase's last step, document by document. Its mean is the `validation_ce` of that step.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct DocumentsRecord {
    /// Steps of the run done.
    pub step: u64,
    /// Counted tokens of each document of the holdout, in its order; 0 where nothing of it is read.
    pub tokens: Vec<u64>,
    /// Σ over these tokens of the cross entropy, in nats; parallel to `tokens`.
    pub ce: Vec<Real>,
}

/// `probe.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "probe", rename_all = "snake_case")]
pub enum ProbeRecord {
    /// Boundary RMS, one row for each block from the bottom.
    BoundaryRms {
        /// Rows.
        blocks: Vec<BoundaryRms>,
    },
    /// Block removal, one row for each block from the bottom.
    BlockRemoval {
        /// Cross entropy with every block in place, nats a token.
        ce: Real,
        /// Rows.
        blocks: Vec<BlockRemoval>,
    },
    /// Blocks whose sublayers say 0.
    Identity {
        /// Cross entropy with every block in place, nats a token.
        ce: Real,
        /// CE(sublayers of the block say 0) − CE, nats a token, for each block from the bottom; its norms still run.
        delta_ce: Vec<Real>,
    },
    /// What the head reads on the way.
    LogitLens {
        /// Cross entropy of the head, behind the exit equation, before the first block and after each from the bottom, nats a token.
        ce: Vec<Real>,
    },
    /// L2 norms of the gradient of the cross entropy; a norm over several tensors is the root of the sum of their squares.
    GradientNorms {
        /// The cross entropy, nats a token.
        ce: Real,
        /// Of the embedding; with the head's side where they are tied.
        embedding: Real,
        /// Of each layer from the bottom.
        layers: Vec<LayerGradient>,
        /// Of what the entry and exit equations learn; `None` where they learn nothing.
        ends: Option<Real>,
        /// Of the head; `None` where it is the embedding.
        head: Option<Real>,
    },
}

/// RMS of the residual stream after a block (and its boundary equation): r_t = sqrt(mean_d h²), over the tokens of the probe batch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BoundaryRms {
    /// Over all real tokens.
    pub all: Moments,
    /// Over structural tokens: those that end a document.
    pub structural: Moments,
    /// Over the others.
    pub regular: Moments,
}

/// Moments over tokens.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Moments {
    /// Number of tokens.
    pub n: u64,
    /// Mean; NaN for no token.
    pub mean: Real,
    /// Standard deviation, divided by n.
    pub std: Real,
    /// Fourth standardised moment (3 for a normal).
    pub kurtosis: Real,
}

/// What happens without a block.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockRemoval {
    /// CE(block skipped) − CE, nats a token; a skipped block takes its norms with it.
    pub delta_ce: Real,
    /// arccos(cos(h_in, h_out))/π, mean over tokens of the arccos.
    pub angle: Real,
}

/// L2 norms of the gradient in a layer.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct LayerGradient {
    /// Of the matrices of attention.
    pub attention: Real,
    /// Of those of the feed-forward network.
    pub ffn: Real,
    /// Of norms, the boundary's of the block that the layer ends among them.
    pub norms: Real,
    /// Of gains and learned scalars.
    pub gains: Real,
}
