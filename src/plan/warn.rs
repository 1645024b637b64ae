//! What a person should know before running a plan.
//!
//! Owns the words. Invariant: a warning forbids nothing; the same thing is said once.

use std::collections::BTreeSet;

use super::graph::Graph;
use super::measure;
use super::node::Work;
use super::run::PlannedRun;
use super::world::World;
use crate::budget::identity;
use crate::data::facts::{Corpus, Facts, Found};
use crate::stats::{Estimate, LEVEL};
use crate::study::{Init, Metric, Recipe, Study, TeacherSource};
use crate::timeline::{FirstValues, Timeline};

/// All of them, in the order of the study.
pub(super) fn warnings(study: &Study, facts: &Facts, worlds: &[World], runs: &[PlannedRun], graph: &Graph) -> Vec<String> {
    let mut warnings = Vec::new();
    for world in worlds {
        let name = &world.data.name;
        if let Corpus::Absent(why) = &world.corpus {
            warnings.push(format!("`{name}` is not at hand, its tokens are as declared: {why}"));
        }
        let held = |metric: Metric| matches!(metric, Metric::ValidationCe | Metric::Perplexity | Metric::Kl);
        let looks = study.measures.iter().any(|measure| held(measure.metric)) || !study.probes.is_empty();
        if world.holdout() == Some(0) && looks {
            warnings.push(format!("`{name}` holds nothing out, and metrics are taken on the holdout"));
        }
    }
    for run in runs {
        for (kind, step) in measure::unseen(study, &run.timeline) {
            warnings.push(format!("{} has no checkpoint at step {step} for {}", run.name, kind.name()));
        }
        let relative = run.mismatch.as_ref().map_or(0.0, |mismatch| mismatch.relative);
        if relative.abs() > 0.01 {
            warnings.push(format!("{} misses the quantity that it is matched on by {:.1} %", run.name, 100.0 * relative));
        }
        let recipe = &study.arms[run.arm].recipe;
        for both in run.timeline.segments.windows(2) {
            let [before, after] = both else { continue };
            let as_identity = after.new_layers.iter().any(|new| new.first == FirstValues::Identity);
            if as_identity && !identity::keeps(&recipe.model, before, after) {
                let step = after.steps.start;
                warnings.push(format!(
                    "{}: layers arrive as identity at step {step}, and the model's function changes all the same: its placement does not leave the stream as it is",
                    run.name
                ));
            }
        }
        warnings.extend(stretched(recipe, facts, &run.timeline));
        let taught = !recipe.teachers.is_empty();
        if !taught && study.measures.iter().any(|measure| measure.metric == Metric::Kl) {
            warnings.push(format!("{} has no teacher: kl is not measured", run.name));
        }
    }
    warnings.extend(seeds(study));
    warnings.extend(obstacles(study, graph).into_iter().map(|reason| format!("cannot run: {reason}")));
    let mut said = BTreeSet::new();
    warnings.retain(|warning| said.insert(warning.clone()));
    warnings
}

/// A teacher that others have made for shorter texts than it will read. It looks at the holdout, whatever else it is used for.
fn stretched<'a>(recipe: &'a Recipe, facts: &'a Facts, timeline: &Timeline) -> impl Iterator<Item = String> + 'a {
    let longest = timeline.segments.iter().map(|segment| segment.context(&recipe.data)).fold(recipe.data.context, usize::max);
    recipe.teachers.iter().filter_map(move |teacher| {
        let TeacherSource::Checkpoint { folder, .. } = &teacher.source else { return None };
        let (_, Found::Known(found)) = facts.checkpoints.iter().find(|(known, _)| known == folder)? else { return None };
        let made_for = found.context.filter(|made_for| longest > *made_for)?;
        Some(format!(
            "the teacher `{}` was made for texts of {made_for} tokens (`max_position_embeddings`) and reads sequences of {longest}: what it says of later positions is a guess",
            teacher.name
        ))
    })
}

/// A study of so few seeds that no claim of it can be decided, or hardly any, and how many would do.
fn seeds(study: &Study) -> Option<String> {
    let half = |n: usize| Estimate { n, mean: 0.0, sd: Some(1.0) }.half_width(LEVEL);
    let enough = half(ENOUGH)?;
    match study.seeds.len() {
        _ if study.claims.is_empty() => None,
        1 => Some(format!(
            "one seed decides no claim, whatever comes out: 2 seeds give an interval, {ENOUGH} decide a difference of {enough:.1} of its standard deviations"
        )),
        2 => Some(format!(
            "2 seeds decide a claim only where the difference is {:.1} of its standard deviations or more; {ENOUGH} do at {enough:.1}",
            half(2)?
        )),
        _ => None,
    }
}

/// Seeds of a study that can see a difference of about its own spread.
const ENOUGH: usize = 5;

/// What forbids running, each once.
pub(super) fn obstacles(study: &Study, graph: &Graph) -> Vec<String> {
    let mut reasons = Vec::new();
    for (node, _) in graph.all() {
        let Work::Corpus { data, content } = &node.work else { continue };
        if content.is_none() {
            reasons.push(format!("the text of `{}` is not at hand, or not its tokenizer", data.name));
        }
    }
    let found = |path: &str| {
        graph
            .all()
            .any(|(node, _)| matches!(&node.work, Work::Checkpoint(found) if found.folder == path && found.content.is_some()))
    };
    for teacher in study.arms.iter().flat_map(|arm| arm.recipe.all_teachers()) {
        if let TeacherSource::Checkpoint { folder: path, .. } = &teacher.source
            && !found(path)
        {
            reasons.push(format!("the teacher `{}`, the checkpoint \"{path}\", is not at hand", teacher.name));
        }
    }
    for (node, _) in graph.all() {
        if let Work::Phase(phase) | Work::Teacher(phase) = &node.work
            && let Init::From { file, content: None } = &phase.model.init
        {
            reasons.push(format!("\"{file}\", which the model `{}` starts from, is not at hand", phase.model.name));
        }
    }
    let mut said = BTreeSet::new();
    reasons.retain(|reason| said.insert(reason.clone()));
    reasons
}
