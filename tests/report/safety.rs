//! Names are only characters: whatever a study calls its parts, each format keeps its shape, and gives the name back.

use proptest::prelude::*;

use super::fixture::{claim, rich, run, study};
use xrun::report::latex::latex;
use xrun::report::{Findings, Form, Story, findings, render, render_with};
use xrun::study::Relation;

/// Two arms and a claim, every name of which is `name`.
fn named(name: &str) -> Story {
    let mut study = study(&[name, "post"], &["joint"], &[0, 1, 2]);
    study.name = name.to_owned();
    study.doc = Some(name.to_owned());
    study.claims = vec![claim(name, Relation::Less, &[(1.0, 1)], &[(1.0, 0)])];
    study.claims[0].text = name.to_owned();
    study.claims[0].doc = Some(name.to_owned());
    let runs = (0..6).map(|at| run(at % 2, at as u64 / 2, "joint", 1_000, 2.0 + 0.01 * at as f64)).collect();
    Story { study, runs, teachers: Vec::new() }
}

/// What TeX prints of what [`latex`] writes, read by rules of its own; panics where TeX would see anything but text.
fn printed(source: &str) -> String {
    const WORDS: [(&str, &str); 15] = [
        (r"\textbackslash{}", "\\"),
        (r"\textasciitilde{}", "~"),
        (r"\textasciicircum{}", "^"),
        (r"\textless{}", "<"),
        (r"\textgreater{}", ">"),
        (r"\textbar{}", "|"),
        (r"\char34{}", "\""),
        (r"\textquotesingle{}", "'"),
        (r"\textasciigrave{}", "`"),
        (r"\ensuremath{-}", "-"),
        (r"\ensuremath{\Delta}", "Δ"),
        (r"\ensuremath{\pm}", "±"),
        (r"\ensuremath{_0}", "₀"),
        ("\\\"{u}", "ü"),
        (r"\ss{}", "ß"),
    ];
    let mut text = String::new();
    let mut rest = source;
    while let Some(first) = rest.chars().next() {
        assert!(first.is_ascii() && first != '\n', "{first:?} in {source}");
        if let Some((word, means)) = WORDS.iter().find(|(word, _)| rest.starts_with(word)) {
            text.push_str(means);
            rest = &rest[word.len()..];
        } else if let Some(code) = rest.strip_prefix(r"\xrunchar{") {
            let (digits, after) = code.split_once('}').expect("an end");
            text.push(char::from_u32(u32::from_str_radix(digits, 16).expect("digits")).expect("a character"));
            rest = after;
        } else if let Some(escaped) = rest.strip_prefix('\\') {
            let c = escaped.chars().next().expect("a character after a backslash");
            assert!("{}$&#%_".contains(c), "\\{c} in {source}");
            text.push(c);
            rest = &escaped[1..];
        } else if rest.starts_with('{') {
            // `{}` ends what stands before it, `{[}` holds what TeX might take for an argument.
            let (inside, after) = rest[1..].split_once('}').expect("an end");
            assert!(["", "[", "]", "*"].contains(&inside), "{{{inside}}} in {source}");
            text.push_str(inside);
            rest = after;
        } else {
            assert!(!"}$&#%_~^[]*<>|\"'`".contains(first), "a bare {first} in {source}");
            // What would run together is kept apart.
            assert!(!"-,!?".contains(first) || rest[1..].starts_with("{}"), "{first} may run together in {source}");
            text.push(first);
            rest = &rest[1..];
        }
    }
    text
}

/// Records of RFC 4180.
fn records(text: &str) -> Vec<Vec<String>> {
    let (mut records, mut record, mut field, mut quoted) = (Vec::new(), Vec::new(), String::new(), false);
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                records.push(std::mem::take(&mut record));
            }
            c => field.push(c),
        }
    }
    assert!(!quoted && record.is_empty() && field.is_empty(), "cut off");
    records
}

/// The tags of a page in order, without their attributes' values.
fn tags(page: &str) -> Vec<String> {
    let body = page.split("<script>").next().expect("a page");
    body.split('<').skip(1).map(|tag| tag.split([' ', '>', '\n']).next().unwrap_or_default().to_owned()).collect()
}

/// Bars of a line of Markdown that are not escaped.
fn bars(line: &str) -> usize {
    let (mut escaped, mut count) = (false, 0);
    for c in line.chars() {
        count += usize::from(c == '|' && !escaped);
        escaped = c == '\\' && !escaped;
    }
    count
}

fn rendered(found: &Findings, form: Form) -> String {
    render(found, form).expect("renders")
}

fn holds(name: &str) {
    let (plain, found) = (findings(&named("plain")), findings(&named(name)));
    let folded: String = name.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // LaTeX: what begins ends; the name comes out as it is.
    let spaced: String =
        name.chars().map(|c| if c.is_control() || c.is_whitespace() && c != '\u{a0}' { ' ' } else { c }).collect();
    if !spaced.contains(['\u{a0}', '\u{2009}', '\u{202f}']) {
        let known = |c: char| c.is_ascii() || "Δ±₀üß".contains(c) || latex(&c.to_string()).starts_with(r"\xrunchar");
        if spaced.chars().all(known) {
            assert_eq!(printed(&latex(name)), spaced);
        }
    }
    let tex = rendered(&found, Form::Latex);
    assert!(tex.is_ascii());
    assert_eq!(tex.matches(r"\begin{").count(), tex.matches(r"\end{").count(), "{name:?}");
    let bare = tex.replace(r"\\", "").replace(r"\{", "").replace(r"\}", "");
    assert_eq!(bare.matches('{').count(), bare.matches('}').count(), "{name:?}");
    // CSV: the same table, the name in its place.
    let (csv, like) = (records(&rendered(&found, Form::Csv)), records(&rendered(&plain, Form::Csv)));
    assert_eq!(csv.iter().map(Vec::len).collect::<Vec<_>>(), like.iter().map(Vec::len).collect::<Vec<_>>(), "{name:?}");
    assert!(csv.iter().flatten().any(|field| field == name || field.strip_prefix('\'') == Some(name)), "{name:?}");
    // HTML: the same tags.
    let page = rendered(&found, Form::Html);
    assert_eq!(tags(&page), tags(&rendered(&plain, Form::Html)), "{name:?}");
    // Markdown: the same rows of the same cells.
    let shape = |text: &str| text.lines().filter(|line| line.starts_with('|')).map(bars).collect::<Vec<_>>();
    assert_eq!(shape(&rendered(&found, Form::Markdown)), shape(&rendered(&plain, Form::Markdown)), "{name:?}");
    // A template of one's own escapes by its ending.
    let own = |ending: &str| render_with(&found, &format!("mine.{ending}"), "<{{ report.study }}>").expect("renders");
    assert_eq!(own("tex"), format!("<{}>", latex(name)));
    assert_eq!(own("txt"), format!("<{name}>"));
    assert_eq!(tags(&own("html")).len(), 1, "{name:?}");
    assert_eq!(own("tex.j2"), own("tex"));
    assert!(serde_json::from_str::<serde_json::Value>(&rendered(&found, Form::Json)).expect("JSON")["study"] == name);
    assert!(folded.chars().count() == name.chars().count());
}

const NASTY: [&str; 8] = [
    r#"a|b_% & # $ {{ 7 * 7 }} ~ ^ \ <script>alert("x")</script> > ü Δ 中"#,
    r"\input{/etc/passwd}\end{document}%",
    "]]></svg><img src=x onerror=alert(1)>",
    "*[x](javascript:alert(1))* `| --- |` ![y](http://z)",
    "=HYPERLINK(\"http://x\",\"y\"),@SUM(1)",
    "--,,!`?`<<>>''\"`[a]*-3 - -4",
    "{% raw %}{# x #}{{ report.study }}",
    "'; DROP $(rm -rf) \u{202e}abc\u{200b} 👩‍👩‍👧",
];

#[test]
fn nasty_names() {
    NASTY.into_iter().for_each(holds);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn any_name(name in r#"[-_%&#$\{\}~^\\<>|\[\]*'"`,;:!?=@+/()a-c0-2 üßΔ±₀中👾]{1,24}"#) {
        holds(&name);
    }

    #[test]
    fn any_text_is_text_in_latex(text in r#"[ -~üßΔ±₀中\u{0}\u{7f}]{0,40}"#) {
        let kept: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        prop_assert_eq!(printed(&latex(&text)), kept);
    }
}

/// Runs LaTeX where there is one: on its own, within a document that has the packages, and within one that has none.
#[test]
fn the_latex_compiles() {
    let mut story = rich();
    story.study.name = NASTY[0].to_owned();
    story.study.doc = Some(NASTY.join(" "));
    story.study.axes[0].values[1].label = NASTY[0].to_owned();
    for (place, arm) in story.study.arms.iter_mut().enumerate() {
        if let Some(value) = arm.values.get_mut("placement").filter(|value| *value == "post") {
            *value = NASTY[0].to_owned();
            arm.name = NASTY[place % NASTY.len()].to_owned();
        }
    }
    for (claim, name) in story.study.claims.iter_mut().zip(NASTY) {
        claim.name = name.to_owned();
        claim.text = name.to_owned();
    }
    let text = rendered(&findings(&story), Form::Latex);
    let folder = std::path::Path::new(env!("CARGO_TARGET_TMPDIR")).join("latex");
    std::fs::create_dir_all(&folder).expect("a folder");
    std::fs::write(folder.join("report.tex"), text).expect("writes");
    let host = |packages: &str| {
        format!(
            "\\documentclass{{article}}\n{packages}\\begin{{document}}\nBefore.\n\\input{{report.tex}}\nBetween.\n\\input{{report.tex}}\nAfter.\n\\end{{document}}\n"
        )
    };
    std::fs::write(folder.join("host.tex"), host("\\usepackage{booktabs,tikz}\n")).expect("writes");
    std::fs::write(folder.join("bare.tex"), host("")).expect("writes");
    for name in ["report.tex", "host.tex", "bare.tex"] {
        let mut latex = std::process::Command::new("pdflatex");
        latex.args(["-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", name]).current_dir(&folder);
        let Ok(output) = latex.output() else {
            eprintln!("skipped: there is no pdflatex here to compile a report with");
            return;
        };
        let log = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{name}:\n{}", &log[log.len().saturating_sub(3_000)..]);
    }
}
