//! What the grammar's rules are called in messages, and how far a token reaches.

use super::grammar::Rule;

/// What would have been right where the grammar gave up, in words, if there are any.
pub(super) fn expected(error: &pest::error::Error<Rule>) -> Option<String> {
    let pest::error::ErrorVariant::ParsingError { positives, .. } = &error.variant else { return None };
    let mut words: Vec<&str> = positives.iter().filter_map(|rule| word(*rule)).collect();
    words.sort_unstable();
    words.dedup();
    match words.as_slice() {
        [] => None,
        [one] => Some((*one).into()),
        [most @ .., last] => Some(format!("{} or {last}", most.join(", "))),
    }
}

/// A rule as its reader would call it; `None` for rules that are beside the point in a message.
fn word(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::expression | Rule::operand | Rule::phrase | Rule::inner | Rule::argument | Rule::arguments | Rule::content => {
            "a value"
        }
        Rule::block => "`{` or `=`",
        Rule::names => "`(`",
        Rule::word | Rule::name => "a name",
        Rule::item_end => "a comma or a new line",
        Rule::end => "a new line",
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
    if first == '.' {
        return text.len() - text.trim_start_matches('.').len();
    }
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if first == '\n' { 0 } else { first.len_utf8() }
}

/// Bytes of the token that a text ends with.
pub(super) fn last_token_length(text: &str) -> usize {
    let run = |is_part: fn(char) -> bool| text.len() - text.trim_end_matches(is_part).len();
    let word = run(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '%'));
    let operator = run(|letter| matches!(letter, '<' | '>' | '=' | '!'));
    word.max(operator).max(text.chars().next_back().map_or(0, char::len_utf8))
}
