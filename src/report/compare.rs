//! What is different between two reports: verdicts, numbers of tables, runs.
//!
//! Works on the documented JSON (`xrun.report/1`), so that a report that was kept can be compared with one of today. Deliberately judges nothing.
//! Invariant: two equal reports have no difference, and every difference names where it is.

use std::collections::BTreeMap;

use serde_json::Value;

use super::model::SCHEMA;

/// Differences in the order of claims, tables, runs. An error where one of the texts is not a report of this version.
pub fn differences(old: &str, new: &str) -> Result<Vec<String>, String> {
    let (old, new) =
        (read(old).map_err(|why| format!("the first: {why}"))?, read(new).map_err(|why| format!("the second: {why}"))?);
    let mut found = Vec::new();
    if old["study"] != new["study"] {
        found.push(format!("study: {} -> {}", word(&old["study"]), word(&new["study"])));
    }
    for facts in [claims, tables, runs] {
        compare(&facts(&old), &facts(&new), &mut found);
    }
    Ok(found)
}

fn read(text: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text).map_err(|error| format!("no JSON: {error}"))?;
    match value["schema"].as_str() {
        Some(SCHEMA) => Ok(value),
        Some(other) => Err(format!("a `{other}`, and not a `{SCHEMA}`")),
        None => Err(format!("no `{SCHEMA}`")),
    }
}

/// What is told by name, in order.
type Facts = Vec<(String, String)>;

fn compare(old: &Facts, new: &Facts, found: &mut Vec<String>) {
    let known: BTreeMap<&str, &str> = old.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    let still: BTreeMap<&str, &str> = new.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    for (name, text) in new {
        match known.get(name.as_str()) {
            Some(before) if *before == text => {}
            Some(before) => found.push(format!("{name}: {before} -> {text}")),
            None => found.push(format!("{name}: new, {text}")),
        }
    }
    let gone = old.iter().filter(|(name, _)| !still.contains_key(name.as_str()));
    found.extend(gone.map(|(name, text)| format!("{name}: gone, was {text}")));
    // A name is one line, whatever it holds.
    for line in found {
        *line = line.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn word(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn claims(report: &Value) -> Facts {
    let fact = |claim: &Value| {
        let told = ["verdict", "estimate_text", "n_text"].map(|field| word(&claim[field])).join(", ");
        (format!("claim {}", word(&claim["name"])), told)
    };
    items(&report["claims"]).map(fact).collect()
}

fn tables(report: &Value) -> Facts {
    let mut facts = Facts::new();
    for (name, table) in report["tables"].as_object().into_iter().flatten() {
        let labels: Vec<String> = items(&table["columns"]).map(|column| word(&column["label"])).collect();
        for row in items(&table["rows"]) {
            let head = items(&row["head"]).map(word).collect::<Vec<_>>().join(", ");
            for (label, cell) in labels.iter().zip(items(&row["cells"])) {
                let text = format!("{} {}", word(&cell["text"]), word(&cell["n_text"]));
                let text = text.trim();
                if !text.is_empty() {
                    facts.push((format!("{name} / {head} / {label}"), text.to_owned()));
                }
            }
        }
    }
    facts
}

fn runs(report: &Value) -> Facts {
    let name = |run: &Value| format!("run {} seed {}", word(&run["name"]), run["seed"]);
    items(&report["arms"]).map(|run| (name(run), word(&run["state"]))).collect()
}
