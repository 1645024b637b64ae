//! Texts that were made to take long: each is answered in time that grows with its length and no faster.
//!
//! `XRUN_HOSTILE_BYTES` sets how long they are (up to 524,288, the longest text that is read).

use std::time::{Duration, Instant};

use xrun::check::{begins_statement, check};
use xrun::diagnostic::Problems;
use xrun::source::{Source, World};
use xrun::syntax::print;

struct Nothing;

impl World for Nothing {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

/// How long a text may take, also where nothing is optimised and others run beside it.
const LONGEST: Duration = Duration::from_secs(20);

fn bytes() -> usize {
    std::env::var("XRUN_HOSTILE_BYTES").ok().and_then(|bytes| bytes.parse().ok()).unwrap_or(96 << 10)
}

/// A text, as often as it fits between two others.
fn filled(start: &str, text: &str, end: &str) -> String {
    format!("{start}{}{end}", text.repeat((bytes() - start.len() - end.len()) / text.len()))
}

/// Numbered texts, as many as fit.
fn numbered(start: &str, text: &dyn Fn(usize) -> String, end: &str) -> String {
    let mut all = start.to_owned();
    for number in 0.. {
        let more = text(number);
        if all.len() + more.len() + end.len() > bytes() {
            break;
        }
        all.push_str(&more);
    }
    all + end
}

/// What is said about a text by all that reads one; panics if that takes too long.
fn answered(name: &str, text: &str) -> Vec<&'static str> {
    let start = Instant::now();
    let source = Source::new("hostile.exp", text);
    let checked = check(&Nothing, source.clone());
    let drawn = checked.problems.render(&checked.sources, false);
    checked.problems.to_json(&checked.sources);
    let laid_out = print(&source, &begins_statement).unwrap_or_else(|problems: Problems| problems.sorted()[0].message.clone());
    let took = start.elapsed();
    if std::env::var_os("XRUN_HOSTILE_BYTES").is_some() {
        println!("{name:24} {:6} ms, drawn in {:7} bytes, laid out in {:8}", took.as_millis(), drawn.len(), laid_out.len());
    }
    assert!(took < LONGEST, "{name}: {took:?}");
    assert!(drawn.len() < 4 << 20, "{name}: drawn in {} bytes", drawn.len());
    assert!(laid_out.len() < 100 * text.len() + 1_000, "{name}: laid out in {} bytes", laid_out.len());
    let mut codes: Vec<_> = checked.problems.iter().map(|said| said.code).collect();
    codes.sort_unstable();
    codes.dedup();
    codes
}

#[test]
fn repeated_texts() {
    for (name, start, text, end) in [
        ("nothing", "", "\n", ""),
        ("blanks", "", " ", ""),
        ("line ends", "", "\r\n", ""),
        ("returns", "", "\r", ""),
        ("zeros", "", "\0", ""),
        ("strange letters", "", "é", ""),
        ("strange lines", "", "é\n", ""),
        ("byte order marks", "", "\u{feff}", ""),
        ("a word", "let a = ", "a", ""),
        ("a number", "let a = ", "1", ""),
        ("no number", "", "1e", ""),
        ("no number after many digits", "", "1", "e+1e+1e+1e+1e+1"),
        ("dots", "", ".", ""),
        ("a dotted name", "let a = ", "a.", "b"),
        ("a text", "let a = \"", "a", "\""),
        ("quotation marks", "", "\"", ""),
        ("open texts", "", "\"\n", ""),
        ("texts and slashes", "let a = ", "\"//a\" ", ""),
        ("unknown escapes", "let a = \"", "\\q", "\""),
        ("slashes", "", "/ ", ""),
        ("equals signs", "", "=", ""),
        ("minus signs", "let a = ", "-", "1"),
        ("a sum", "let a = ", "1 + ", "1"),
        ("words", "let a = ", "b ", ""),
        ("descriptions", "", "/// a\n", ""),
        ("comments", "", "// a\n", ""),
        ("comments in brackets", "let a = (", "// a\n", "1)"),
        ("comments in a body", "model m {\n", "// a\n", "}"),
        ("comments behind items", "model m {\n", "clip 1 // a\n", "}"),
    ] {
        answered(name, &filled(start, text, end));
    }
}

#[test]
fn repeated_items() {
    for (name, start, text, end) in [
        ("items on a line", "model m {", "a, ", "}"),
        ("items on lines", "model m {\n", "layers 2\n", "}"),
        ("items of a field", "training t {\n", "clip 2, a\n", "}"),
        ("labelled items", "model m {", "a: b\n", "}"),
        ("commas", "model m {", ",", "}"),
        ("colons", "model m {", "a:", "}"),
        ("described items", "model m {", "\n/// a\nb", "}"),
        ("unknown fields", "model m {\n", "foo 2\n", "}"),
        ("operators at line ends", "model m {\n", "foo 2 +\n", "}"),
        ("operators at line starts", "model m {\na\n", "+ b\n", "}"),
        ("words that go on", "model m {\na\n", "then b\n", "}"),
        ("bodies side by side", "model m {a ", "{} ", "}"),
        ("bodies with", "model a = b ", "with { c 1 } ", ""),
        ("lists", "let a = [", "b,\n", "]"),
        ("entries that are none", "", "x\n", ""),
        ("let", "", "let a = 1\n", ""),
        ("described let", "", "/// a\nlet a = 1\n", ""),
        ("models", "", "model m { layers 2, width 8, heads 2, ffn swiglu(8) }\n", ""),
        ("wrong models", "", "model m { layers 2 + }\n", ""),
        ("uses", "", "use std.placements (pre)\n", ""),
        ("axes", "study s {\n", "vary placement over pre, post\n", "}"),
        ("values of an axis", "study s {\nvary placement over ", "pre, ", "post\n}"),
        ("equation", "placement p { sublayer ", "x + ", "f(x) }"),
    ] {
        answered(name, &filled(start, text, end));
    }
}

#[test]
fn repeated_brackets() {
    for (name, start, text, end) in [
        ("braces", "", "{", ""),
        ("open bodies", "", "model m {\n", ""),
        ("closing braces", "", "}", ""),
        ("closing parentheses", "", ")", ""),
        ("parentheses", "let a = ", "(", ""),
        ("brackets", "let a = ", "[", ""),
        ("open brackets in bodies", "", "model m { a (\n", ""),
        ("closed by braces", "model m {", " ( }", ""),
        ("lines that may begin an entry", "{", "\na a(\"(\")", ""),
        ("deep and wrong", "", &format!("let a = {}! !{}\n", "f(".repeat(60), ")".repeat(60)), ""),
        ("deep bodies", "", &format!("let a = {}{}\n", "{ a ".repeat(60), "}".repeat(60)), ""),
        ("deep bodies and wrong", "", &format!("let a = {}! !{}\n", "{ a ".repeat(60), "}".repeat(60)), ""),
        ("deep and open", "", &format!("let a = {}f(1{}\n", "{ ".repeat(60), "}".repeat(60)), ""),
    ] {
        answered(name, &filled(start, text, end));
    }
}

#[test]
fn numbered_texts() {
    let parts = "data d { generate tales(documents: 100), context 32 tokens }\n";
    for (name, start, text, end) in [
        ("names", "", &(|at| format!("let a{at} = {at}\n")) as &dyn Fn(usize) -> String, ""),
        ("a chain of names", "let a0 = 1\n", &|at| format!("let a{} = a{at}\n", at + 1), ""),
        ("unknown names", "let x = 1\n", &|at| format!("let a{at} = x{at}\n"), ""),
        ("models of models", "", &|at| format!("model m{} = m{at}\n", at + 1), ""),
        ("models of unknown models", "", &|at| format!("model n{at} = m{at}\n"), ""),
        ("files", "", &|at| format!("use \"a{at}.exp\" (x)\n"), ""),
        ("seeds", "study s { seeds [0", &|at| format!(", {at}"), "] }"),
        ("events", "schedule s {\nstart with 1 block\n", &|at| format!("at step {}: grow block\n", at + 1), "end at step 9M\n}"),
        (
            "events behind the end",
            "schedule s {\nstart with 1 block\n",
            &|at| format!("at step {at}: thaw all\n"),
            "end at step 9\n}",
        ),
        ("claims", "study s {\n", &|at| format!("claim c{at}: validation_ce[a] < validation_ce[b]\n"), "}"),
        ("controls", "study s {\n", &|at| format!("control c{at}: [a] with {{ width 3 }}\n"), "}"),
        ("named parts", "placement p { layer { ", &|at| format!("let y{at} = x, "), "x + attention(x) + ffn(x) } }"),
        ("cases", "placement p { sublayer ", &|at| format!("x + f(x) when l == {at}, "), "otherwise x + f(x) }"),
    ] {
        answered(name, &(parts.to_owned() + &numbered(start, text, end)));
    }
}

#[test]
fn names_that_double_fill_no_memory() {
    let doubling: String = (1..60).map(|at| format!("let a{at} = a{0} + a{0}, ", at - 1)).collect();
    let text = format!("placement p {{ layer {{ let a0 = l, {doubling}x + a59 * attention(x) + ffn(x) }} }}");
    assert_eq!(answered("doubling", &text), ["too-deep"]);
    let long = |name: &str| vec![name; 500].join(" + ");
    let text = format!("placement p(a: {}, b: {}, c: {}) {{ sublayer x + c * f(x) }}", long("l"), long("a"), long("b"));
    assert_eq!(answered("parameters of parameters", &text), ["too-deep"]);
}

#[test]
fn layouts_stay_short() {
    let label = "x".repeat(bytes() / 3);
    let claims = " claim y: a < b\n".repeat(bytes() / 32);
    answered("a long label", &format!("study s {{\n claim {label}: a < b\n{claims}}}"));
    answered("lines behind a long label", &format!("study s {{\n claim {label}: {}}}", "a,\n".repeat(bytes() / 6)));
    answered("lines behind a long bracket", &format!("model m {{ {label} f({}) }}", "a,\n".repeat(bytes() / 6)));
}

#[test]
fn texts_that_are_too_long_and_too_many_faults_are_said() {
    assert_eq!(answered("too long", &" ".repeat(600 << 10)), ["text-too-long"]);
    let text = "}\n".repeat(40_000);
    let checked = check(&Nothing, Source::new("hostile.exp", text.as_str()));
    let said = checked.problems.sorted();
    assert_eq!((said.len(), said[1_000].code), (1_001, "too-many-faults"));
    assert!(checked.problems.render(&checked.sources, false).ends_with("… and more than 901 more\n"));
}
