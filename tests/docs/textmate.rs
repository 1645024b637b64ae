//! A TextMate grammar at work: as much of the engine that editors have as this project's grammar needs.

use fancy_regex::{Captures, Regex};
use serde_json::Value;

/// A part of a line with the name of its scope.
#[derive(Debug, Clone, PartialEq)]
pub struct Scoped {
    pub start: usize,
    pub end: usize,
    pub scope: String,
}

/// A rule of the grammar.
struct Rule {
    scope: Option<String>,
    /// Scopes of the parts of the match.
    parts: Vec<(usize, String)>,
    begin: Regex,
    /// What ends it, and what stands inside until then.
    inner: Option<(Regex, Vec<Rule>)>,
}

/// The grammar.
pub struct Grammar(Vec<Rule>);

fn regex(pattern: &Value) -> Regex {
    let pattern = pattern.as_str().expect("a pattern");
    Regex::new(pattern).unwrap_or_else(|error| panic!("`{pattern}`: {error}"))
}

fn rules(of: &Value) -> Vec<Rule> {
    let name = |value: &Value| value["name"].as_str().map(str::to_owned);
    let rule = |one: &Value| Rule {
        scope: name(one),
        parts: one["captures"]
            .as_object()
            .into_iter()
            .flatten()
            .map(|(at, part)| (at.parse().expect("a number"), name(part).expect("a name")))
            .collect(),
        begin: regex(if one["begin"].is_string() { &one["begin"] } else { &one["match"] }),
        inner: one["end"].is_string().then(|| (regex(&one["end"]), rules(one))),
    };
    of["patterns"].as_array().into_iter().flatten().map(rule).collect()
}

/// The rule that matches first; of several at one place the one that is listed first.
fn next<'r, 't>(rules: &'r [Rule], line: &'t str, from: usize) -> Option<(&'r Rule, Captures<'t>)> {
    let mut best: Option<(&Rule, Captures<'_>)> = None;
    for rule in rules {
        let Some(found) = rule.begin.captures_from_pos(line, from).expect("a simple pattern") else { continue };
        let start = |found: &Captures<'_>| found.get(0).map_or(line.len(), |whole| whole.start());
        if best.as_ref().is_none_or(|(_, known)| start(&found) < start(known)) {
            best = Some((rule, found));
        }
    }
    best
}

impl Grammar {
    pub fn new(grammar: &Value) -> Self {
        Self(rules(grammar))
    }

    /// The scopes of a line, in its order. Nothing of this language goes on over a line's end.
    pub fn scopes(&self, line: &str) -> Vec<Scoped> {
        let mut found = Vec::new();
        let mut at = 0;
        while let Some((rule, captures)) = next(&self.0, line, at) {
            let whole = captures.get(0).expect("a match has a whole");
            let mut end = whole.end();
            if let Some((closes, inner)) = &rule.inner {
                end = Self::inside(closes, inner, line, end, &mut found);
            }
            if let Some(scope) = &rule.scope {
                found.push(Scoped { start: whole.start(), end, scope: scope.clone() });
            }
            for (number, scope) in &rule.parts {
                if let Some(part) = captures.get(*number) {
                    found.push(Scoped { start: part.start(), end: part.end(), scope: scope.clone() });
                }
            }
            assert!(end > at || end > whole.start(), "`{}` matches nothing in `{line}`", rule.begin.as_str());
            at = end;
        }
        found
    }

    /// Where a rule that has begun ends; what stands inside.
    fn inside(closes: &Regex, inner: &[Rule], line: &str, from: usize, found: &mut Vec<Scoped>) -> usize {
        let mut at = from;
        loop {
            let close = closes
                .find_from_pos(line, at)
                .expect("a simple pattern")
                .map_or((line.len(), line.len()), |end| (end.start(), end.end()));
            match next(inner, line, at)
                .and_then(|(rule, captures)| captures.get(0).map(|whole| (rule, whole.start(), whole.end())))
            {
                Some((rule, start, end)) if start < close.0 && end > at => {
                    found.push(Scoped { start, end, scope: rule.scope.clone().unwrap_or_default() });
                    at = end;
                }
                _ => return close.1,
            }
        }
    }
}
