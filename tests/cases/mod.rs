//! Cases: `.exp` files that say on their lines what is wrong there.
//!
//! A line carries `// error: about <<words>>, suggests word` (or `error[code]: …`): the words underlined on that line, and a word of
//! a hint. What is missing and what is unexpected are both faults.

mod files;

use xrun::diagnostic::{Diagnostic, Severity};
use xrun::source::Sources;

pub use files::files;

/// What a case expects on a line.
#[derive(Debug)]
struct Expected {
    line: usize,
    code: Option<String>,
    words: String,
    suggests: Option<String>,
}

fn expected(text: &str) -> Vec<Expected> {
    let mut all = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let Some((_, comment)) = line.split_once("// error") else { continue };
        for piece in format!("error{comment}").split("error").skip(1) {
            let Some((before, rest)) = piece.split_once("<<") else { continue };
            let (words, after) = rest.split_once(">>").expect("`>>`");
            let code = before.strip_prefix('[').and_then(|before| before.split_once(']')).map(|(code, _)| code.to_owned());
            let suggests = after.split_once("suggests ").map(|(_, word)| word.split_whitespace().next().unwrap_or("").to_owned());
            all.push(Expected { line: index + 1, code, words: words.to_owned(), suggests });
        }
    }
    all
}

/// How what was said differs from what the text of that name expects.
pub fn disagreements(name: &str, text: &str, sources: &Sources, said: Vec<&Diagnostic>) -> Vec<String> {
    let mut said: Vec<&Diagnostic> = said.into_iter().filter(|said| said.severity == Severity::Error).collect();
    let mut faults = Vec::new();
    for expected in expected(text) {
        let is_it = |said: &&&Diagnostic| {
            let source = sources.get(said.span.file);
            source.name == name
                && source.place(said.span.start).line == expected.line
                && sources.text(said.span) == expected.words
                && expected.code.as_ref().is_none_or(|code| code == said.code)
                && expected.suggests.as_ref().is_none_or(|word| said.hints.iter().any(|hint| hint.contains(word.as_str())))
        };
        match said.iter().find(is_it).copied() {
            Some(found) => said.retain(|said| !std::ptr::eq(*said, found)),
            None => faults.push(format!("{name}:{}: nothing says {expected:?}", expected.line)),
        }
    }
    for said in said {
        let source = sources.get(said.span.file);
        let place = source.place(said.span.start);
        faults.push(format!(
            "{}:{}:{}: unexpected error[{}] on `{}`: {} {:?}",
            source.name,
            place.line,
            place.column,
            said.code,
            sources.text(said.span),
            said.message,
            said.hints
        ));
    }
    faults
}
