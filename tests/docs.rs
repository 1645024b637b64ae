//! What the documents show is true: examples check and plan, shown errors are raised, the shown plan is the plan, defaults are those taken.
//!
//! A block of code marked `exp` is a file of its own. `exp,in data` and `exp,in study` are statements of such a body, which may use what the
//! `exp` block before declares, unless that is a study itself. `exp,error CODE` is a file that raises that code and no other.

#[path = "cases/comments.rs"]
mod comments;
#[path = "cases/files.rs"]
mod files;
#[path = "docs/textmate.rs"]
mod textmate;

use std::path::{Path, PathBuf};
use std::process::Command;

use xrun::check::{Checked, check};
use xrun::data::{Reach, gather};
use xrun::plan::{self, Why};
use xrun::source::{FileId, Source, World};
use xrun::study::{Metric, ProbeKind, Quantity};
use xrun::syntax::parse;

/// Pages with examples.
const PAGES: [&str; 4] = ["README.md", "grammar/reference.md", "docs/src/tutorial.md", "docs/src/cookbook.md"];

/// What statements of a study are tried in.
const PRELUDE: &str = "use std.placements (pre, post)
use std.schedules (joint, grow, grow_frozen)
data d { generate tales(documents: 100, seed: 1), context 32 tokens }
model m { layers 4, block 2 layers, width 16, heads 2, ffn swiglu(32) }
training t { loss cross_entropy, optimizer adamw(lr: 1e-3), batch 4 sequences }
";

struct Nothing;

impl World for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("an example stands alone".to_owned())
    }
}

fn page(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(name);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

struct Block {
    /// The words behind the fence.
    words: String,
    /// `README.md, line 12`.
    place: String,
    text: String,
}

/// The fenced blocks of a page.
fn blocks(name: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open = false;
    for (number, line) in (1..).zip(page(name).lines()) {
        match line.strip_prefix("```") {
            Some(words) => {
                open = !open;
                if open {
                    found.push(Block { words: words.to_owned(), place: format!("{name}, line {number}"), text: String::new() });
                }
            }
            None => {
                if let (true, Some(block)) = (open, found.last_mut()) {
                    block.text.push_str(line);
                    block.text.push('\n');
                }
            }
        }
    }
    found
}

/// Checks a text that has to be right, and plans its studies; the plans as `xrun plan` prints them.
fn plans(place: &str, text: &str) -> Vec<String> {
    let checked = checked(place, text);
    assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    let plan = |study| {
        let plan = plan::build(study, &gather(study, &PathBuf::new(), &Reach::whole()))
            .unwrap_or_else(|error| panic!("{place}: {error}"));
        plan::text::text(&plan, &|_| Why::New, false)
    };
    checked.studies.iter().map(plan).collect()
}

fn checked(place: &str, text: &str) -> Checked {
    check(&Nothing, Source::new(place, text))
}

#[test]
fn examples_check_and_plan() {
    for name in PAGES {
        let (mut before, mut count) = (String::new(), 0);
        for Block { words, place, text } in blocks(name) {
            let Some(manner) = words.strip_prefix("exp") else { continue };
            count += 1;
            match manner.split_once(' ') {
                None if manner.is_empty() => {
                    plans(&place, &text);
                    before = text;
                }
                Some((",in", "data")) => drop(plans(&place, &format!("data d {{\n  context 64 tokens\n{text}}}\n"))),
                Some((",in", "study")) => {
                    let schedule = if text.contains("schedule") { "" } else { "  schedule joint(steps: 40)\n" };
                    let study = format!("study s {{\n  data d\n  model m\n  training t\n{schedule}{text}}}\n");
                    let declared = if before.contains("\nstudy ") { "" } else { before.as_str() };
                    plans(&place, &format!("{PRELUDE}{declared}{study}"));
                }
                Some((",error", code)) => {
                    let checked = checked(&place, &text);
                    let said: Vec<&str> = checked.problems.sorted().iter().map(|said| said.code).collect();
                    assert_eq!(said, [code], "{}", checked.problems.render(&checked.sources, false));
                }
                _ => panic!("{place}: what is `{words}`?"),
            }
        }
        assert!(count > 3, "{name} has {count} examples");
    }
}

/// Every command that a page shows has a help that knows its options.
#[test]
fn shown_commands_exist_with_their_options() {
    let mut seen = 0;
    for Block { words, place, text } in PAGES.iter().copied().flat_map(blocks) {
        for line in text.lines().filter(|_| words == "sh").filter_map(|line| line.strip_prefix("xrun ")) {
            let mut shown = line.split('#').next().unwrap_or("").split_whitespace();
            let command = shown.next().unwrap_or("");
            let help = Command::new(env!("CARGO_BIN_EXE_xrun")).args([command, "--help"]).output().expect("runs");
            let help = String::from_utf8_lossy(&help.stdout).into_owned();
            assert!(help.contains(&format!("Usage: xrun {command}")), "{place}: no command `{command}`");
            for option in shown.filter(|word| word.starts_with("--")) {
                assert!(help.contains(option), "{place}: `{command}` has no `{option}`");
            }
            seen += 1;
        }
    }
    assert!(seen > 10, "{seen} commands");
}

/// Every page of the book is in its table of contents, every link of that leads to one, and so does every inclusion.
#[test]
fn the_book_is_whole() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/src");
    let contents = page("docs/src/SUMMARY.md");
    let mut listed: Vec<&str> = contents.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    listed.sort_unstable();
    let files =
        std::fs::read_dir(&folder).expect("reads").map(|entry| entry.expect("reads").file_name().into_string().expect("text"));
    let mut files: Vec<String> = files.filter(|name| name != "SUMMARY.md").collect();
    files.sort_unstable();
    assert_eq!(listed, files);
    for name in files {
        for inclusion in page(&format!("docs/src/{name}")).split("{{#include ").skip(1).filter_map(|rest| rest.split("}}").next())
        {
            let (path, anchor) = inclusion.split_once(".md").expect("a page");
            let text =
                std::fs::read_to_string(folder.join(format!("{path}.md"))).unwrap_or_else(|error| panic!("{inclusion}: {error}"));
            if let Some(anchor) = anchor.strip_prefix(':') {
                assert!(
                    text.contains(&format!("<!-- ANCHOR: {anchor} -->"))
                        && text.contains(&format!("<!-- ANCHOR_END: {anchor} -->"))
                );
            }
        }
    }
}

/// Every line of the plan that the front page shows is a line of the plan of the study above it.
#[test]
fn the_plan_of_the_front_page_is_its_study_s() {
    let blocks = blocks("README.md");
    let study = blocks.iter().find(|block| block.words == "exp").expect("a study");
    let shown = blocks.iter().find(|block| block.words == "text").expect("its plan");
    let plan = plans(&study.place, &study.text).concat();
    for line in shown.text.lines() {
        assert!(plan.lines().any(|own| own == line), "{}: `{line}` is not in\n{plan}", shown.place);
    }
}

/// Metrics with units and definitions, probes, quantities: each has its row.
#[test]
fn the_reference_has_the_catalogue() {
    let page = page("grammar/reference.md");
    for metric in Metric::ALL {
        let row = format!("| `{}` | {} | {} |", metric.name(), metric.unit(), metric.definition());
        assert!(page.contains(&row), "no row {row}");
    }
    let words = ProbeKind::ALL.map(ProbeKind::name).into_iter().chain(Quantity::ALL.map(Quantity::name));
    for word in words {
        assert!(page.contains(&format!("`{word}`")), "{word}");
    }
}

/// Every value that a file may leave out stands, as it is filled in, in the row of its field.
#[test]
fn the_reference_has_every_default() {
    let page = page("grammar/reference.md");
    let study = |model: &str, training: &str, data: &str| {
        let training =
            if training.contains("optimizer") { training.to_owned() } else { format!("optimizer adamw(lr: 1e-3){training}") };
        format!(
            "data d {{ {data}, context 16 tokens }}
             model m {{ layers 2, width 8, heads 2, ffn swiglu(16){model} }}
             training t {{ loss kl + jsd, {training}, batch 4 }}
             teacher big {{ checkpoint \"folder\" }}
             schedule all {{ start with all blocks, end at step 4 }}
             study s {{ data d, model m, training t, schedule all, probe boundary_rms at end }}"
        )
    };
    let texts = [
        study("", "", "generate tales(documents: 9)"),
        study(", norm layer, positions rope", ", lr wsd", "files \"a.txt\""),
        study(", norm rms", ", lr cosine", "files \"a.txt\""),
        study("", "optimizer sgd(lr: 1)", "files \"a.txt\""),
        study("", "optimizer lion(lr: 1)", "files \"a.txt\""),
        study("", "optimizer muon(lr: 1)", "files \"a.txt\""),
    ];
    let mut seen = 0;
    for filled in texts.iter().flat_map(|text| checked("defaults", text).studies).flat_map(|study| study.defaults) {
        let keyword = filled.owner.split(' ').next().unwrap_or("");
        // What is worked out from other fields is told in words.
        let derived = ["kv", "dim", "batch.in", "vocabulary", "seeds", "measure", "probe.on"];
        if derived.contains(&filled.field.as_str()) {
            continue;
        }
        seen += 1;
        let field = match filled.field.split('.').next().unwrap_or("") {
            "layout" => "packed",
            field => field,
        };
        let section = page.split("\n## ").find(|section| section.lines().next() == Some(keyword)).expect("a section");
        let row = section.lines().find(|line| {
            line.starts_with("| ")
                && line.split(" | ").next().is_some_and(|cell| {
                    let words = cell.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
                    words.into_iter().any(|word| word == field)
                })
        });
        let row = row.unwrap_or_else(|| panic!("`{keyword}` has no row for `{field}`"));
        let default = row.trim_end_matches('|').trim().rsplit(" | ").next().unwrap_or("");
        let value = filled.value.split(", here").next().unwrap_or("");
        assert!(default.contains(value), "{keyword}.{}: the row says `{default}`, filled in is `{value}`", filled.field);
    }
    assert!(seen > 26, "{seen} defaults");
}

const KEYWORDS: [&str; 7] = ["data", "model", "teacher", "training", "placement", "schedule", "study"];

/// The grammar that colours texts in an editor.
fn grammar() -> textmate::Grammar {
    let text = page("grammar/vscode/syntaxes/exp.tmLanguage.json");
    textmate::Grammar::new(&serde_json::from_str(&text).expect("JSON"))
}

/// An editor's colours know every declaration and every field.
#[test]
fn the_editor_grammar_knows_every_field() {
    let grammar: serde_json::Value = serde_json::from_str(&page("grammar/vscode/syntaxes/exp.tmLanguage.json")).expect("JSON");
    let patterns: Vec<&str> =
        grammar["patterns"].as_array().expect("patterns").iter().filter_map(|one| one["match"].as_str()).collect();
    let words =
        |pattern: &str| pattern.split(|c: char| !(c.is_alphanumeric() || c == '_')).map(str::to_owned).collect::<Vec<_>>();
    let all: Vec<String> = patterns.into_iter().flat_map(words).collect();
    for keyword in KEYWORDS {
        let fields = xrun::check::fields_of(keyword);
        for word in fields.into_iter().chain([keyword]) {
            assert!(all.iter().any(|known| known == word), "{word}");
        }
    }
}

/// What the extension says of itself holds: its files are there, and the program is started as a language server.
#[test]
fn the_extension_is_whole() {
    let manifest: serde_json::Value = serde_json::from_str(&page("grammar/vscode/package.json")).expect("JSON");
    let contributes = &manifest["contributes"];
    let (language, grammar) = (&contributes["languages"][0], &contributes["grammars"][0]);
    assert_eq!((&language["extensions"], &language["id"]), (&serde_json::json!([".exp"]), &grammar["language"]));
    for path in [&manifest["main"], &language["configuration"], &grammar["path"]] {
        page(&format!("grammar/vscode/{}", path.as_str().expect("a path")));
    }
    let text: serde_json::Value = serde_json::from_str(&page("grammar/vscode/syntaxes/exp.tmLanguage.json")).expect("JSON");
    assert_eq!(text["scopeName"], grammar["scopeName"]);
    assert!(page("grammar/vscode/extension.js").contains("args: [\"lsp\"]"));
}

/// Every text of the repository in an editor's colours: comments, texts and numbers are what they are, a declaration's keyword and name stand
/// out, and so does every field at the beginning of a statement.
#[test]
fn the_editor_grammar_colours_every_text() {
    let (root, grammar) = (Path::new(env!("CARGO_MANIFEST_DIR")), grammar());
    let paths = ["stdlib", "experiments", "tests/suite"].iter().flat_map(|folder| files::files(&root.join(folder), "exp"));
    let mut texts: Vec<(String, String)> =
        paths.map(|path| (path.display().to_string(), std::fs::read_to_string(&path).expect("reads"))).collect();
    // What cannot be read has no colours that would be right.
    texts.retain(|(_, text)| parse(FileId::default(), text).1.is_empty());
    assert!(texts.len() > 25, "{}", texts.len());
    texts.extend(
        PAGES.iter().flat_map(|name| blocks(name)).filter(|block| block.words == "exp").map(|block| (block.place, block.text)),
    );
    let mut faults = Vec::new();
    for (name, text) in &texts {
        let mut keyword = None;
        for (number, line) in (1..).zip(text.lines()) {
            for fault in coloured(&grammar, line, &mut keyword) {
                faults.push(format!("{name}:{number}: {fault}\n  {line}"));
            }
        }
    }
    assert!(faults.is_empty(), "{} faults\n{}", faults.len(), faults.join("\n"));
}

/// What is wrong with the colours of a line; `keyword` is that of the declaration it stands in.
fn coloured(grammar: &textmate::Grammar, line: &str, keyword: &mut Option<String>) -> Vec<String> {
    let scopes = grammar.scopes(line);
    let scope = |start: usize, end: usize| {
        scopes.iter().find(|one| one.start <= start && end <= one.end).map_or("", |one| one.scope.as_str())
    };
    let mut faults = Vec::new();
    let mut wants = |start: usize, end: usize, kinds: &[&str]| {
        let found = scope(start, end);
        if !kinds.iter().any(|kind| if kind.is_empty() { found.is_empty() } else { found.starts_with(kind) }) {
            faults.push(format!("`{}` is `{found}`, expected {kinds:?}", &line[start..end]));
        }
    };
    let code_end = comments::comment(line).unwrap_or(line.len());
    if code_end < line.len() {
        wants(code_end, line.trim_end().len(), &["comment"]);
    }
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (mut at, mut begins, mut declares) = (0, true, false);
    while at < code_end {
        let rest = &line[at..code_end];
        let first = rest.chars().next().expect("not at the end");
        let end = at
            + match first {
                '"' => quoted(rest),
                _ if is_letter(first) && !first.is_ascii_digit() => rest.find(|c| !is_letter(c)).unwrap_or(rest.len()),
                '.' if rest[1..].starts_with(|c: char| c.is_ascii_digit()) && !line[..at].ends_with('.') => number(rest),
                _ if first.is_ascii_digit() => number(rest),
                _ => first.len_utf8(),
            };
        let word = &line[at..end];
        match first {
            '"' => wants(at, end, &["string"]),
            '.' if word.len() > 1 => wants(at, end, &["constant.numeric"]),
            _ if first.is_ascii_digit() => wants(at, end, &["constant.numeric"]),
            _ if is_letter(first) => {
                if declares {
                    wants(at, end, &["entity.name.type"]);
                } else if begins && line[..at].trim().is_empty() && at == 0 && KEYWORDS.contains(&word) {
                    wants(at, end, &["keyword.declaration"]);
                    *keyword = Some(word.to_owned());
                } else if begins
                    && !line[end..].starts_with('(')
                    && keyword.as_ref().is_some_and(|keyword| xrun::check::fields_of(keyword).contains(&word))
                {
                    wants(at, end, &["support.type.property-name", "keyword"]);
                } else {
                    wants(at, end, &["", "support", "keyword", "storage", "entity"]);
                }
                declares = begins && at == 0 && KEYWORDS.contains(&word);
            }
            _ => {}
        }
        if !first.is_whitespace() {
            begins = matches!(first, '{' | ',' | ';');
        }
        at = end;
    }
    faults
}

/// How long the quoted text at the beginning of a text is.
fn quoted(text: &str) -> usize {
    let mut escaped = false;
    let close = text.char_indices().skip(1).find(|(_, letter)| {
        let closes = *letter == '"' && !escaped;
        escaped = *letter == '\\' && !escaped;
        closes
    });
    close.map_or(text.len(), |(at, _)| at + 1)
}

/// How long the number at the beginning of a text is.
fn number(text: &str) -> usize {
    let mut end = 0;
    for (at, letter) in text.char_indices() {
        let before = text[..at].chars().next_back();
        let goes_on = letter.is_ascii_alphanumeric()
            || letter == '_'
            || letter == '%'
            || (letter == '.' && !text[at + 1..].starts_with('.') && before != Some('.'))
            || (matches!(letter, '+' | '-') && matches!(before, Some('e' | 'E')));
        if !goes_on {
            break;
        }
        end = at + 1;
    }
    end
}
