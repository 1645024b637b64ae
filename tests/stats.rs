//! Statistics against published tables and hand-checked numbers.

use xrun::stats::{
    Estimate, LEVEL, Lean, OverDocuments, Recovery, Verdict, Windows, directional, equivalence, holm, last_crossing, median,
    minimum_detectable, overtaking, quantile, response, seeds_needed, sign_flip, sign_flip_upper, stays_below_from, sum,
    two_sided_p, upper_p,
};

fn close(a: f64, b: f64, tolerance: f64) {
    assert!((a - b).abs() <= tolerance, "{a} is not {b} within {tolerance}");
}

fn estimate(values: &[f64]) -> Estimate {
    Estimate::of(values).expect("values")
}

/// In units of the sd, from tables of Student's t.
#[test]
fn half_widths_of_a_paired_mean() {
    for (n, expected) in [(3, 2.48), (4, 1.59), (5, 1.24), (6, 1.05), (8, 0.84), (10, 0.7154)] {
        let unit = Estimate { n, mean: 0.0, sd: Some(1.0) };
        close(unit.half_width(LEVEL).expect("n > 1"), expected, 0.005);
    }
}

/// Closed forms: one degree of freedom is Cauchy's distribution, two have t = (2p − 1)·sqrt(2 / (4p(1 − p))).
#[test]
fn quantiles_where_a_closed_form_exists() {
    for p in [0.6, 0.75, 0.9, 0.95, 0.975, 0.995, 0.9999] {
        let cauchy = (std::f64::consts::PI * (p - 0.5)).tan();
        close(quantile(p, 1.0) / cauchy, 1.0, 1e-10);
        close(quantile(1.0 - p, 1.0) / cauchy, -1.0, 1e-10);
        let two = (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
        close(quantile(p, 2.0) / two, 1.0, 1e-10);
    }
    close(quantile(0.975, 4.0), 2.776_445_105_197_799, 1e-10);
    close(quantile(0.95, 9.0), 1.833_112_932_653_634, 1e-9);
    assert!(quantile(0.0, 3.0).is_nan() && quantile(0.5, 0.0).is_nan());
}

#[test]
fn tail_probabilities() {
    close(two_sided_p(1.0, 1.0), 0.5, 1e-13);
    close(two_sided_p(2.776_445_105_197_799, 4.0), 0.05, 1e-12);
    close(two_sided_p(f64::INFINITY, 4.0), 0.0, 0.0);
    close(two_sided_p(0.0, 4.0), 1.0, 1e-15);
}

#[test]
fn one_value_has_no_spread() {
    let one = estimate(&[2.5]);
    assert_eq!((one.n, one.mean, one.sd), (1, 2.5, None));
    assert!(one.interval(LEVEL).is_none() && directional(&one).is_none() && equivalence(&one, 1.0).is_none());
    assert!(minimum_detectable(&one).is_none() && seeds_needed(&one).is_none());
    assert!(Estimate::of(&[]).is_none());
}

#[test]
fn equal_values_have_exactly_no_spread() {
    let same = estimate(&[0.1; 7]);
    assert_eq!((same.mean, same.sd), (0.1, Some(0.0)));
    let zero = estimate(&[0.0; 3]);
    let evidence = directional(&zero).expect("n > 1");
    assert_eq!(evidence.verdict(evidence.p), Verdict::Undecided);
    let shift = directional(&estimate(&[-0.1; 3])).expect("n > 1");
    assert_eq!((shift.lean, shift.p), (Lean::For, 0.0));
}

/// −0.02, −0.03, −0.04: mean −0.03, sd 0.01, t = −0.03/(0.01/√3) = −5.196, interval −0.03 ± 4.3027·0.0057735 = −0.03 ± 0.02484.
#[test]
fn a_direction_by_hand() {
    let difference = estimate(&[-0.02, -0.03, -0.04]);
    close(difference.sd.expect("n > 1"), 0.01, 1e-15);
    close(difference.half_width(LEVEL).expect("n > 1"), 0.024_841, 1e-6);
    let evidence = directional(&difference).expect("n > 1");
    close(evidence.p, 0.035_098_7, 1e-6);
    assert_eq!(evidence.verdict(evidence.p), Verdict::Supported);
    assert_eq!(evidence.verdict(2.0 * evidence.p), Verdict::Undecided);
    let mirrored = directional(&estimate(&[0.02, 0.03, 0.04])).expect("n > 1");
    assert_eq!(mirrored.verdict(mirrored.p), Verdict::Refuted);
}

/// With the same data, the 90 % interval is −0.03 ± 2.91999·0.0057735 = −0.03 ± 0.016858: inside ±0.0469 and not inside ±0.0468.
#[test]
fn equivalence_is_the_ninety_percent_interval_inside_the_margin() {
    let difference = estimate(&[-0.02, -0.03, -0.04]);
    let (lo, _) = difference.interval(0.90).expect("n > 1");
    close(lo, -0.046_858, 1e-6);
    let verdict = |margin| {
        let evidence = equivalence(&difference, margin).expect("n > 1");
        evidence.verdict(evidence.p)
    };
    assert_eq!(verdict(0.0469), Verdict::Supported);
    assert_eq!(verdict(0.0468), Verdict::Undecided);
    // The 95 % interval ends at −0.00516: outside a margin of 0.0051, not of 0.0052.
    assert_eq!(verdict(0.0051), Verdict::Refuted);
    assert_eq!(verdict(0.0052), Verdict::Undecided);
}

#[test]
fn overtaking_needs_both_sides() {
    let (above, below, unclear) = (estimate(&[0.2, 0.3, 0.25]), estimate(&[-0.2, -0.3, -0.25]), estimate(&[-0.2, 0.3, -0.05]));
    let verdict = |before, end| {
        let evidence = overtaking(before, end).expect("n > 1");
        evidence.verdict(evidence.p)
    };
    assert_eq!(verdict(&above, &below), Verdict::Supported);
    assert_eq!(verdict(&above, &above), Verdict::Refuted);
    assert_eq!(verdict(&below, &below), Verdict::Refuted);
    assert_eq!(verdict(&above, &unclear), Verdict::Undecided);
}

/// Holm's own scheme by hand: 0.01·4, max(0.04, 0.02·3), 0.03·2, max(0.06, 0.04·1).
#[test]
fn holm_by_hand() {
    let adjusted = holm(&[0.04, 0.01, 0.03, 0.02]);
    for (a, b) in adjusted.iter().zip([0.06, 0.04, 0.06, 0.06]) {
        close(*a, b, 1e-15);
    }
    assert_eq!(holm(&[0.6, 0.7]), vec![1.0, 1.0]);
    assert!(holm(&[]).is_empty());
}

#[test]
fn power_is_consistent() {
    let difference = Estimate { n: 5, mean: 0.01, sd: Some(0.01) };
    // (2.776445 + 0.940965) · 0.01/√5.
    close(minimum_detectable(&difference).expect("n > 1"), 0.016_625, 1e-5);
    assert_eq!(seeds_needed(&difference), Some(7)); // t(0.975, 6)/√7 = 0.925 < 1, t(0.975, 5)/√6 = 1.049.
    assert_eq!(seeds_needed(&Estimate { n: 5, mean: 0.0, sd: Some(0.01) }), None);
}

/// By counting: of the 8 patterns of ±1 ±2 ±3 two reach 6 in size, of those of ±1 ±1 ±1 two reach 3, and all reach 0.
#[test]
fn sign_flips_by_hand() {
    close(sign_flip(&[1.0, 2.0, 3.0], 0.0).expect("n > 1"), 0.25, 0.0);
    close(sign_flip_upper(&[1.0, 2.0, 3.0], 0.0).expect("n > 1"), 0.125, 0.0);
    close(sign_flip(&[0.0; 4], 0.0).expect("n > 1"), 1.0, 0.0);
    close(sign_flip(&[0.1; 6], 0.0).expect("n > 1"), 2.0 / 64.0, 0.0);
    assert!(sign_flip(&[1.0], 0.0).is_none() && sign_flip(&[1.0; 17], 0.0).is_none());
}

#[test]
fn sums_that_cancel_are_zero() {
    assert_eq!(sum([0.1, -0.3, -0.1, 0.3]), 0.0);
    assert_eq!(sum([1e100, 1.0, -1e100]), 1.0);
    assert_eq!(median(&[3.0, f64::INFINITY, 1.0]), Some(3.0));
    assert_eq!(median(&[]), None);
}

#[test]
fn crossings() {
    let series = [(0, 1.0), (10, -1.0), (20, 0.5), (30, -0.1), (40, -0.2)];
    assert_eq!(stays_below_from(&series, 0), Some(30));
    assert_eq!(stays_below_from(&series, 30), Some(40));
    assert_eq!(stays_below_from(&series[..3], 0), None);
    assert_eq!(last_crossing(&series), Some(30));
    assert_eq!(last_crossing(&series[3..]), None);
}

#[test]
fn windows_scale_with_the_phase() {
    assert_eq!(Windows::of_phase(50_000, 1), Windows { smooth: 200, short: 1_000, long: 5_000 });
    assert_eq!(Windows::of_phase(1_000, 1), Windows { smooth: 10, short: 20, long: 100 });
    assert_eq!(Windows::of_phase(1_000, 20), Windows { smooth: 60, short: 60, long: 100 });
}

/// Baseline 2, a jump of 1 that falls by 0.1 a step: back at the baseline after 10 steps, below it from the 11th.
#[test]
fn a_response_by_hand() {
    let loss: Vec<(u64, f64)> =
        (0..100).map(|s| (s, if s < 50 { 2.0 } else { 2.0 + (1.0 - 0.1 * (s - 50) as f64).max(-0.5) })).collect();
    let windows = Windows { smooth: 2, short: 5, long: 10 };
    let seen = response(&loss, 50, 100, windows).expect("values on both sides");
    close(seen.jump, 1.0, 1e-12);
    close(seen.area_short, 0.8, 1e-12);
    close(seen.area_long, 0.55, 1e-12);
    assert_eq!(seen.recovery, Recovery::After(11)); // steps 60 and 61 average −0.05; their middle is 11 after the event.
    assert_eq!(response(&loss, 50, 58, windows).expect("values").recovery, Recovery::Not);
    let flat: Vec<(u64, f64)> = (0..1_000).map(|s| (s, 2.0)).collect();
    let flat = response(&flat, 500, 1_000, Windows { smooth: 200, short: 200, long: 200 }).expect("values");
    assert_eq!(flat.recovery, Recovery::After(100));
    assert!(response(&[(1, f64::NAN), (50, 1.0)], 50, 60, windows).is_none());
}

#[test]
fn noise_of_documents_by_hand() {
    // Means 0.1 and 0.3 of two documents of 10 tokens: Δ = 0.2, se² = 2 · (1 + 1) / 20².
    let ours = OverDocuments::of(&[1.0, 3.0, 0.0], &[10, 10, 0]).expect("two documents");
    assert_eq!((ours.n, ours.mean), (2, 0.2));
    close(ours.standard_error, 0.1, 1e-15);
    close(ours.half_width(LEVEL), 1.270_620_473_617_47, 1e-12);
    // Where every document says the same, the choice of documents moves nothing.
    assert!(OverDocuments::of(&[1.0, 2.0, 5.0], &[10, 20, 50]).expect("three").standard_error < 1e-15);
    assert_eq!(OverDocuments::of(&[1.0], &[10]), None);
    assert_eq!(OverDocuments::of(&[1.0, f64::NAN], &[10, 10]), None);
    assert_eq!(OverDocuments::of(&[], &[]), None);
}

/// `tests/reference/stats.py`.
#[test]
fn agrees_with_scipy() {
    let reference: serde_json::Value = serde_json::from_str(include_str!("reference/stats.json")).expect("JSON");
    let number = |value: &serde_json::Value| value.as_f64().expect("a number");
    let relative = |ours: f64, theirs: f64, what: &str| {
        assert!((ours - theirs).abs() <= 1e-10 * theirs.abs().max(1e-12), "{what}: {ours} is not {theirs}");
    };
    for case in reference["cases"].as_array().expect("cases") {
        let sample: Vec<f64> = case["sample"].as_array().expect("numbers").iter().map(number).collect();
        let ours = estimate(&sample);
        relative(ours.mean, number(&case["mean"]), "mean");
        relative(ours.sd.expect("n > 1"), number(&case["sd"]), "sd");
        for (level, name) in [(0.95, "interval_95"), (0.90, "interval_90")] {
            let (lo, hi) = ours.interval(level).expect("n > 1");
            let half = (hi - lo) / 2.0;
            assert!(
                (lo - number(&case[name][0])).abs() < 1e-10 * half && (hi - number(&case[name][1])).abs() < 1e-10 * half,
                "{name}"
            );
        }
        relative(directional(&ours).expect("n > 1").p, number(&case["p_two_sided"]), "two-sided p");
        let margin = number(&reference["margin"]);
        if ours.mean.abs() < margin {
            relative(equivalence(&ours, margin).expect("n > 1").p, number(&case["p_tost"]), "TOST p");
            relative(equivalence(&ours, margin).expect("n > 1").p, number(&case["p_tost_statsmodels"]), "TOST p");
        }
        relative(sign_flip(&sample, 0.0).expect("n > 1"), number(&case["p_sign_flip"]), "sign-flip p");
        relative(sign_flip_upper(&sample, -margin).expect("n > 1"), number(&case["p_sign_flip_upper"]), "one-sided sign-flip p");
        relative(median(&sample).expect("values"), number(&case["median"]), "median");
        relative(minimum_detectable(&ours).expect("n > 1"), number(&case["minimum_detectable"]), "minimum detectable");
    }
    let numbers = |value: &serde_json::Value| value.as_array().expect("numbers").iter().map(number).collect::<Vec<f64>>();
    for entry in reference["holm"].as_array().expect("families") {
        for (ours, theirs) in holm(&numbers(&entry[0])).into_iter().zip(numbers(&entry[1])) {
            relative(ours, theirs, "Holm");
        }
    }
    for entry in reference["sums"].as_array().expect("sums") {
        relative(sum(numbers(&entry[0])), number(&entry[1]), "sum");
    }
    // The difference of differences, seed by seed.
    let interaction = &reference["interaction"];
    let cells: Vec<Vec<f64>> = interaction["cells"].as_array().expect("cells").iter().map(numbers).collect();
    let seeds: Vec<f64> =
        (0..cells[0].len()).map(|seed| sum([cells[3][seed], -cells[1][seed], -cells[2][seed], cells[0][seed]])).collect();
    let ours = estimate(&seeds);
    relative(ours.mean, number(&interaction["mean"]), "interaction");
    let (lo, hi) = ours.interval(LEVEL).expect("n > 1");
    relative(lo, number(&interaction["interval"][0]), "interaction's interval");
    relative(hi, number(&interaction["interval"][1]), "interaction's interval");
    relative(directional(&ours).expect("n > 1").p, number(&interaction["p"]), "interaction's p");
    let loss: Vec<(u64, f64)> = (0..).zip(numbers(&reference["response"]["loss"])).collect();
    let theirs = &reference["response"]["seen"];
    let seen = response(&loss, 400, 1_000, Windows { smooth: 20, short: 50, long: 250 }).expect("values on both sides");
    for (place, ours) in [seen.baseline, seen.jump, seen.area_short, seen.area_long].into_iter().enumerate() {
        relative(ours, number(&theirs[place]), "response");
    }
    assert_eq!(seen.recovery, Recovery::After(theirs[4].as_u64().expect("a recovery")));
    for entry in reference["documents"].as_array().expect("documents") {
        let tokens: Vec<u64> = numbers(&entry["tokens"]).into_iter().map(|tokens| tokens as u64).collect();
        let ours = OverDocuments::of(&numbers(&entry["sums"]), &tokens).expect("two documents or more");
        relative(ours.mean, number(&entry["mean"]), "mean over documents");
        relative(ours.standard_error, number(&entry["se"]), "its error");
        relative(ours.half_width(LEVEL), number(&entry["half_width"]), "its interval");
    }
    for entry in reference["quantiles"].as_array().expect("quantiles") {
        relative(quantile(number(&entry[0]), number(&entry[1])), number(&entry[2]), "quantile");
    }
    for entry in reference["tails"].as_array().expect("tails") {
        relative(upper_p(number(&entry[0]), number(&entry[1])), number(&entry[2]), "tail");
    }
}
