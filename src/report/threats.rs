//! What the results do not show, and what else could explain them: the threats section, written from what is missing.
//!
//! Owns which gaps are worth a sentence. Deliberately judges no claim. Invariant: each sentence follows from the study and its runs, and none is
//! there that does not hold for them.

use std::collections::BTreeSet;

use crate::stats::{Estimate, LEVEL};

use super::model::ClaimFinding;
use super::number::{self, listed, plural};
use super::reading::Reading;
use super::story::{Planned, RunState};

/// All of them, the gravest first.
pub fn threats(reading: &Reading<'_>, claims: &[ClaimFinding]) -> Vec<String> {
    let found = [
        seeds(reading),
        diverged(reading),
        unfinished(reading),
        budgets(reading),
        learning_rate(reading),
        repetition(reading),
        teachers(reading),
        holdout(reading, claims),
        documents(claims),
        unplanned(reading),
    ];
    found.into_iter().flatten().collect()
}

fn seeds(reading: &Reading<'_>) -> Option<String> {
    let n = reading.study().seeds.len();
    if n == 1 {
        return Some(
            "There is one seed: nothing here tells a difference from the luck of that seed, and no claim can be decided."
                .to_owned(),
        );
    }
    let half = Estimate { n, mean: 0.0, sd: Some(1.0) }.half_width(LEVEL)?;
    (n < 5).then(|| {
        format!(
            "There are {n} seeds: a difference is decided only where it is more than {} times its standard deviation over seeds, and that \
             deviation itself is poorly known.",
            number::fixed(half, 1)
        )
    })
}

/// Names of the arms of which some run is in a state, without repetition.
fn arms_in(reading: &Reading<'_>, is: fn(RunState) -> bool) -> (usize, Vec<String>) {
    let (mut runs, mut arms) = (0, Vec::new());
    for (index, arm) in reading.study().arms.iter().enumerate() {
        let states =
            reading.study().seeds.iter().map(|seed| reading.run(index, *seed).map_or(RunState::Missing, |run| run.state));
        let count = states.filter(|state| is(*state)).count();
        runs += count;
        if count > 0 {
            arms.push(arm.name.clone());
        }
    }
    (runs, arms)
}

/// The first few, and how many more.
fn some(mut names: Vec<String>) -> String {
    const SHOWN: usize = 6;
    let more = names.len().saturating_sub(SHOWN);
    names.truncate(SHOWN);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    listed(&names)
}

fn diverged(reading: &Reading<'_>) -> Option<String> {
    let (runs, arms) = arms_in(reading, |state| matches!(state, RunState::Diverged { .. }));
    (runs > 0).then(|| {
        format!(
            "{} diverged ({}) and stand in no average: what is averaged there are the seeds that survived, which flatters the arm.",
            plural(runs as u64, "run"),
            some(arms)
        )
    })
}

fn unfinished(reading: &Reading<'_>) -> Option<String> {
    let (runs, arms) = arms_in(reading, |state| matches!(state, RunState::Partial | RunState::Missing));
    (runs > 0).then(|| {
        format!(
            "{} not finished ({}): estimates and verdicts are of what has run so far, and looking at them before the end is itself a choice.",
            if runs == 1 { "1 run is".to_owned() } else { format!("{} runs are", number::exact(runs as u64)) },
            some(arms)
        )
    })
}

/// How many times the smallest the largest is.
fn spread(counts: &[u64]) -> Option<f64> {
    let (least, most) = (counts.iter().min()?, counts.iter().max()?);
    (*least > 0).then(|| *most as f64 / *least as f64)
}

fn budgets(reading: &Reading<'_>) -> Option<String> {
    let study = reading.study();
    let cells = (0..study.arms.len()).filter(|arm| study.arms[*arm].control.is_none());
    let planned: Vec<Planned> = cells.filter_map(|arm| reading.runs_of(arm).next()).map(|run| run.planned).collect();
    let of = |count: fn(&Planned) -> Option<u64>| spread(&planned.iter().filter_map(count).collect::<Vec<_>>());
    let kinds = [("tokens", of(|planned| planned.tokens)), ("active-layer tokens", of(|planned| planned.active_layer_tokens))];
    let unequal: Vec<String> = kinds
        .into_iter()
        .filter_map(|(name, spread)| Some((name, spread.filter(|spread| *spread > 1.01)?)))
        .map(|(name, spread)| format!("{} times in {name}", number::fixed(spread, 2)))
        .collect();
    if unequal.is_empty() {
        return None;
    }
    let matched: Vec<String> = study
        .arms
        .iter()
        .filter_map(|arm| arm.control.as_ref().and_then(|control| control.matched).map(|matched| matched.on.name().to_owned()))
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
    let controlled = if matched.is_empty() {
        "no control is matched to any of them, so that a difference may be one of budget".to_owned()
    } else {
        format!("controls are matched on {} alone", listed(&matched))
    };
    Some(format!("Arms differ by up to {}; {controlled}.", listed(&unequal)))
}

fn learning_rate(reading: &Reading<'_>) -> Option<String> {
    let study = reading.study();
    let fields = || study.axes.iter().flat_map(|axis| &axis.fields);
    let varies = fields().any(|field| field.split('.').any(|word| matches!(word, "lr" | "optimizer" | "training")));
    (!varies && study.arms.len() > 1).then(|| {
        "All arms train under one learning rate, which was not chosen for each of them: a difference may be one of how well it suits an arm."
            .to_owned()
    })
}

fn repetition(reading: &Reading<'_>) -> Option<String> {
    let again = |arm: usize| {
        let planned = reading.runs_of(arm).next()?.planned;
        let (tokens, unique) = (planned.tokens?, planned.unique_tokens?);
        (unique > 0 && tokens as f64 > 1.05 * unique as f64).then(|| tokens as f64 / unique as f64)
    };
    let arms: Vec<(String, f64)> =
        reading.study().arms.iter().enumerate().filter_map(|(index, arm)| Some((arm.name.clone(), again(index)?))).collect();
    let most = arms.iter().map(|(_, times)| *times).reduce(f64::max)?;
    Some(format!(
        "Some arms read the same text again ({}; up to {} times), so that their tokens are not all new.",
        some(arms.into_iter().map(|(name, _)| name).collect()),
        number::fixed(most, 1)
    ))
}

fn teachers(reading: &Reading<'_>) -> Option<String> {
    (!reading.story.teachers.is_empty())
        .then(|| "One teacher serves all seeds: intervals hold the chance of students, not that of teachers.".to_owned())
}

fn holdout(reading: &Reading<'_>, claims: &[ClaimFinding]) -> Option<String> {
    let held_out = reading.metrics().first().is_some_and(|metric| !metric.is_of_a_step());
    let beside = if claims.iter().any(|claim| claim.documents.is_some()) { ", which stands beside them for claims" } else { "" };
    held_out.then(|| {
        format!(
            "All runs are evaluated on one holdout of the same corpus: intervals hold the chance of seeds, not that of which documents were held \
             out{beside}, and say nothing of other text."
        )
    })
}

fn documents(claims: &[ClaimFinding]) -> Option<String> {
    // Decided by seeds, and smaller than what other documents might have made of it.
    let moved = |claim: &&ClaimFinding| {
        let within = claim.estimate.zip(claim.documents).is_some_and(|(estimate, by)| estimate.0.abs() <= by.half_width.0);
        within && claim.equivalence.is_none() && claim.verdict != "undecided"
    };
    let names: Vec<String> = claims.iter().filter(moved).map(|claim| claim.name.clone()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The choice of the documents that are held out moves the estimates of {} by as much as they are: another holdout of this size could \
             turn them.",
            some(names)
        )
    })
}

fn unplanned(reading: &Reading<'_>) -> Option<String> {
    let text = if reading.study().claims.is_empty() {
        "No claim was written down before the runs: every difference below is a finding to be tested by other runs."
    } else {
        "Intervals in the tables are not corrected for their number: only the claims were written down before the runs and share an error rate."
    };
    (reading.study().arms.len() > 1).then(|| text.to_owned())
}
