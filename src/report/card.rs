//! The card of a model that was trained: what it is, what it reaches beside its siblings, how it came about.
//!
//! Owns words and layout, as Markdown with the head that model hubs read. Deliberately knows no file: whoever exports says how to load it.

use super::escape::markdown;
use super::methods;
use super::number::{exact, fixed, listed};
use super::reading::{Absent, At, Reading};
use super::story::Story;
use super::tables::{digits, with_unit};
use crate::study::{Documents, Layout, Metric, Tokenizer};

/// A model of a study.
#[derive(Debug, Clone, Copy)]
pub struct Exhibit<'a> {
    /// The study and what came out.
    pub story: &'a Story,
    /// Index of the arm.
    pub arm: usize,
    /// The seed.
    pub seed: u64,
    /// Its last phase: an index into the run's segments.
    pub phase: usize,
    /// Real tokens trained on, where they are known.
    pub tokens: Option<u64>,
    /// Elements of all tensors.
    pub parameters: u64,
}

/// The card. `library` is what loads it; `loading` is Markdown, and says how.
///
/// # Panics
/// If the story has no such arm, run or phase.
pub fn card(exhibit: &Exhibit<'_>, library: &str, loading: &str) -> String {
    let reading = Reading::new(exhibit.story);
    let (study, run) = (reading.study(), reading.run(exhibit.arm, exhibit.seed).expect("this is a bug in xrun: no such run"));
    let arm = &study.arms[exhibit.arm];
    let doc = study.doc.as_ref().map_or_else(String::new, |doc| format!("{}\n\n", markdown(doc)));
    let rows: Vec<String> = rows(exhibit, &reading).iter().map(|(what, is)| format!("| {what} | {} |\n", markdown(is))).collect();
    let methods: Vec<String> =
        methods::of_arm(&reading, exhibit.arm).iter().map(|text| format!("{}\n\n", markdown(text))).collect();
    format!(
        "---\nlibrary_name: {library}\npipeline_tag: text-generation\ntags:\n- xrun\n---\n\n\
         # {}\n\n{doc}One model of the study `{}`, trained by xrun {}.\n\n\
         | | |\n| :-- | :-- |\n{}\n\
         ## What it reaches\n\n{}\n\
         ## How it was trained\n\n{}\
         ## How to load it\n\n{}\n",
        markdown(&format!("{}, seed {}, of {}", arm.name, run.seed, study.name)),
        study.name,
        env!("CARGO_PKG_VERSION"),
        rows.concat(),
        results(exhibit, &reading),
        methods.concat(),
        loading.trim_end(),
    )
}

fn rows(exhibit: &Exhibit<'_>, reading: &Reading<'_>) -> Vec<(&'static str, String)> {
    let study = reading.study();
    let (arm, run) = (&study.arms[exhibit.arm], reading.run(exhibit.arm, exhibit.seed));
    let values: Vec<String> = arm.values.iter().map(|(axis, value)| format!("{axis} {value}")).collect();
    let values = if values.is_empty() { String::new() } else { format!(": {}", values.join(", ")) };
    let control = arm.control.as_ref().map_or_else(String::new, |control| format!(", a control ({})", control.text));
    let mut rows = vec![("arm", format!("{}{values}{control}", arm.name))];
    let seeds: Vec<String> = study.seeds.iter().map(u64::to_string).collect();
    rows.push(("seed", format!("{}, of {}", exhibit.seed, listed(&seeds))));
    if let Some(run) = run {
        let segment = &run.segments[exhibit.phase];
        let (step, end) = (segment.steps.end, run.planned.steps);
        let tokens = exhibit.tokens.map_or_else(String::new, |tokens| format!(", {} tokens", exact(tokens)));
        rows.push(("trained for", format!("{} of {} steps{tokens}", exact(step), exact(end))));
        rows.push(("layers", exact(segment.depth() as u64)));
        rows.push(("parameters", exact(exhibit.parameters)));
        rows.push(("node", run.phase_keys[exhibit.phase].clone()));
    }
    let data = &arm.recipe.data;
    let documents = match (&data.documents, data.layout) {
        (Documents::File, _) => "a file is a document".to_owned(),
        (Documents::Line, _) => "a line is a document".to_owned(),
        (Documents::Paragraph, _) => "a paragraph is a document".to_owned(),
        (Documents::Field(field), _) => format!("the field {field} is a document"),
    };
    let layout = if data.layout == Layout::Packed { "documents do not see each other" } else { "one document a sequence" };
    rows.push(("data", format!("{}: {documents}, {layout}", data.name)));
    let tokenizer = match &data.tokenizer {
        Tokenizer::Bytes => format!("bytes: tokens 0 to 255, and {} after each document", Tokenizer::BYTE_BOUNDARY),
        Tokenizer::Bpe(size) => format!("byte-pair encoding of {} tokens, trained on the training part", exact(*size as u64)),
        Tokenizer::File(path) => path.clone(),
        Tokenizer::Teacher => "that of the teacher".to_owned(),
    };
    rows.push(("tokenizer", tokenizer));
    rows
}

/// Every metric of models at that moment, seed by seed, with the teacher.
fn results(exhibit: &Exhibit<'_>, reading: &Reading<'_>) -> String {
    let study = reading.study();
    let of_models = |metric: &Metric| !metric.is_of_a_step() && *metric != Metric::TokensPerSecond;
    let metrics: Vec<Metric> = reading.metrics().into_iter().filter(of_models).collect();
    if metrics.is_empty() {
        return "Nothing was measured.\n".to_owned();
    }
    let last = reading.run(exhibit.arm, exhibit.seed).map(|run| (run.segments[exhibit.phase].steps.end, run.planned.steps));
    let at = match last {
        Some((step, end)) if step < end => At::Step(step),
        _ => At::End,
    };
    let row = |name: String, cells: Vec<String>| format!("| {name} | {} |\n", cells.join(" | "));
    let mut text = row("seed".to_owned(), metrics.iter().map(|metric| with_unit(*metric)).collect());
    text.push_str(&format!("| :-- |{}\n", " --: |".repeat(metrics.len())));
    for seed in &study.seeds {
        let value = |metric: &Metric| match reading.value(exhibit.arm, *seed, *metric, at) {
            Ok(value) => fixed(value, digits(*metric)),
            Err(Absent::Diverged) => "diverged".to_owned(),
            Err(Absent::Partial) => "under way".to_owned(),
            Err(Absent::Missing) => "missing".to_owned(),
        };
        let name = if *seed == exhibit.seed { format!("**{seed}** (this model)") } else { seed.to_string() };
        text.push_str(&row(name, metrics.iter().map(value).collect()));
    }
    let of_arm = &study.arms[exhibit.arm].recipe.teachers;
    for teacher in reading.story.teachers.iter().filter(|told| of_arm.iter().any(|teacher| teacher.name == told.name)) {
        let value = |metric: &Metric| match (metric, teacher.validation_ce) {
            (Metric::ValidationCe, Some(ce)) => fixed(ce.0, digits(*metric)),
            (Metric::Perplexity, Some(ce)) => fixed(ce.0.exp(), digits(*metric)),
            _ => String::new(),
        };
        text.push_str(&row(format!("teacher {}", markdown(&teacher.name)), metrics.iter().map(value).collect()));
    }
    let definitions: Vec<String> = metrics.iter().map(|metric| format!("{}: {}", metric.name(), metric.definition())).collect();
    text.push_str(&format!("\n{}.\n", markdown(&definitions.join("; "))));
    text
}
