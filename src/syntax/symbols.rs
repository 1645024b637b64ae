//! What the grammar's rules are called in messages, and how far a token reaches.

use super::grammar::Rule;

/// What would have been right where the grammar gave up, in words.
pub(super) fn expected(error: &pest::error::Error<Rule>) -> String {
    let pest::error::ErrorVariant::ParsingError { positives, .. } = &error.variant else { return "something else".into() };
    let mut words: Vec<&str> = positives.iter().filter_map(|rule| word(*rule)).collect();
    words.sort_unstable();
    words.dedup();
    match words.as_slice() {
        [] => "something else".into(),
        [one] => (*one).into(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

/// A rule as its reader would call it; `None` for rules that are beside the point in a message.
fn word(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::expression | Rule::operand | Rule::phrase | Rule::inner | Rule::argument | Rule::arguments | Rule::content => {
            "a value"
        }
        Rule::block => "`{`",
        Rule::word | Rule::name => "a name",
        Rule::item_end => "a comma or a new line",
        Rule::use_entry | Rule::let_entry | Rule::declaration | Rule::entry => "a declaration",
        _ => return None,
    })
}

/// Bytes of the token that a text begins with.
pub(super) fn token_length(text: &str) -> usize {
    let Some(first) = text.chars().next() else { return 0 };
    if first == '"' {
        return text[1..].find(['"', '\n']).map_or(text.len(), |at| at + 2).min(text.len());
    }
    if first.is_ascii_alphanumeric() || first == '_' {
        return text.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '%'))).unwrap_or(text.len());
    }
    if first == '\n' { 0 } else { first.len_utf8() }
}
