//! What is to be said about one value of a study: `xrun plan FILE --explain training.lr`.
//!
//! Owns the words, and which values a path means. Deliberately knows no output.

use crate::check::defaults::has_default;
use crate::check::fields::fields;
use crate::check::names::Kind;
use crate::check::{Checked, Origin, Provenance, Use};
use crate::diagnostic::guess;
use crate::source::{Sources, Span};

/// Parts whose fields may be named without them, first come first served: as for axes.
const PARTS: [Kind; 7] = [Kind::Study, Kind::Data, Kind::Model, Kind::Training, Kind::Schedule, Kind::Teacher, Kind::Placement];

/// Where the values come from that a path means, in a file that was traced; an error says why there are none.
pub fn value(checked: &Checked, path: &str) -> Result<String, String> {
    let mut found = found(&checked.origins, path);
    if let (true, Some((field, _))) = (found.is_empty() && is_detail(path), path.rsplit_once('.')) {
        // `batch.in` is said by the words of `batch`.
        found = self::found(&checked.origins, field);
    }
    if !found.is_empty() {
        return Ok(found.into_iter().map(|one| told(one, &checked.sources)).collect());
    }
    if is_field(path) {
        return Err(format!("`{path}` is a field to which no study of this file gives a value, and it has no default"));
    }
    let known = checked.origins.iter().map(|origin| origin.path.as_str());
    let hint = guess(path, known).map_or_else(String::new, |guess| format!("; {guess}"));
    Err(format!("nothing gives a value to `{path}`{hint}"))
}

/// The values that a path means: by its words, by what its field gives, without the part.
fn found<'o>(origins: &'o [Provenance], path: &str) -> Vec<&'o Provenance> {
    let parts = PARTS.iter().map(|part| format!("{}.{path}", part.word()));
    for path in std::iter::once(path.to_owned()).chain(parts) {
        let key = key(&path);
        let path = path.strip_prefix("study.").unwrap_or(&path);
        let found: Vec<_> = origins.iter().filter(|origin| origin.path == path || origin.key == key).collect();
        if !found.is_empty() {
            return found;
        }
    }
    Vec::new()
}

/// A path with what its field gives in the place of the field's name.
fn key(path: &str) -> String {
    let path = path.strip_prefix("study.").unwrap_or(path);
    let mut words: Vec<&str> = path.split('.').collect();
    let mut kind = Kind::Study;
    for word in &mut words {
        match fields(kind).iter().find(|field| field.name == *word) {
            // The part itself, or its fields behind it.
            Some(field) => *word = field.key,
            None if kind != Kind::Study => break,
            None => {}
        }
        match (kind, Kind::read(word), *word) {
            (Kind::Study | Kind::Teacher | Kind::Model, Some(inner), _) => kind = inner,
            (Kind::Teacher, None, "train") => kind = Kind::Training,
            _ => break,
        }
    }
    words.join(".")
}

/// Whether a path is that of a field of the language.
fn is_field(path: &str) -> bool {
    let of = |kind: Kind, name: &str| fields(kind).iter().any(|field| field.name == name);
    match path.split_once('.') {
        Some((kind, name)) => Kind::read(kind).is_some_and(|kind| of(kind, name)),
        None => Kind::ALL.into_iter().any(|kind| of(kind, path)),
    }
}

/// Whether a path is that of a detail of a field that has a default of its own.
fn is_detail(path: &str) -> bool {
    let of = |kind: Kind, name: &str| name.contains('.') && has_default(kind, name);
    let part = path.split_once('.').and_then(|(kind, name)| Some((Kind::read(kind)?, name)));
    part.is_some_and(|(kind, name)| of(kind, name)) || Kind::ALL.into_iter().any(|kind| of(kind, path))
}

fn told(one: &Provenance, sources: &Sources) -> String {
    let whom = one.arms.as_ref().map_or_else(String::new, |arms| format!(" for {arms}"));
    let meant = one.meant.as_ref().map_or_else(String::new, |meant| format!(", that is {meant}"));
    let mut text = format!("{}{whom}: {} = {}{meant}\n", one.study, one.path, one.value);
    text += &match &one.origin {
        Origin::Written(span, stands) => format!("  written at {}, {stands}\n", place(*span, sources)),
        Origin::Default(reason) => format!("  a default: {reason}\n"),
    };
    for Use { name, kind, value, at, taken } in &one.uses {
        let at = place(*at, sources);
        let taken = taken.map_or_else(String::new, |word| format!(", taken by `use` at {}", place(word, sources)));
        text += &match value {
            Some(value) => format!("  `{name}` is {value}, by the {kind} at {at}{taken}\n"),
            None => format!("  `{name}` is the {kind} declared at {at}{taken}\n"),
        };
    }
    text
}

/// `study.exp:3:14`.
fn place(span: Span, sources: &Sources) -> String {
    let source = sources.get(span.file);
    let place = source.place(span.start);
    format!("{}:{}:{}", source.name, place.line, place.column)
}
