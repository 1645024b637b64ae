//! The architecture of a student or teacher.

use serde::{Deserialize, Serialize};

use super::placement::Wiring;

/// A `model` declaration.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Its name in the file.
    pub name: String,
    /// The `///` text before it.
    pub doc: Option<String>,
    /// Final depth L.
    pub layers: usize,
    /// Layers of one block; divides `layers`.
    pub block: usize,
    /// Width D of the residual stream.
    pub width: usize,
    /// Query heads H.
    pub heads: usize,
    /// Key/value heads G; divides `heads`.
    pub kv_heads: usize,
    /// Width K of one head; even.
    pub head_dim: usize,
    /// The feed-forward network.
    pub ffn: Ffn,
    /// What `norm(…)` is.
    pub norm: Norm,
    /// Each query and key head is normalised before RoPE, with one weight vector for all query heads and one for all key heads.
    pub qk_norm: bool,
    /// How the residual stream is wired.
    pub wiring: Wiring,
    /// How positions are told.
    pub positions: Positions,
    /// The input embedding.
    pub embedding: Embedding,
    /// The output head.
    pub head: Head,
    /// First values of matrices and embeddings.
    pub init: Init,
    /// How many token types.
    pub vocabulary: Vocabulary,
}

/// `ffn swiglu(384)`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Ffn {
    /// down(silu(gate x) ⊙ up x), three matrices (2002.05202).
    SwiGlu {
        /// Hidden width F.
        width: usize,
    },
    /// down(gelu(up x)), two matrices, tanh approximation (1606.08415).
    Gelu {
        /// Hidden width F.
        width: usize,
    },
}

/// `norm rms(eps: 1e-6)`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Norm {
    /// Which normalisation.
    pub kind: NormKind,
    /// Added to the mean square (or variance) before the root; 0 for kinds without one.
    pub eps: f64,
}

/// Kinds of normalisation.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum NormKind {
    /// x · rsqrt(mean(x²) + eps) · w (1910.07467).
    Rms,
    /// (x − mean) · rsqrt(var + eps) · w, with `+ b` if `bias` (1607.06450).
    Layer {
        /// Has a learned shift.
        bias: bool,
    },
    /// Dynamic Tanh: w · tanh(a · x) + b with a learned scalar a, no statistics of x (2503.10622).
    Dyt {
        /// Where a starts.
        alpha: f64,
    },
    /// Nothing: `norm(x)` is x, and has no parameters.
    None,
}

/// `positions rope(base: 10_000) | none`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub enum Positions {
    /// Rotary embeddings that rotate halves: pair (i, i + K/2), angle pos · base^(−2i/K) (2104.09864).
    Rope {
        /// Base of the angles.
        base: f64,
    },
    /// None.
    None,
}

/// `embedding own | tied | teacher frozen | teacher`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Embedding {
    /// Its own matrix.
    Own,
    /// One matrix for embedding and head.
    Tied,
    /// Starts as the teacher's.
    Teacher {
        /// And stays so.
        frozen: bool,
    },
}

/// `head own | tied | teacher frozen | teacher`. `tied` on either field ties both, and `check` sets both.
pub type Head = Embedding;

/// `init normal(std) | from "first.safetensors"`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Init {
    /// Normal with mean 0; norms and gains have their own first values.
    Normal {
        /// Standard deviation, the model's own expressions evaluated.
        std: f64,
    },
    /// All tensors from a file.
    From {
        /// Relative to the folder of the `.exp` file.
        file: String,
        /// Hash of its weights ([`crate::data::facts::Weights::content`]), once the plan has looked.
        content: Option<String>,
    },
}

/// `vocabulary 151_936`, or the tokenizer's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Vocabulary {
    /// Known from the file.
    Size(usize),
    /// That of the tokenizer, which is at hand only when the plan is made.
    OfTokenizer,
}
