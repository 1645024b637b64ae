//! Texts into documents, and documents into a training part and a holdout.

use std::path::{Path, PathBuf};

use super::tales;
use crate::study::{Data, Documents, Holdout, Text};

/// Why the text of a `data` declaration cannot be had.
#[derive(Debug, thiserror::Error)]
pub enum DocumentsError {
    /// No file.
    #[error("no file matches `{0}`")]
    NoFile(String),
    /// The pattern is not one.
    #[error("`{pattern}` is not a file pattern: {reason}")]
    Pattern {
        /// As written.
        pattern: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read.
    #[error("cannot read `{}`: {source}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file is not text.
    #[error("`{}` is not UTF-8 text (byte {at})", path.display())]
    NotText {
        /// Which.
        path: PathBuf,
        /// The first byte at fault.
        at: usize,
    },
    /// A line is not a JSON object with that field.
    #[error("line {line} of `{}` {reason}", path.display())]
    Line {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: usize,
        /// What is wrong.
        reason: String,
    },
    /// Files of a kind that is not read yet.
    #[error("`{}` is a {kind} file, which is not yet supported", path.display())]
    NotYet {
        /// Which.
        path: PathBuf,
        /// What kind.
        kind: &'static str,
    },
    /// There is nothing to train on, or nothing to hold out.
    #[error("{0}")]
    TooSmall(String),
    /// There is more than will be read now.
    #[error("its text is larger than {} MiB", .0 >> 20)]
    TooLarge(u64),
}

/// The documents of a `data` declaration in the order of the corpus: files by name, then by place. Empty documents are left out.
/// Relative patterns are relative to `folder`, that of the `.exp` file.
pub fn read(data: &Data, folder: &Path) -> Result<Vec<String>, DocumentsError> {
    let mut documents = Vec::new();
    match &data.text {
        Text::Tales { documents: count, seed } => documents.extend((0..*count).map(|at| tales::document(*seed, at))),
        Text::Files(patterns) => {
            for path in files(patterns, folder)? {
                split(&path, &text(&path)?, &data.documents, &mut documents)?;
            }
        }
    }
    documents.retain(|document| !document.is_empty());
    Ok(documents)
}

/// Bytes of the text of a `data` declaration; about 500 for a generated tale.
pub(super) fn bytes(data: &Data, folder: &Path) -> Result<u64, DocumentsError> {
    match &data.text {
        Text::Tales { documents, .. } => Ok(500 * documents),
        Text::Files(patterns) => {
            let sizes = files(patterns, folder)?.into_iter().filter_map(|path| std::fs::metadata(path).ok());
            Ok(sizes.map(|file| file.len()).sum())
        }
    }
}

fn files(patterns: &[String], folder: &Path) -> Result<Vec<PathBuf>, DocumentsError> {
    let mut all = Vec::new();
    for pattern in patterns {
        let full = Path::new(&glob::Pattern::escape(&folder.to_string_lossy())).join(pattern);
        let matches = glob::glob(&full.to_string_lossy())
            .map_err(|error| DocumentsError::Pattern { pattern: pattern.clone(), reason: error.msg.into() })?;
        let before = all.len();
        all.extend(matches.filter_map(Result::ok).filter(|path| path.is_file()));
        if all.len() == before {
            return Err(DocumentsError::NoFile(pattern.clone()));
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

fn text(path: &Path) -> Result<String, DocumentsError> {
    for (suffix, kind) in [("parquet", "Parquet"), ("zst", "zstd"), ("gz", "gzip"), ("npy", "NumPy"), ("bin", "binary token")] {
        if path.extension().is_some_and(|extension| extension == suffix) {
            return Err(DocumentsError::NotYet { path: path.into(), kind });
        }
    }
    let bytes = std::fs::read(path).map_err(|source| DocumentsError::Read { path: path.into(), source })?;
    String::from_utf8(bytes).map_err(|error| DocumentsError::NotText { path: path.into(), at: error.utf8_error().valid_up_to() })
}

fn split(path: &Path, text: &str, rule: &Documents, into: &mut Vec<String>) -> Result<(), DocumentsError> {
    match rule {
        Documents::File => into.push(text.to_owned()),
        Documents::Line => into.extend(text.lines().map(str::to_owned)),
        Documents::Paragraph => {
            let mut paragraph = String::new();
            for line in text.lines().chain(std::iter::once("")) {
                if line.trim().is_empty() {
                    into.push(std::mem::take(&mut paragraph));
                } else {
                    if !paragraph.is_empty() {
                        paragraph.push('\n');
                    }
                    paragraph.push_str(line);
                }
            }
        }
        Documents::Field(field) => {
            for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty()) {
                let wrong = |reason: String| DocumentsError::Line { path: path.into(), line: number, reason };
                let value: serde_json::Value =
                    serde_json::from_str(line).map_err(|error| wrong(format!("is not JSON: {error}")))?;
                let document = value.get(field).and_then(|value| value.as_str());
                into.push(document.ok_or_else(|| wrong(format!("has no text field `{field}`")))?.to_owned());
            }
        }
    }
    Ok(())
}

/// Which documents are held out, ascending: those whose content hashes lowest, so that a document stays on its side
/// when others come or go, and no seed or arm has a say.
pub fn holdout(documents: &[String], holdout: Holdout) -> Result<Vec<usize>, DocumentsError> {
    let count = match holdout {
        Holdout::Fraction(fraction) => ((documents.len() as f64 * fraction).round() as usize).max(usize::from(fraction > 0.0)),
        Holdout::Documents(count) => count as usize,
    };
    if count >= documents.len() {
        return Err(DocumentsError::TooSmall(format!(
            "the corpus has {} documents, {count} of them held out: nothing is left to train on",
            documents.len()
        )));
    }
    let mut ranked: Vec<_> =
        documents.iter().enumerate().map(|(at, text)| (*blake3::hash(text.as_bytes()).as_bytes(), at)).collect();
    ranked.sort_unstable();
    let mut held: Vec<usize> = ranked.into_iter().take(count).map(|(_, at)| at).collect();
    held.sort_unstable();
    Ok(held)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_end_at_blank_lines() {
        let mut documents = Vec::new();
        split(Path::new("a.txt"), "one\ntwo\n\n \nthree\n", &Documents::Paragraph, &mut documents).expect("splits");
        documents.retain(|document| !document.is_empty());
        assert_eq!(documents, ["one\ntwo", "three"]);
    }

    #[test]
    fn a_json_line_without_the_field_is_named() {
        let error =
            split(Path::new("a.jsonl"), "{\"text\":\"x\"}\n{\"txt\":\"y\"}", &Documents::Field("text".into()), &mut Vec::new());
        assert_eq!(error.expect_err("refused").to_string(), "line 2 of `a.jsonl` has no text field `text`");
    }

    #[test]
    fn the_holdout_keeps_its_documents_when_others_come() {
        let mut documents: Vec<String> = (0..100).map(|at| format!("document {at}")).collect();
        let before: Vec<String> =
            holdout(&documents, Holdout::Documents(10)).expect("holds").into_iter().map(|at| documents[at].clone()).collect();
        documents.insert(0, "another".into());
        let after: Vec<String> =
            holdout(&documents, Holdout::Documents(11)).expect("holds").into_iter().map(|at| documents[at].clone()).collect();
        assert!(before.iter().filter(|document| after.contains(document)).count() >= 10);
        assert!(holdout(&documents, Holdout::Documents(101)).is_err());
    }
}
