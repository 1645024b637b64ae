//! Which texts belong to a check: the root and all that it uses, each read and parsed once.
//!
//! Owns `use`: the standard library, paths beside the file, cycles. Deliberately knows no names. Invariant: units stand behind those
//! that they use; the root is the last.

use super::LIBRARY;
use crate::diagnostic::{Diagnostic, Problems};
use crate::source::{FileId, Source, Sources, Span, World};
use crate::syntax::ast::{Entry, File, UseFrom, Word};
use crate::syntax::parse;

/// More files than any study is written in.
const MOST_FILES: usize = 256;

/// A text with its tree.
pub(super) struct Unit {
    pub(super) file: FileId,
    pub(super) tree: File,
    /// Something in it could not be read, so that names may be missing for no fault of theirs.
    pub(super) has_syntax_errors: bool,
    /// For each `use` in order: the unit used, `None` where it could not be read.
    pub(super) uses: Vec<Option<usize>>,
}

/// All texts of a check.
pub(super) struct Loaded {
    pub(super) sources: Sources,
    pub(super) units: Vec<Unit>,
    pub(super) said: Problems,
}

/// Reads the root and what it uses.
pub(super) fn load(world: &dyn World, root: Source) -> Loaded {
    let loaded = Loaded { sources: Sources::default(), units: Vec::new(), said: Problems::default() };
    let mut loader = Loader { world, loaded, open: Vec::new(), count: 0 };
    // Defaults may name its declarations.
    for (name, text) in LIBRARY {
        loader.unit(Source::new(name, text));
    }
    loader.unit(root);
    loader.loaded
}

struct Loader<'w> {
    world: &'w dyn World,
    loaded: Loaded,
    /// Names of the texts whose uses are being read.
    open: Vec<String>,
    count: usize,
}

impl Loader<'_> {
    fn unit(&mut self, source: Source) -> usize {
        self.count += 1;
        let (name, text) = (source.name.clone(), source.text.clone());
        let file = self.loaded.sources.add(source);
        let (tree, said) = parse(file, &text);
        let has_syntax_errors = !said.is_empty();
        self.loaded.said.extend(said);
        self.open.push(name.clone());
        let mut uses = Vec::new();
        for entry in &tree.entries {
            if let Entry::Use(entry) = entry {
                let used = match &entry.from {
                    UseFrom::Library(word) => self.library(word),
                    UseFrom::Path(word) => self.beside(&name, word),
                };
                uses.push(used);
            }
        }
        self.open.pop();
        self.loaded.units.push(Unit { file, tree, has_syntax_errors, uses });
        self.loaded.units.len() - 1
    }

    fn library(&mut self, word: &Word) -> Option<usize> {
        let Some((name, _)) = LIBRARY.into_iter().find(|(name, _)| *name == word.text) else {
            let known = LIBRARY.map(|(name, _)| name);
            let message = format!("the standard library has no `{}`", word.text);
            let said = Diagnostic::error("unknown-library", message, word.span).did_you_mean(&word.text, known);
            return self.fail(said.hint(format!("it has {}", known.map(|name| format!("`{name}`")).join(" and "))));
        };
        self.known(name)
    }

    fn beside(&mut self, from: &str, word: &Word) -> Option<usize> {
        if let Some(reason) = out_of_bounds(&word.text) {
            let said = Diagnostic::error("use-outside", reason, word.span);
            return self.fail(said.hint("use a file beside this one or in a folder below"));
        }
        let source = match self.world.read(from, &word.text) {
            Ok(source) => source,
            Err(reason) => {
                return self.fail(Diagnostic::error("cannot-use", format!("`{}`: {reason}", word.text), word.span));
            }
        };
        if self.open.contains(&source.name) {
            let chain = self.open.iter().skip_while(|name| **name != source.name).map(|name| format!("`{name}`"));
            let chain = chain.chain([format!("`{}`", source.name)]).collect::<Vec<_>>().join(" uses ");
            return self.fail(Diagnostic::error("cycle", format!("files that use one another: {chain}"), word.span));
        }
        if let Some(known) = self.known(&source.name) {
            return Some(known);
        }
        if self.count >= MOST_FILES {
            return self.fail(Diagnostic::error("too-many-files", format!("more than {MOST_FILES} files"), word.span));
        }
        Some(self.unit(source))
    }

    fn known(&self, name: &str) -> Option<usize> {
        self.loaded.units.iter().position(|unit| self.loaded.sources.get(unit.file).name == name)
    }

    fn fail<T>(&mut self, said: Diagnostic) -> Option<T> {
        self.loaded.said.push(said);
        None
    }
}

fn out_of_bounds(path: &str) -> Option<&'static str> {
    if path.is_empty() {
        return Some("a path is missing");
    }
    if path.starts_with(['/', '\\', '~']) || path.as_bytes().get(1) == Some(&b':') {
        return Some("an absolute path");
    }
    path.split(['/', '\\']).any(|part| part == "..").then_some("a path that leaves the folder of this file")
}

/// Where a `use` says its names come from.
pub(super) fn origin(from: &UseFrom) -> (&str, Span) {
    match from {
        UseFrom::Library(word) | UseFrom::Path(word) => (&word.text, word.span),
    }
}
