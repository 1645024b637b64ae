//! How often a report is wrong: two thousand studies without an effect, told by the whole report.
//!
//! Every claim of these studies is false. At 95 % no more than one study in twenty may have a claim wrongly decided, of the primary claim and of
//! the family of the others each; the bounds leave room for the chance of 2,000 draws (three standard errors are 1.5 %).

use super::fixture::{changed, claim, run, study};
use xrun::report::{RunStory, Story, findings};
use xrun::study::{Claim, Relation};

const STUDIES: u64 = 2_000;

/// Standard normal, from a counter.
fn normal(seed: u64, key: u64) -> f64 {
    let uniform = |key: u64| {
        let mut x = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ key.wrapping_mul(0xd1b5_4a32_d192_ed03) ^ 0x2545_f491_4f6c_dd1d;
        for _ in 0..3 {
            x ^= x >> 30;
            x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            x ^= x >> 27;
            x = x.wrapping_mul(0x94d0_49bb_1331_11eb);
        }
        ((x >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    };
    (-2.0 * uniform(2 * key).ln()).sqrt() * (std::f64::consts::TAU * uniform(2 * key + 1)).cos()
}

/// Arms pre and post under joint and grow, five seeds, the same mean everywhere. With `shared`, most of the noise of the two arms that grow is that of
/// a phase that they have in common under a seed.
fn without_effect(number: u64, claims: &[Claim], shared: bool) -> Story {
    let mut study = study(&["pre", "post"], &["joint", "grow"], &[0, 1, 2, 3, 4]);
    study.reports.clear();
    study.claims = claims.to_vec();
    let runs = (0..20_u64).map(|place| -> RunStory {
        let (arm, seed) = ((place / 5) as usize, place % 5);
        let schedule = if arm % 2 == 0 { "joint" } else { "grow" };
        let own = normal(number, place);
        let common = normal(number, 100 + seed);
        let noise = if shared && arm % 2 == 1 { 0.9 * common + 0.1 * own } else { 0.5 * common + own };
        run(arm, seed, schedule, 1_000, 2.0 + 0.01 * noise)
    });
    Story { runs: runs.collect(), study, teachers: Vec::new() }
}

/// Shares of studies with a claim that is decided: the first one, and any of the others; and of supported claims alone.
fn decided(claims: &[Claim], shared: bool) -> (f64, f64, f64) {
    let (mut primary, mut others, mut supported) = (0, 0, 0);
    for number in 0..STUDIES {
        let found = findings(&without_effect(number, claims, shared)).claims;
        let wrong: Vec<bool> = found.iter().map(|claim| claim.verdict != "undecided").collect();
        primary += u64::from(wrong[0]);
        others += u64::from(wrong[1..].iter().any(|wrong| *wrong));
        supported += u64::from(found[0].verdict == "supported");
    }
    let share = |count: u64| count as f64 / STUDIES as f64;
    (share(primary), share(others), share(supported))
}

#[test]
fn claims_without_an_effect_are_decided_one_time_in_twenty() {
    // The interaction; and a family of three directions.
    let claims = [
        claim("interaction", Relation::Less, &[(1.0, 3), (-1.0, 1)], &[(1.0, 2), (-1.0, 0)]),
        claim("grow", Relation::Less, &[(1.0, 3)], &[(1.0, 1)]),
        claim("joint", Relation::Greater, &[(1.0, 2)], &[(1.0, 0)]),
        claim("pre", Relation::Less, &[(1.0, 1)], &[(1.0, 0)]),
    ];
    for shared in [false, true] {
        let (primary, others, supported) = decided(&claims, shared);
        println!("shared {shared}: the primary claim is decided {primary} (supported {supported}), one of three {others}");
        assert!((0.035..=0.065).contains(&primary), "shared {shared}: the primary claim is decided {primary}");
        assert!(others <= 0.065, "shared {shared}: one of three is decided {others}");
        assert!(supported <= 0.04, "shared {shared}: supported {supported}");
    }
}

/// Claimed within a margin, and in truth as far apart as the margin.
#[test]
fn equivalence_at_the_margin_is_supported_one_time_in_twenty() {
    let claims = [claim("same", Relation::Equivalent { within: 0.03 }, &[(1.0, 3)], &[(1.0, 1)])];
    for shared in [false, true] {
        let mut supported = 0;
        for number in 0..STUDIES {
            let mut story = without_effect(number, &claims, shared);
            for run in story.runs.iter_mut().filter(|run| run.arm == 3) {
                run.metrics = changed(&run.metrics, |_, _, value| Some(value + 0.03));
            }
            supported += u64::from(findings(&story).claims[0].verdict == "supported");
        }
        let share = supported as f64 / STUDIES as f64;
        println!("shared {shared}: equivalence is supported {share}");
        assert!((0.02..=0.065).contains(&share), "shared {shared}: {share}");
    }
}
