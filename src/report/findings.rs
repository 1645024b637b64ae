//! From a story to all that a report says.

use indexmap::IndexMap;

use crate::run::record::Real;
use crate::study::Metric;

use super::curves;
use super::model::{ArmFinding, Findings, Missing, Phase, Probe, Progress, SCHEMA};
use super::reading::{At, Reading};
use super::series::Track;
use super::story::{RunState, RunStory, Story};
use super::{claims, figure, methods, number, tables, threats};

/// Everything that a report of this story says. Pure, and defined for a story in which nothing has run.
pub fn findings(story: &Story) -> Findings {
    let reading = Reading::new(story);
    let study = &story.study;
    let mut progress = Progress { planned: study.arms.len() * study.seeds.len(), ..Progress::default() };
    let (mut arms, mut missing) = (Vec::new(), Vec::new());
    for (index, arm) in study.arms.iter().enumerate() {
        for seed in &study.seeds {
            let run = reading.run(index, *seed);
            let state = run.map_or(RunState::Missing, |run| run.state);
            let (word, reason) = match state {
                RunState::Finished => ("finished", None),
                RunState::Partial => ("partial", Some("some of its phases have run".to_owned())),
                RunState::Diverged { step } => ("diverged", Some(format!("diverged at step {}", number::exact(step)))),
                RunState::Missing => ("missing", Some("has not run".to_owned())),
            };
            match state {
                RunState::Finished => progress.finished += 1,
                RunState::Partial => progress.partial += 1,
                RunState::Diverged { .. } => progress.diverged += 1,
                RunState::Missing => progress.missing += 1,
            }
            if let Some(reason) = reason {
                missing.push(Missing { arm: arm.name.clone(), seed: *seed, state: word, reason });
            }
            arms.push(ArmFinding {
                name: arm.name.clone(),
                values: arm.values.clone(),
                seed: *seed,
                state: word,
                metrics: finals(&reading, index, *seed),
                series: series(&reading, index, *seed),
                phases: run.map(phases).unwrap_or_default(),
                probes: run.map(probes).unwrap_or_default(),
            });
        }
    }
    let metric = tables::primary(&reading);
    let over_steps = metric.into_iter().flat_map(|metric| {
        let of_arms = (0..study.arms.len()).map(move |arm| (arm, metric)).collect::<Vec<_>>();
        let arms: Vec<_> = of_arms.into_iter().map(|(arm, metric)| curves::arm_curve(&reading, arm, metric)).collect();
        arms.into_iter()
            .chain(curves::contrasts(&reading).iter().map(|contrast| contrast.curve(&reading, metric)).collect::<Vec<_>>())
    });
    let claims = claims::claims(&reading);
    Findings {
        schema: SCHEMA,
        study: study.name.clone(),
        doc: study.doc.clone(),
        progress,
        methods: methods::paragraphs(&reading, claims.iter().any(|claim| claim.documents.is_some())),
        threats: threats::threats(&reading, &claims),
        arms,
        tables: tables::all(&reading),
        claims,
        curves: over_steps.filter(|curve| !curve.points.is_empty()).collect(),
        figures: figure::all(&reading),
        missing,
    }
}

fn phases(run: &RunStory) -> Vec<Phase> {
    let pairs = run.segments.iter().zip(&run.phase_keys);
    pairs.map(|(segment, key)| Phase { from: segment.steps.start, to: segment.steps.end, key: key.clone() }).collect()
}

fn probes(run: &RunStory) -> Vec<Probe> {
    let mut probes: Vec<Probe> =
        run.probes.iter().map(|probe| Probe { kind: probe.kind.name(), step: probe.step, key: probe.key.clone() }).collect();
    probes.sort_by(|a, b| (a.step, a.kind).cmp(&(b.step, b.kind)));
    probes
}

/// What is measured, and perplexity where it follows.
fn shown(reading: &Reading<'_>) -> Vec<Metric> {
    let mut metrics = reading.metrics();
    if metrics.contains(&Metric::ValidationCe) && !metrics.contains(&Metric::Perplexity) {
        metrics.push(Metric::Perplexity);
    }
    metrics
}

fn finals(reading: &Reading<'_>, arm: usize, seed: u64) -> IndexMap<String, Real> {
    let of = |metric: Metric| Some((metric.name().to_owned(), Real(reading.value(arm, seed, metric, At::End).ok()?)));
    shown(reading).into_iter().filter_map(of).collect()
}

/// As recorded: what is not finite stays in it.
fn series(reading: &Reading<'_>, arm: usize, seed: u64) -> IndexMap<String, Track> {
    let Some(run) = reading.run(arm, seed) else { return IndexMap::new() };
    let of = |metric: Metric| Some((metric.name().to_owned(), Track::of(&run.metrics, metric)?));
    reading.metrics().into_iter().filter_map(of).collect()
}
