//! Claims: what the study asserts, tested on differences that are paired by seed, with a verdict and its reason.
//!
//! Owns the family of tests. The first claim that compares differences (an interaction: both sides have two terms or more) is the
//! study's **primary** claim and is tested at 5 % on its own; all other claims share 5 % by Holm's method. Without such a claim all of
//! them do. A claim that cannot be tested yet counts in the family with p = 1. Equivalence: two one-sided tests at 5 % each, that is, the
//! 90 % interval inside ±margin. Intervals that are shown are 95 % and not corrected; verdicts are.

use crate::run::record::Real;
use crate::stats::{self, Estimate, Evidence, LEVEL, OverDocuments, Verdict};
use crate::study::{Claim, Linear, Metric, Relation};

use super::documents::over_documents;
use super::figure::strip;
use super::layout::{DASH, told};
use super::model::{ClaimFinding, Count, Documents, Equivalence};
use super::number;
use super::reading::{At, Paired, Reading, difference, grows};

/// What one claim rests on before the others are known.
struct Tested {
    /// left − right; for an overtaking, at the end.
    paired: Paired,
    /// The same before the event, for an overtaking.
    before: Option<Paired>,
    evidence: Option<Evidence>,
    /// The same estimate over documents.
    documents: Option<OverDocuments>,
    /// Said of an overtaking: where it happened.
    crossings: Option<String>,
}

/// All claims of a study, in its order.
pub fn claims(reading: &Reading<'_>) -> Vec<ClaimFinding> {
    let claims = &reading.study().claims;
    let tested: Vec<Tested> = claims.iter().map(|claim| test(reading, claim)).collect();
    let primary = claims.iter().position(is_interaction);
    let family: Vec<usize> = (0..claims.len()).filter(|index| Some(*index) != primary).collect();
    let p = |index: usize| tested[index].evidence.map_or(1.0, |evidence| evidence.p);
    let corrected = stats::holm(&family.iter().map(|index| p(*index)).collect::<Vec<_>>());
    let finding = |(index, claim): (usize, &Claim)| {
        let adjusted = match family.iter().position(|member| *member == index) {
            Some(place) => corrected[place],
            None => p(index),
        };
        finding(claim, &tested[index], adjusted, Some(index) == primary, family.len())
    };
    claims.iter().enumerate().map(finding).collect()
}

/// Whether a claim compares differences.
fn is_interaction(claim: &Claim) -> bool {
    matches!(claim.relation, Relation::Less | Relation::Greater) && claim.left.terms.len() >= 2 && claim.right.terms.len() >= 2
}

fn test(reading: &Reading<'_>, claim: &Claim) -> Tested {
    let at = claim.at_step.map_or(At::End, At::Step);
    let sum = difference(&claim.left, &claim.right);
    let paired = reading.traced(&sum, at);
    let estimate = paired.estimate();
    let documents = over_documents(reading, &sum, at, &paired);
    let mut tested = Tested { paired, before: None, evidence: None, documents, crossings: None };
    tested.evidence = match claim.relation {
        Relation::Less => estimate.and_then(|estimate| stats::directional(&estimate)),
        Relation::Greater => estimate.and_then(|estimate| stats::directional(&mirrored(&estimate))),
        Relation::Equivalent { within } => estimate.and_then(|estimate| stats::equivalence(&estimate, within)),
        Relation::Overtakes { after_grow } => {
            let event = growth(reading, claim, after_grow);
            let before = event.map(|step| reading.combination(&sum, At::Step(step)));
            // Ahead is below, for a metric of which less is better.
            let oriented = |estimate: Estimate| if larger_is_better(claim) { mirrored(&estimate) } else { estimate };
            let sides = (before.as_ref().and_then(Paired::estimate), estimate);
            tested.crossings = event.map(|step| crossings(reading, claim, &sum, step));
            tested.before = before;
            match sides {
                (Some(before), Some(end)) => stats::overtaking(&oriented(before), &oriented(end)),
                _ => None,
            }
        }
    };
    tested
}

/// The p-value of the question that the evidence answers, by sign-flips.
fn exact(claim: &Claim, tested: &Tested, lean: stats::Lean) -> Option<f64> {
    let values = tested.paired.numbers();
    let mirrored: Vec<f64> = values.iter().map(|x| -x).collect();
    match (claim.relation, lean) {
        (Relation::Less | Relation::Greater, _) => stats::sign_flip(&values, 0.0),
        (Relation::Equivalent { within }, stats::Lean::For) => {
            Some(stats::sign_flip_upper(&values, -within)?.max(stats::sign_flip_upper(&mirrored, -within)?))
        }
        (Relation::Equivalent { within }, stats::Lean::Against) => {
            let above = values.iter().sum::<f64>() > 0.0;
            stats::sign_flip(&values, if above { within } else { -within })
        }
        (Relation::Overtakes { .. }, stats::Lean::For) => {
            let before = tested.before.as_ref()?.numbers();
            Some(stats::sign_flip(&before, 0.0)?.max(stats::sign_flip(&values, 0.0)?))
        }
        (Relation::Overtakes { .. }, stats::Lean::Against) => None,
    }
}

fn mirrored(estimate: &Estimate) -> Estimate {
    Estimate { mean: -estimate.mean, ..*estimate }
}

fn metric(claim: &Claim) -> Option<Metric> {
    claim.left.terms.first().map(|(_, term)| term.metric)
}

fn larger_is_better(claim: &Claim) -> bool {
    metric(claim).and_then(Metric::smaller_is_better) == Some(false)
}

/// The arms of a claim, the left side's first.
fn arms(claim: &Claim) -> impl Iterator<Item = usize> + '_ {
    claim.left.terms.iter().chain(&claim.right.terms).flat_map(|(_, term)| term.arms.arms.iter().copied())
}

/// The step of grow event K: that of the left side's arms, or of the right side's where those do not grow.
fn growth(reading: &Reading<'_>, claim: &Claim, number: u32) -> Option<u64> {
    let number = (number as usize).checked_sub(1)?;
    arms(claim).filter_map(|arm| reading.runs_of(arm).next()).find_map(|run| grows(run).get(number).copied())
}

/// `in 4 of 5 seeds, from step 1,200 (median)`.
fn crossings(reading: &Reading<'_>, claim: &Claim, sum: &Linear, event: u64) -> String {
    let Some(metric) = metric(claim) else { return String::new() };
    let sign = if larger_is_better(claim) { -1.0 } else { 1.0 };
    let steps = reading.common_steps(&arms(claim).collect::<Vec<_>>(), metric);
    let later = &steps[steps.partition_point(|step| *step <= event)..];
    let oriented = |(step, value): (u64, f64)| (step, sign * value);
    let end = reading.combination(sum, At::End);
    let before = reading.combination(sum, At::Step(event));
    let seeds: Vec<u64> = end.values.iter().map(|(seed, _)| *seed).collect();
    let was_behind = |seed: u64| before.values.iter().any(|(own, value)| *own == seed && sign * value > 0.0);
    let ends_ahead = |seed: u64| end.values.iter().any(|(own, value)| *own == seed && sign * value < 0.0);
    let crossed: Vec<f64> = seeds
        .iter()
        .filter(|seed| was_behind(**seed) && ends_ahead(**seed))
        .filter_map(|seed| {
            let track: Vec<_> = reading.along(sum, *seed, later).into_iter().map(oriented).collect();
            stats::stays_below_from(&track, event)
        })
        .map(|step| step as f64)
        .collect();
    let from =
        stats::median(&crossed).map(|step| format!(", for good from step {} (median)", number::exact(step.round() as u64)));
    format!("in {} of {}{}", crossed.len(), number::plural(seeds.len() as u64, "seed"), from.unwrap_or_default())
}

fn finding(claim: &Claim, tested: &Tested, adjusted: f64, primary: bool, family: usize) -> ClaimFinding {
    let estimate = tested.paired.estimate();
    let verdict = tested.evidence.map_or(Verdict::Undecided, |evidence| evidence.verdict(adjusted));
    let interval = estimate.and_then(|estimate| estimate.interval(LEVEL));
    let detectable = estimate.as_ref().and_then(stats::minimum_detectable);
    let half = estimate.and_then(|estimate| estimate.half_width(LEVEL));
    let digits = number::decimals(half.as_slice(), 4);
    let equivalence = match claim.relation {
        Relation::Equivalent { within } => {
            let level = 2.0 * LEVEL - 1.0;
            let interval = estimate.and_then(|estimate| estimate.interval(level));
            Some(Equivalence { margin: within, interval: interval.map(reals), level: (level * 100.0).round() / 100.0 })
        }
        _ => None,
    };
    let documents = tested.documents.map(|documents| Documents { n: documents.n, half_width: Real(documents.half_width(LEVEL)) });
    let corrected = !primary && family > 1;
    let exact = tested.evidence.and_then(|evidence| exact(claim, tested, evidence.lean));
    ClaimFinding {
        name: claim.name.clone(),
        text: claim.text.clone(),
        doc: claim.doc.clone(),
        estimate: estimate.map(|estimate| Real(estimate.mean)),
        interval: interval.map(reals),
        level: LEVEL,
        n: tested.paired.count.used,
        count: tested.paired.count,
        verdict: verdict.name(),
        reason: reason(claim, tested, verdict, adjusted, corrected.then_some(family), digits),
        p: tested.evidence.map(|evidence| Real(evidence.p)),
        p_adjusted: tested.evidence.map(|_| Real(adjusted)),
        p_exact: exact.map(Real),
        primary,
        equivalence,
        minimum_detectable: detectable.map(Real),
        documents,
        estimate_text: match (estimate, half) {
            (Some(estimate), Some(half)) => {
                format!("{} ± {}", number::signed(estimate.mean, digits), number::fixed(half, digits))
            }
            (Some(estimate), None) => number::signed(estimate.mean, digits),
            (None, _) => DASH.to_owned(),
        },
        mean_text: estimate.map_or_else(String::new, |estimate| number::signed(estimate.mean, digits)),
        half_width_text: half.map_or_else(String::new, |half| number::fixed(half, digits)),
        p_adjusted_text: tested.evidence.map_or_else(String::new, |_| number::probability(adjusted)),
        p_exact_text: exact.map_or_else(String::new, number::probability),
        interval_text: interval
            .map_or_else(String::new, |(lo, hi)| format!("[{}, {}]", number::signed(lo, digits), number::signed(hi, digits))),
        n_text: tested.paired.count.to_string(),
        p_text: match tested.evidence {
            Some(evidence) if corrected => {
                format!("p = {}, corrected {}", number::probability(evidence.p), number::probability(adjusted))
                    .replace("= <", "<")
            }
            Some(evidence) => format!("p = {}", number::probability(evidence.p)).replace("= <", "<"),
            None => String::new(),
        },
        minimum_detectable_text: detectable.map_or_else(String::new, |difference| number::fixed(difference, digits)),
        documents_text: documents.map_or_else(String::new, |documents| {
            let half = number::fixed(documents.half_width.0, digits);
            format!("± {half} over {}", number::plural(documents.n as u64, "document"))
        }),
        per_seed: tested.paired.values.iter().map(|(seed, value)| (*seed, Real(*value))).collect(),
        source: told(&tested.paired.sources),
        sources: tested.paired.sources.clone(),
        svg: strip::draw(&tested.paired, equivalence.map(|equivalence| equivalence.margin), verdict)
            .map_or_else(String::new, |panel| panel.svg()),
    }
}

fn reals((lo, hi): (f64, f64)) -> [Real; 2] {
    [Real(lo), Real(hi)]
}

/// Why the verdict is what it is, in a sentence.
fn reason(claim: &Claim, tested: &Tested, verdict: Verdict, adjusted: f64, family: Option<usize>, digits: usize) -> String {
    let Count { used, planned, diverged, partial, missing } = tested.paired.count;
    let mut text = match used {
        0 => "No seed has all the values that the claim compares.".to_owned(),
        1 if planned == 1 => "One seed gives no interval: the claim needs at least two.".to_owned(),
        1 => format!("Only 1 of {planned} seeds has all the values that the claim compares: an interval needs at least two."),
        _ => match tested.evidence {
            Some(evidence) => with_interval(claim, tested, verdict, evidence, adjusted, family, digits),
            None => "There is nothing to compare before the event.".to_owned(),
        },
    };
    if let Some(crossings) = &tested.crossings
        && used > 0
    {
        text.push_str(&format!(" It overtakes {crossings}."));
    }
    let absent: Vec<String> = [(diverged, "diverged"), (partial, "under way"), (missing, "without a value")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, why)| format!("{} {why}", number::plural(count as u64, "seed")))
        .collect();
    if used > 0 && !absent.is_empty() {
        text.push_str(&format!(" Left out: {}.", number::listed(&absent)));
    }
    text
}

fn with_interval(
    claim: &Claim,
    tested: &Tested,
    verdict: Verdict,
    evidence: Evidence,
    adjusted: f64,
    family: Option<usize>,
    digits: usize,
) -> String {
    // Decided on its own, undecided beside the others.
    let lost = verdict == Verdict::Undecided && evidence.verdict(evidence.p) != Verdict::Undecided;
    let but = match family {
        Some(family) if lost => {
            format!(", but not after Holm's correction over {family} claims (p = {})", number::probability(adjusted))
        }
        _ => String::new(),
    };
    let decided = verdict != Verdict::Undecided || lost;
    let estimate = tested.paired.estimate();
    match claim.relation {
        Relation::Less | Relation::Greater if decided => {
            let below = estimate.is_some_and(|estimate| estimate.mean < 0.0);
            format!("The 95 % interval of the difference lies {} 0{but}.", if below { "below" } else { "above" })
        }
        Relation::Less | Relation::Greater => {
            let needed = estimate.as_ref().and_then(stats::seeds_needed);
            let needed = needed.map(|seeds| format!("; a difference of this size and spread would take about {seeds} seeds"));
            format!("The 95 % interval of the difference contains 0{}.", needed.unwrap_or_default())
        }
        Relation::Equivalent { within } => {
            let margin = format!("±{within}");
            let interval = |level: f64| {
                let (lo, hi) = estimate.and_then(|estimate| estimate.interval(level)).unwrap_or((f64::NAN, f64::NAN));
                format!("[{}, {}]", number::signed(lo, digits), number::signed(hi, digits))
            };
            match evidence.lean {
                stats::Lean::For if decided => {
                    format!("The 90 % interval {} lies within {margin} (two one-sided tests){but}.", interval(0.9))
                }
                stats::Lean::Against if decided => format!("The 95 % interval {} lies outside {margin}{but}.", interval(0.95)),
                _ => {
                    format!("The 90 % interval {} does not lie within {margin}, nor the 95 % interval outside it.", interval(0.9))
                }
            }
        }
        Relation::Overtakes { after_grow } => {
            let show = |paired: Option<&Paired>| {
                let estimate = paired.and_then(Paired::estimate);
                let half = estimate.and_then(|estimate| estimate.half_width(LEVEL)).unwrap_or(f64::NAN);
                estimate.map_or(DASH.to_owned(), |estimate| {
                    format!("{} ± {}", number::signed(estimate.mean, digits), number::fixed(half, digits))
                })
            };
            let sides =
                format!("before grow {after_grow} {}, at the end {}", show(tested.before.as_ref()), show(Some(&tested.paired)));
            match verdict {
                Verdict::Supported => format!("Behind before and ahead at the end, both shown by 95 % intervals: {sides}."),
                Verdict::Refuted => format!("A 95 % interval lies on the wrong side: {sides}."),
                Verdict::Undecided => format!("Behind before and ahead at the end are not both shown{but}: {sides}."),
            }
        }
    }
}
