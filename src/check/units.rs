//! Units of quantities.
//!
//! Owns their words. Knows no field.

/// What is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    Steps,
    Tokens,
    Sequences,
    Documents,
    Layers,
    Blocks,
}

impl Unit {
    /// From its word, singular or plural.
    pub(super) fn read(word: &str) -> Option<Self> {
        Some(match word {
            "step" | "steps" => Unit::Steps,
            "token" | "tokens" => Unit::Tokens,
            "sequence" | "sequences" => Unit::Sequences,
            "document" | "documents" => Unit::Documents,
            "layer" | "layers" => Unit::Layers,
            "block" | "blocks" => Unit::Blocks,
            _ => return None,
        })
    }
    /// All words of units.
    pub(super) const WORDS: [&str; 12] = [
        "step",
        "steps",
        "token",
        "tokens",
        "sequence",
        "sequences",
        "document",
        "documents",
        "layer",
        "layers",
        "block",
        "blocks",
    ];

    /// Its word in the plural.
    pub(super) fn name(self) -> &'static str {
        match self {
            Unit::Steps => "steps",
            Unit::Tokens => "tokens",
            Unit::Sequences => "sequences",
            Unit::Documents => "documents",
            Unit::Layers => "layers",
            Unit::Blocks => "blocks",
        }
    }
}
