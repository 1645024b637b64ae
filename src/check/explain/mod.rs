//! What stands behind the names of errors and of placements: `xrun explain`.
//!
//! Owns the reading of `grammar/errors.md`, the one list of error codes with their texts and examples; tests hold it against the
//! sources and check every example. Deliberately knows no output.

mod placement;
mod value;

pub use placement::placement;
pub use value::value;

const PAGE: &str = include_str!("../../../grammar/errors.md");

/// What is to be said about an error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Explanation {
    /// The code.
    pub code: &'static str,
    /// Its section of the page: what it means, then the examples in fences.
    pub text: &'static str,
    /// Lines that raise it, behind [`beginning`]; a few codes take more than some lines.
    pub wrong: Option<&'static str>,
    /// Lines that are right.
    pub right: &'static str,
}

/// The lines that examples stand behind.
pub fn beginning() -> &'static str {
    fenced(PAGE, "begin").unwrap_or("")
}

/// All codes, in the order of the alphabet.
pub fn explanations() -> impl Iterator<Item = Explanation> {
    PAGE.split("\n## ").skip(1).map(|section| {
        let (code, text) = section.split_once('\n').unwrap_or((section, ""));
        Explanation { code, text: text.trim(), wrong: fenced(text, "wrong"), right: fenced(text, "right").unwrap_or("") }
    })
}

/// What is to be said about a code.
pub fn explain(code: &str) -> Option<Explanation> {
    explanations().find(|explanation| explanation.code == code)
}

/// The lines of the fence with a word behind `exp`.
fn fenced(text: &'static str, word: &str) -> Option<&'static str> {
    let (_, rest) = text.split_once(&format!("```exp {word}\n"))?;
    rest.split_once("```").map(|(lines, _)| lines)
}
