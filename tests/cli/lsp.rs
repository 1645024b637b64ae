//! An editor's session: a text is opened, broken, mended, asked about and changed, over the program's standard input and output.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::bench::{Bench, TINY};

/// A client that writes by hand what an editor would.
struct Editor {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    last: u64,
    slowest: Duration,
    uri: String,
}

impl Editor {
    fn open(bench: &Bench, text: &str) -> Self {
        let mut child = bench.command(&["lsp"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("starts");
        let (input, output) = (child.stdin.take().expect("input"), BufReader::new(child.stdout.take().expect("output")));
        let uri = format!("file://{}/study.exp", bench.path().display());
        let mut editor = Self { child, input, output, last: 0, slowest: Duration::ZERO, uri };
        let told = editor.ask("initialize", json!({ "capabilities": {} }));
        assert_eq!(told["capabilities"]["hoverProvider"], true);
        editor.tell("initialized", json!({}));
        let item = json!({ "uri": editor.uri, "languageId": "exp", "version": 1, "text": text });
        editor.tell("textDocument/didOpen", json!({ "textDocument": item }));
        editor
    }
    fn send(&mut self, message: &Value) {
        let text = message.to_string();
        write!(self.input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("writes");
        self.input.flush().expect("writes");
    }
    fn receive(&mut self) -> Value {
        let mut length = 0;
        loop {
            let mut line = String::new();
            self.output.read_line(&mut line).expect("reads");
            if let Some(count) = line.strip_prefix("Content-Length: ") {
                length = count.trim().parse().expect("a number");
            } else if line == "\r\n" {
                break;
            }
        }
        let mut text = vec![0; length];
        self.output.read_exact(&mut text).expect("reads");
        serde_json::from_slice(&text).expect("JSON")
    }
    fn tell(&mut self, method: &str, params: Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }
    fn answer(&mut self, method: &str, params: Value) -> Value {
        self.last += 1;
        self.send(&json!({ "jsonrpc": "2.0", "id": self.last, "method": method, "params": params }));
        let began = Instant::now();
        let answer = self.receive();
        self.slowest = self.slowest.max(began.elapsed());
        assert_eq!(answer["id"], self.last, "{answer}");
        answer
    }
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.answer(method, params)["result"].clone()
    }
    fn diagnostics(&mut self) -> Vec<Value> {
        let began = Instant::now();
        let said = self.receive();
        self.slowest = self.slowest.max(began.elapsed());
        assert_eq!(said["method"], "textDocument/publishDiagnostics");
        said["params"]["diagnostics"].as_array().expect("a list").clone()
    }
    fn change(&mut self, text: &str) -> Vec<Value> {
        let document = json!({ "uri": self.uri, "version": 2 });
        self.tell("textDocument/didChange", json!({ "textDocument": document, "contentChanges": [{ "text": text }] }));
        self.diagnostics()
    }
    /// A position by the words that it stands in, and so many letters into them.
    fn at(&self, text: &str, words: &str, inside: usize) -> Value {
        let offset = text.find(words).unwrap_or_else(|| panic!("no `{words}`")) + inside;
        let line = text[..offset].matches('\n').count();
        let start = text[..offset].rfind('\n').map_or(0, |at| at + 1);
        let position = json!({ "line": line, "character": offset - start });
        json!({ "textDocument": { "uri": self.uri }, "position": position })
    }
    fn labels(&mut self, place: Value) -> Vec<String> {
        let items = self.ask("textDocument/completion", place);
        let items = items.as_array().expect("a list").iter();
        items.map(|item| item["label"].as_str().expect("a label").to_owned()).collect()
    }
    fn close(mut self) {
        assert!(self.answer("shutdown", Value::Null)["result"].is_null());
        self.tell("exit", Value::Null);
        assert!(self.child.wait().expect("ends").success());
    }
}

/// What is asked about a place, and one thing more.
fn with(place: &Value, key: &str, value: Value) -> Value {
    let mut asked = place.clone();
    asked[key] = value;
    asked
}

#[test]
fn a_session() {
    let bench = Bench::new(TINY);
    // As long as a long study: three hundred lines.
    let more = |number: usize| {
        format!(
            "/// Wiring {number}.\nplacement wired_{number}(share: 0.{number:02}) {{\n  sublayer x + share * f(norm(x))\n  exit norm(x)\n}}\n"
        )
    };
    let text = format!("{TINY}{}", (1..=60).map(more).collect::<String>());
    assert!(text.lines().count() >= 300);
    let mut editor = Editor::open(&bench, &text);
    assert!(editor.diagnostics().is_empty());

    let broken = text.replace("width  8", "widht  8");
    let said = editor.change(&broken);
    assert_eq!(said.len(), 1, "{said:?}");
    assert_eq!(said[0]["code"], "unknown-field");
    assert_eq!(said[0]["range"], json!({ "start": { "line": 14, "character": 2 }, "end": { "line": 14, "character": 7 } }));
    assert!(said[0]["message"].as_str().expect("text").contains("did you mean `width`?"));
    assert!(editor.change(&text).is_empty());

    let place = editor.at(&text, "warmup 2 steps", 1);
    let nothing = editor.ask("textDocument/hover", place);
    assert!(nothing.is_null(), "{nothing}");
    let place = editor.at(&text, "clip      0.5", 2);
    let field = editor.ask("textDocument/hover", place);
    let told = field["contents"]["value"].as_str().expect("text");
    let parts = ["`clip X`", "global norm", "default: none", "takes: a number or `none`"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    for (words, inside, told) in [
        ("context   16", 2, "takes: a number of tokens"),
        ("block  1", 2, "default: 1 layer"),
        ("boundary_rms", 3, "the size of the residual stream"),
        ("active_layer_tokens", 3, "tokens × layers that run"),
        ("exit norm", 6, "with weights of its own"),
        ("validation_ce every", 3, "nats/token"),
    ] {
        let place = editor.at(&text, words, inside);
        let said = editor.ask("textDocument/hover", place);
        assert!(said["contents"]["value"].as_str().is_some_and(|said| said.contains(told)), "{words}: {said}");
    }
    let place = editor.at(&text, "training distilled\n", 12);
    let name = editor.ask("textDocument/hover", place);
    assert!(name["contents"]["value"].as_str().expect("text").contains("training distilled = base with"), "{name}");
    let place = editor.at(&text, "(pre, post)", 2);
    let placement = editor.ask("textDocument/hover", place);
    let shown = placement["contents"]["value"].as_str().expect("text");
    assert!(shown.contains("x + f(norm(x))") && shown.contains("std.placements"), "{shown}");

    let place = editor.at(&text, "kl(big", 1);
    let loss = editor.ask("textDocument/hover", place);
    assert!(loss["contents"]["value"].as_str().expect("text").contains("KL(p ‖ q)"), "{loss}");
    let place = editor.at(&text, "kl(big", 4);
    let declared = editor.ask("textDocument/definition", place.clone());
    let line = text[..text.find("teacher big").expect("declared")].matches('\n').count();
    assert_eq!(declared["range"]["start"], json!({ "line": line, "character": 8 }));
    let uses = editor.ask("textDocument/references", with(&place, "context", json!({ "includeDeclaration": true })));
    assert_eq!(uses.as_array().map(Vec::len), Some(2), "{uses}");
    let renamed = editor.ask("textDocument/prepareRename", place.clone());
    assert_eq!(renamed["start"]["line"], place["position"]["line"]);
    let mut renaming = place.clone();
    renaming["newName"] = json!("wise");
    let edit = editor.ask("textDocument/rename", renaming.clone());
    let edits = edit["changes"][&editor.uri].as_array().expect("edits");
    assert_eq!(edits.len(), 2, "{edits:?}");
    renaming["newName"] = json!("not a name");
    assert!(editor.answer("textDocument/rename", renaming)["error"]["message"].as_str().expect("text").contains("is no name"));
    let mut library = editor.at(&text, "(pre, post)", 2);
    library["newName"] = json!("other");
    assert!(
        editor.answer("textDocument/rename", library)["error"]["message"].as_str().expect("text").contains("this file declares")
    );

    // In the middle of typing.
    let typing = text.replace("  clip      0.5\n", "  clip      0.5\n  pre\n");
    editor.change(&typing);
    let place = editor.at(&typing, "  pre\n", 5);
    assert!(editor.labels(place).contains(&"precision".to_owned()));
    let typing = text.replace("model    student\n", "model    \n");
    editor.change(&typing);
    let place = editor.at(&typing, "model    \n", 9);
    assert_eq!(editor.labels(place), ["student"]);
    for (written, typed, inside, offered) in [
        ("  tokenizer bytes", "  tokenizer ", 12, "teacher"),
        ("  cache top 4", "  cache ", 8, "all"),
        ("then cosine to 10%", "then ", 5, "wsd"),
        ("  measure  validation_ce", "  measure  ", 11, "perplexity"),
        ("  vary placement over pre, post", "  vary placement over ", 22, "post"),
        ("  vary placement over", "  vary wi over", 9, "width"),
        ("grow] on active_layer_tokens", "grow] on ", 9, "flops"),
        ("  train 12 steps with base", "  train 12 steps with ", 22, "distilled"),
    ] {
        let typing = text.replacen(written, typed, 1);
        editor.change(&typing);
        let place = editor.at(&typing, typed, inside);
        let labels = editor.labels(place);
        assert!(labels.contains(&offered.to_owned()), "{typed}: {labels:?}");
    }
    let typing = format!("use std.schedules ()\n{TINY}");
    editor.change(&typing);
    let place = editor.at(&typing, "()", 1);
    assert!(editor.labels(place).contains(&"grow_frozen".to_owned()));

    editor.change(&text);
    let document = json!({ "textDocument": { "uri": editor.uri } });
    let symbols = editor.ask("textDocument/documentSymbol", document.clone());
    let names: Vec<&str> = symbols.as_array().expect("a list").iter().filter_map(|symbol| symbol["name"].as_str()).collect();
    assert_eq!(names[..7], ["tales", "student", "big", "base", "distilled", "tiny", "wired_1"]);
    assert_eq!(names.len(), 66);
    let lenses = editor.ask("textDocument/codeLens", document.clone());
    assert!(lenses[0]["command"]["title"].as_str().expect("text").starts_with("14 runs, "), "{lenses}");
    let mut formatting = document.clone();
    formatting["options"] = json!({ "tabSize": 2, "insertSpaces": true });
    let edits = editor.ask("textDocument/formatting", formatting.clone());
    let formatted = edits[0]["newText"].as_str().expect("a text").to_owned();
    assert!(editor.change(&formatted).is_empty());
    assert_eq!(editor.ask("textDocument/formatting", formatting), json!([]));
    editor.tell("textDocument/didClose", document.clone());
    assert!(editor.diagnostics().is_empty());
    // Builds that are not optimised are some ten times slower than what a user runs.
    let allowed = Duration::from_millis(if cfg!(debug_assertions) { 500 } else { 50 });
    assert!(editor.slowest < allowed, "an answer took {:?}", editor.slowest);
    editor.close();
}

#[test]
fn positions_count_units_of_utf16() {
    let bench = Bench::new(TINY);
    let text = "data d { files \"𝔼𝔼.txt\", contxt 32 tokens }\n";
    let mut editor = Editor::open(&bench, text);
    let said = editor.diagnostics();
    let misspelt = said.iter().find(|said| said["message"].as_str().expect("text").contains("contxt")).expect("found");
    let before = text[..text.find("contxt").expect("there")].encode_utf16().count();
    assert_eq!(misspelt["range"]["start"], json!({ "line": 0, "character": before }));
    let place = json!({ "textDocument": { "uri": editor.uri }, "position": { "line": 0, "character": before + 3 } });
    assert!(editor.labels(place).contains(&"context".to_owned()));
    editor.close();
}
