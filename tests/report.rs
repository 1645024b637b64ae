//! From a story to text: the paper's table digit for digit, honest counts, verdicts with reasons, safe output.

#[path = "report/figures.rs"]
mod figures;
#[path = "report/fixture.rs"]
mod fixture;
#[path = "report/safety.rs"]
mod safety;
#[path = "report/simulation.rs"]
mod simulation;

use std::sync::Arc;

use fixture::{changed, claim, line, measured, paper, part, rich};
use xrun::report::{Evaluated, Form, Measured, RunState, findings, number, render, render_with};
use xrun::study::{Ablation, Action, Loss, LossTerm, Metric, Relation};

fn markdown(story: &xrun::report::Story) -> String {
    render(&findings(story), Form::Markdown).expect("renders")
}

fn row<'a>(text: &'a str, table: &str, head: &str) -> &'a str {
    let at = text.find(&format!("## {table}")).unwrap_or_else(|| panic!("no table {table} in\n{text}"));
    text[at..]
        .lines()
        .find(|line| line.starts_with(&format!("| {head} |")))
        .unwrap_or_else(|| panic!("no row {head} in {}", &text[at..]))
}

#[test]
fn methods_say_what_is_set_and_from_where() {
    let mut story = paper();
    let loss = Loss {
        terms: vec![
            (0.5, LossTerm::Jsd { teacher: "big".into(), temperature: 2.0, beta: 0.3 }),
            (0.5, LossTerm::ReverseKl { teacher: "big".into(), temperature: 2.0 }),
        ],
    };
    for run in &mut story.runs {
        if let Some(segment) = run.segments.get_mut(1) {
            segment.actions.extend([Action::SetLoss(loss.clone()), Action::SetContext(64)]);
            segment.loss = loss.clone();
        }
    }
    let text = markdown(&story);
    let jsd = "0.5 · the generalised Jensen-Shannon divergence of big and student, β 0.3, at temperature 2";
    let wanted = format!(
        "{jsd} + 0.5 · KL(student ‖ big) at temperature 2 is minimised from step 50,000 on, sequences have 64 tokens from step 50,000 on"
    );
    assert!(text.contains(&wanted), "{text}");
}

#[test]
fn the_papers_first_table_digit_for_digit() {
    let text = markdown(&paper());
    let table = "Interaction of placement and schedule";
    let starts = |head: &str, cells: &str| {
        let row = row(&text, table, head).replace(" (n = 1)", "");
        assert!(row.starts_with(cells), "{row}");
    };
    starts("pre", "| pre | 2.7603 | 2.7658 | 2.9104 |");
    starts("post", "| post | 2.7607 | 2.7330 | 2.8772 |");
    starts("Δ = post − pre", "| Δ = post − pre | +0.0004 | -0.0328 | -0.0332 | -0.0332 |");
    assert!(
        row(&text, "validation_ce by placement and schedule", "post").starts_with("| post | 2.7607 (n = 1) | 2.7330 (n = 1) |")
    );
}

#[test]
fn the_papers_budgets() {
    let text = markdown(&paper());
    assert_eq!(row(&text, "Budgets", "[pre, joint]"), "| [pre, joint] | 9 | 2.98B | 50,000 | 3.11B | 3.11B | 27.99B | 27.99B |");
    assert_eq!(
        row(&text, "Budgets", "[post, grow]"),
        "| [post, grow] | 3→6→9 | 2.98B | 150,000 | 9.33B | 3.11B | 55.98B | 55.98B |"
    );
}

/// Tables 2 to 7 of study.md: a single block, budget controls, block removal, boundary RMS, freezing, transition response.
#[test]
fn the_papers_other_tables_digit_for_digit() {
    let text = markdown(&paper());
    let cells = |table: &str, head: &str| -> Vec<String> {
        row(&text, table, head).replace(" (n = 1)", "").trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let single = "A single block: the end of phase 0";
    assert_eq!(cells(single, "[pre, grow], [pre, grow_frozen]")[3], "2.9802");
    assert_eq!(cells(single, "[post, grow], [post, grow_frozen]")[3], "2.9846");
    let controls = "Budget controls";
    for (arm, tokens, active, ce) in [
        ("[post, joint]", "3.11B", "27.99B", "2.7607"),
        ("joint_100k", "6.22B", "55.98B", "2.7518"),
        ("joint_150k", "9.33B", "83.97B", "2.7428"),
        ("[post, grow]", "9.33B", "55.98B", "2.7330"),
    ] {
        let row = cells(controls, arm);
        assert_eq!((row[2].as_str(), row[4].as_str(), row[5].as_str()), (tokens, active, ce));
    }
    for (arm, numbers) in [
        ("[pre, grow]", ["8.13", "2.36", "0.02", "0.499", "0.310", "0.031"]),
        ("[post, grow]", ["8.32", "3.74", "2.38", "0.483", "0.365", "0.342"]),
        ("[pre, joint]", ["8.05", "1.47", "2.34", "0.485", "0.245", "0.360"]),
        ("[post, joint]", ["0.55", "0.99", "4.00", "0.395", "0.166", "0.437"]),
    ] {
        assert_eq!(cells("Block removal", arm)[1..], numbers);
    }
    let found = findings(&paper());
    let rms: Vec<Vec<&str>> = found.tables["boundary_rms"]
        .rows
        .iter()
        .map(|row| [1, 2, 3, 4].map(|place| row.cells[place].text.as_str()).to_vec())
        .collect();
    assert_eq!(
        rms,
        [
            ["5.81", "2400.0", "119.00", "7.10"],
            ["19.98", "2400.0", "425.00", "11.50"],
            ["0.07", "3.0", "2.45", "2.40"],
            ["0.19", "3.0", "2.45", "2.40"]
        ]
    );
    assert_eq!(cells("Freezing", "pre")[1..], ["2.7658", "2.9104", "+0.1446"]);
    assert_eq!(cells("Freezing", "post")[1..], ["2.7330", "2.8772", "+0.1442"]);
    let response = |arm: &str| {
        let row = found.tables["transition"].rows.iter().find(|row| row.head[..2] == [arm, "1"]).expect("a row");
        row.cells.iter().skip(1).map(|cell| cell.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(response("[pre, grow]"), ["+0.0226", "+0.0694", "+0.1217", "200 / 1000 / 5000", "101"]);
    assert_eq!(response("[post, grow]"), ["+0.2500", "+0.1820", "+0.1464", "200 / 1000 / 5000", "19,914"]);
}

#[test]
fn one_seed_decides_nothing() {
    let found = findings(&paper());
    assert!(found.claims.iter().all(|claim| claim.verdict == "undecided" && claim.interval.is_none() && claim.n == 1));
    assert_eq!(found.claims[0].estimate_text, "-0.0332");
    assert_eq!(found.claims[0].reason, "One seed gives no interval: the claim needs at least two.");
    assert!(!found.all_supported());
}

/// Arms pre and post under one schedule each; Δ of −0.02, −0.03, −0.04 over three seeds.
fn three_seeds() -> xrun::report::Story {
    let mut study = fixture::study(&["pre", "post"], &["joint"], &[0, 1, 2]);
    study.claims = vec![claim("post_wins", Relation::Less, &[(1.0, 1)], &[(1.0, 0)])];
    let values = [[2.80, 2.70, 2.90], [2.78, 2.67, 2.86]];
    let runs = values
        .iter()
        .enumerate()
        .flat_map(|(arm, row)| row.iter().enumerate().map(move |(seed, ce)| fixture::run(arm, seed as u64, "joint", 1_000, *ce)));
    xrun::report::Story { runs: runs.collect(), study, teachers: Vec::new() }
}

#[test]
fn differences_are_paired_by_seed() {
    let found = findings(&three_seeds());
    let claim = &found.claims[0];
    assert_eq!((claim.verdict, claim.n, claim.level), ("supported", 3, 0.95));
    assert_eq!(claim.estimate_text, "-0.030 ± 0.025");
    assert_eq!(claim.interval_text, "[-0.055, -0.005]");
    let [lo, hi] = claim.interval.expect("an interval");
    assert!((lo.0 + 0.054_841).abs() < 1e-6 && (hi.0 + 0.005_159).abs() < 1e-6);
    assert!((claim.p.expect("p").0 - 0.035_099).abs() < 1e-6);
    // The cells' own intervals (sd 0.1 over seeds) would have hidden it.
    assert_eq!(found.tables["ablation"].rows[0].cells[0].text, "2.80 ± 0.25");
}

#[test]
fn verdicts_of_every_relation() {
    let verdict = |relation, left: usize, right: usize| {
        let mut story = three_seeds();
        story.study.claims = vec![claim("c", relation, &[(1.0, left)], &[(1.0, right)])];
        let found = findings(&story).claims.remove(0);
        (found.verdict, found.reason)
    };
    assert_eq!(verdict(Relation::Less, 0, 1).0, "refuted");
    assert_eq!(verdict(Relation::Greater, 0, 1).0, "supported");
    assert_eq!(verdict(Relation::Greater, 1, 0).0, "refuted");
    let (word, reason) = verdict(Relation::Equivalent { within: 0.05 }, 0, 1);
    assert_eq!(
        (word, reason.as_str()),
        ("supported", "The 90 % interval [+0.013, +0.047] lies within ±0.05 (two one-sided tests).")
    );
    assert_eq!(verdict(Relation::Equivalent { within: 0.04 }, 0, 1).0, "undecided");
    assert_eq!(verdict(Relation::Equivalent { within: 0.005 }, 0, 1).0, "refuted");
    assert_eq!(verdict(Relation::Less, 0, 0).0, "undecided");
}

#[test]
fn the_interaction_is_primary_and_the_rest_shares_an_error_rate() {
    let found = findings(&rich());
    let primary: Vec<&str> = found.claims.iter().filter(|claim| claim.primary).map(|claim| claim.name.as_str()).collect();
    assert_eq!(primary, ["they_interact"]);
    assert_eq!(found.claims[0].p, found.claims[0].p_adjusted);
    let others: Vec<(f64, f64)> =
        found.claims[1..].iter().map(|claim| (claim.p.expect("p").0, claim.p_adjusted.expect("p").0)).collect();
    let smallest = others.iter().copied().min_by(|a, b| a.0.total_cmp(&b.0)).expect("claims");
    assert!((smallest.1 / smallest.0 - 5.0).abs() < 1e-9, "five claims share: {others:?}");
    // Two claims at p = 0.0351 each: decided alone, not together.
    let mut story = three_seeds();
    story.study.claims.push(claim("again", Relation::Greater, &[(1.0, 0)], &[(1.0, 1)]));
    let found = findings(&story);
    assert_eq!(found.claims[0].verdict, "undecided");
    assert_eq!(
        found.claims[0].reason,
        "The 95 % interval of the difference lies below 0, but not after Holm's correction over 2 claims (p = 0.070)."
    );
}

#[test]
fn overtaking_is_followed_to_the_end() {
    let found = findings(&rich());
    let claim = found.claims.last().expect("claims");
    assert_eq!(claim.verdict, "supported", "{}", claim.reason);
    assert!(claim.reason.contains("It overtakes in 5 of 5 seeds, for good from step 2,200 (median)"), "{}", claim.reason);
    let mut story = rich();
    story.study.claims = vec![fixture::claim("never", Relation::Overtakes { after_grow: 1 }, &[(1.0, 1)], &[(1.0, 4)])];
    assert_eq!(findings(&story).claims[0].verdict, "refuted");
    story.study.claims = vec![fixture::claim("no_such_event", Relation::Overtakes { after_grow: 9 }, &[(1.0, 1)], &[(1.0, 4)])];
    assert_eq!(findings(&story).claims[0].verdict, "undecided");
}

#[test]
fn what_is_left_out_is_counted() {
    let mut story = three_seeds();
    story.runs[4].state = RunState::Diverged { step: 700 };
    story.runs[4].metrics = measured(&[line(700, &[("validation_ce", f64::NAN)])]);
    story.runs.remove(2);
    let found = findings(&story);
    let cell = &found.tables["ablation"].rows[1].cells[0];
    assert_eq!(cell.n_text, "n = 2 of 3, 1 diverged");
    assert!(cell.text.starts_with("2.8") && !cell.text.contains("NaN"), "{}", cell.text);
    let claim = &found.claims[0];
    assert_eq!((claim.n, claim.n_text.as_str()), (1, "n = 1 of 3, 1 diverged, 1 missing"));
    assert_eq!(
        claim.reason,
        "Only 1 of 3 seeds has all the values that the claim compares: an interval needs at least two. Left out: 1 seed diverged and 1 seed \
         without a value."
    );
    assert_eq!((found.progress.finished, found.progress.diverged, found.progress.missing), (4, 1, 1));
    assert_eq!(found.missing.iter().map(|run| run.reason.as_str()).collect::<Vec<_>>(), ["has not run", "diverged at step 700"]);
}

/// A run that has come half of its way has no value at the end, and every kind of cell says so.
#[test]
fn what_is_under_way_is_counted() {
    let mut story = rich();
    let half = story.runs.iter_mut().find(|run| run.arm == 4 && run.seed == 0).expect("a run");
    half.state = RunState::Partial;
    half.metrics = changed(&half.metrics, |_, step, value| (step < 1_500).then_some(value));
    half.probes.retain(|probe| probe.step < 1_500);
    let found = findings(&story);
    let text = |table: &str, row: usize, column: usize| found.tables[table].rows[row].cells[column].n_text.clone();
    let wanted = "n = 4 of 5, 1 under way";
    for (table, row, column) in [("ablation", 1, 1), ("interaction", 2, 1), ("interaction", 2, 3), ("freeze", 1, 0)] {
        assert_eq!(text(table, row, column), wanted, "{table}");
    }
    for (table, row) in [("block_removal", 4), ("arms", 4)] {
        assert_eq!(text(table, row, 0), wanted, "{table}");
    }
    let crossover = found.tables["crossover"].rows[1].cells.last().expect("a cell");
    assert_eq!((crossover.text.as_str(), crossover.n_text.as_str()), ("step 2,200", "4 of 5 seeds, 1 under way"));
    let grown = |row: &&xrun::report::model::Row| row.head[..2] == ["[post, grow]", "2"];
    let response = found.tables["transition"].rows.iter().find(grown).expect("a row");
    assert_eq!(response.cells.last().expect("a cell").n_text, "4 of 5 recovered, 1 under way");
    assert_eq!(found.claims[0].n_text, wanted);
    assert!(found.claims[0].reason.ends_with("Left out: 1 seed under way."), "{}", found.claims[0].reason);
    assert!(found.threats.iter().any(|threat| threat.starts_with("2 runs are not finished")));
    assert!(found.missing.iter().any(|run| run.state == "partial" && run.reason == "some of its phases have run"));
    let csv = render(&found, Form::Csv).expect("renders");
    assert!(csv.contains("\nclaims,they_interact,supported,") && csv.contains(",4,5,0,1,0\n"));
}

/// Every number that was measured names the nodes that it comes from, and the page has them all.
#[test]
fn numbers_lead_to_their_nodes() {
    let found = findings(&rich());
    let page = render(&found, Form::Html).expect("renders");
    let listed = page.split("id=\"sources\"").nth(1).expect("a list of nodes");
    let mut checked = 0;
    for (name, table) in &found.tables {
        for cell in table.rows.iter().flat_map(|row| &row.cells).filter(|cell| !cell.per_seed.is_empty()) {
            assert!(cell.sources.len() >= cell.per_seed.len(), "{name}: {}", cell.text);
            checked += cell.sources.len();
            for source in &cell.sources {
                assert!(listed.contains(source.key.get(..16).unwrap_or(&source.key)), "{name}: {}", source.key);
                assert!(page.contains(&format!("id=\"run-{}\"", source.run)));
            }
        }
    }
    assert!(checked > 1_000, "{checked}");
    let claim = &found.claims[0];
    assert_eq!((claim.sources.len(), claim.sources[0].step), (4 * 5, 3_000));
    assert!(claim.source.as_deref().is_some_and(|text| text.starts_with("[post, grow] after step 3,000: seed 0 node ")));
}

/// The noise of evaluation stands beside a claim where all that it compares was evaluated on the same documents, also under a single seed.
#[test]
fn the_choice_of_documents_is_told() {
    let mut story = three_seeds();
    assert_eq!(findings(&story).claims[0].documents, None);
    // Two documents of ten tokens; post is lower by 0.2 on one of them and by 0.1 on the other, under every seed.
    let evaluated = |arm: usize| {
        let ce = if arm == 0 { vec![28.0, 29.0] } else { vec![26.0, 28.0] };
        Some(Arc::new(Evaluated { step: 1_000, tokens: vec![10, 10], ce }))
    };
    for run in &mut story.runs {
        run.evaluated = evaluated(run.arm);
    }
    let found = findings(&story);
    let claim = &found.claims[0];
    let by = claim.documents.expect("the noise of documents");
    // δ = (−0.2, −0.1): se = 0.05, t(0.975, 1) = 12.706.
    assert!(by.n == 2 && (by.half_width.0 - 12.706_204_736 * 0.05).abs() < 1e-9, "{by:?}");
    assert_eq!(claim.documents_text, "± 0.635 over 2 documents");
    assert_eq!(claim.verdict, "supported");
    let wanted = "The choice of the documents that are held out moves the estimates of post_wins by as much as they are";
    assert!(found.threats.iter().any(|threat| threat.starts_with(wanted)), "{:#?}", found.threats);
    assert!(found.methods.iter().any(|paragraph| paragraph.contains("The noise of evaluation stands beside the estimate")));
    let told = "By the documents held out: ± 0.635 over 2 documents.";
    for form in [Form::Markdown, Form::Html, Form::Text] {
        assert!(render(&found, form).expect("renders").contains(told), "{form:?}");
    }
    assert!(
        render(&found, Form::Latex)
            .expect("renders")
            .contains(r"By the documents held out: \ensuremath{\pm} 0.635 over 2 documents.")
    );
    // One seed has no interval over seeds, and one over documents.
    let mut one = story.clone();
    one.study.seeds = vec![0];
    one.runs.retain(|run| run.seed == 0);
    let alone = findings(&one).claims.remove(0);
    assert!(alone.interval.is_none() && alone.documents.is_some_and(|own| (own.half_width.0 - by.half_width.0).abs() < 1e-9));
    // Other documents, another step, a run that has none, another metric: nothing is said.
    let without = |change: &dyn Fn(&mut xrun::report::Story)| {
        let mut story = story.clone();
        change(&mut story);
        assert_eq!(findings(&story).claims[0].documents, None);
    };
    without(&|story| story.runs[4].evaluated = None);
    without(&|story| {
        story.runs[4].evaluated = Some(Arc::new(Evaluated { step: 1_000, tokens: vec![9, 11], ce: vec![26.0, 28.0] }));
    });
    without(&|story| {
        story.runs[4].evaluated = Some(Arc::new(Evaluated { step: 999, ..Evaluated::clone(&evaluated(1).expect("some")) }))
    });
    without(&|story| story.study.claims[0].left.terms[0].1.metric = Metric::Perplexity);
}

#[test]
fn what_is_known_of_steps_is_read_at_the_last_step() {
    let mut story = three_seeds();
    let mut read = story.study.claims[0].clone();
    for (_, term) in read.left.terms.iter_mut().chain(&mut read.right.terms) {
        term.metric = Metric::TrainLoss;
    }
    story.study.claims = vec![read];
    assert_eq!(findings(&story).claims[0].n, 0);
    for run in &mut story.runs {
        let last = run.planned.steps - 1;
        let read = line(last, &[("train_loss", 2.0 + 0.1 * run.arm as f64 + 0.001 * run.seed as f64)]);
        run.metrics.append(Arc::new(part(&[read])));
    }
    assert_eq!(findings(&story).claims[0].n, 3);
}

#[test]
fn an_arm_that_only_diverged_says_so() {
    let mut story = three_seeds();
    for run in story.runs.iter_mut().filter(|run| run.arm == 1) {
        run.state = RunState::Diverged { step: 10 };
        run.metrics = Measured::default();
    }
    let text = markdown(&story);
    assert_eq!(row(&text, "validation_ce by placement and schedule", "post"), "| post | diverged (n = 0 of 3, 3 diverged) |");
}

#[test]
fn a_final_value_that_is_not_finite_is_a_divergence() {
    let mut story = three_seeds();
    story.runs[0].metrics = measured(&[line(1_000, &[("validation_ce", f64::INFINITY)])]);
    assert_eq!(findings(&story).tables["ablation"].rows[0].cells[0].n_text, "n = 2 of 3, 1 diverged");
}

#[test]
fn a_report_of_nothing() {
    let mut story = rich();
    story.runs.clear();
    story.teachers.clear();
    let found = findings(&story);
    assert!(found.tables.is_empty() && found.figures.is_empty() && found.curves.is_empty());
    assert!(found.claims.iter().all(|claim| claim.verdict == "undecided"));
    assert_eq!(found.missing.len(), 35);
    for form in [Form::Markdown, Form::Html, Form::Csv, Form::Json] {
        render(&found, form).expect("renders");
    }
}

#[test]
fn every_table_of_the_study() {
    let found = findings(&rich());
    let names: Vec<&str> = found.tables.keys().map(String::as_str).collect();
    let wanted = [
        "ablation",
        "interaction",
        "crossover",
        "controls",
        "freeze",
        "first_phase",
        "transition",
        "block_removal",
        "identity",
        "logit_lens",
        "boundary_rms",
        "gradient_norms",
        "arms",
        "budgets",
    ];
    assert_eq!(names, wanted);
    for (name, table) in &found.tables {
        assert!(
            table.rows.iter().all(|row| row.cells.len() == table.columns.len() && row.head.len() == table.stub.len()),
            "{name}"
        );
        assert!(table.rows.iter().flat_map(|row| &row.cells).all(|cell| !cell.text.is_empty()), "{name}");
    }
    // Arms that share phase 0 share a row.
    let first: Vec<&str> = found.tables["first_phase"].rows.iter().map(|row| row.head[0].as_str()).collect();
    assert_eq!(first, ["[pre, grow], [pre, grow_frozen]", "[post, grow], [post, grow_frozen]"]);
    assert!(found.tables["first_phase"].title.starts_with("A single block"));
    // The control stands below the arm that it is matched to and the arm that it is made from.
    let controls: Vec<&str> = found.tables["controls"].rows.iter().map(|row| row.head[0].as_str()).collect();
    assert_eq!(controls, ["[post, grow]", "[post, joint]", "joint_long"]);
    assert_eq!(found.tables["freeze"].columns[2].label, "grow_frozen − grow");
    let figures: Vec<&str> = found.figures.iter().map(|figure| figure.name.as_str()).collect();
    let wanted =
        ["interaction", "loss", "delta", "transition", "block_removal", "boundary_rms", "logit_lens", "gradient_norms", "plan"];
    assert_eq!(figures, wanted);
    // What lies around the layers has no groups; no layer has a gain.
    let gradients = &found.tables["gradient_norms"];
    let columns: Vec<&str> = gradients.columns.iter().map(|column| column.label.as_str()).collect();
    assert_eq!(columns, ["attention", "ffn", "norms", "all"]);
    let of: Vec<&str> = gradients.rows.iter().take(12).map(|row| row.head[2].as_str()).collect();
    let layers: Vec<String> = (1..=9).map(|layer| format!("layer {layer}")).collect();
    assert_eq!(of[0], "embedding");
    assert_eq!(of[1..10], layers);
    assert_eq!(of[10..], ["entry and exit", "head"]);
    assert_eq!(found.tables["logit_lens"].columns.len(), 4);
}

/// One step of growth: 2.0 before, 2.5 after, on the same model's two lines.
#[test]
fn a_jump_is_after_minus_before() {
    let mut story = rich();
    for run in &mut story.runs {
        run.metrics = measured(&[
            line(1_000, &[("validation_ce", 2.0)]),
            line(1_000, &[("validation_ce", 2.5)]),
            line(2_000, &[("validation_ce", 2.25)]),
        ]);
    }
    let found = findings(&story);
    let jump = &found.tables["transition"].rows[0].cells[0];
    assert_eq!((jump.text.as_str(), jump.n_text.as_str()), ("+0.5000 ± 0.0000", "n = 5"));
}

#[test]
fn an_average_over_an_axis_is_balanced() {
    let mut story = three_seeds();
    story.study.reports = vec![Ablation { rows: vec!["schedule".to_owned()], columns: Vec::new() }];
    let found = findings(&story);
    let cell = &found.tables["ablation"].rows[0].cells[0];
    assert!(cell.per_seed.iter().zip([2.79, 2.685, 2.88]).all(|((_, value), mean)| (value.0 - mean).abs() < 1e-12));
    // A seed that one of the arms lacks has no average.
    story.runs.pop();
    assert_eq!(findings(&story).tables["ablation"].rows[0].cells[0].n_text, "n = 2 of 3, 1 missing");
}

#[test]
fn json_has_the_documented_shape() {
    let mut story = rich();
    story.runs[0].metrics = changed(&story.runs[0].metrics, |metric, step, value| match (metric, step) {
        (Metric::ValidationCe, 100) => Some(f64::NAN),
        (Metric::ValidationCe, 200) => Some(f64::NEG_INFINITY),
        _ => Some(value),
    });
    let text = render(&findings(&story), Form::Json).expect("renders");
    let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(json["schema"], "xrun.report/1");
    assert_eq!(json["study"], "placement_by_curriculum");
    let arm = &json["arms"][0];
    assert_eq!((arm["name"].as_str(), arm["seed"].as_u64()), (Some("[pre, joint]"), Some(0)));
    assert_eq!(arm["values"]["placement"], "pre");
    assert!(arm["metrics"]["validation_ce"].is_f64() && arm["metrics"]["perplexity"].is_f64());
    let series = arm["series"]["validation_ce"].as_array().expect("series");
    assert_eq!(series[1], serde_json::json!([100, "NaN"]));
    assert_eq!(series[2], serde_json::json!([200, "-inf"]));
    let claim = &json["claims"][0];
    for field in ["name", "text", "estimate", "interval", "level", "n", "verdict"] {
        assert!(!claim[field].is_null(), "{field}");
    }
    assert_eq!(claim["interval"].as_array().map(Vec::len), Some(2));
    assert_eq!(json["missing"][0]["reason"], "diverged at step 2,345");
    assert!(json["tables"]["interaction"]["rows"].is_array());
    assert_eq!(json["tables"]["budgets"]["rows"][0]["cells"][2]["value"], 2_048_000);
}

/// Names of all fields of a report, as `stdlib/reports/README.md` writes them; `{}` stands for what is told by name.
fn fields(value: &serde_json::Value, path: &str, found: &mut std::collections::BTreeSet<String>) {
    const BY_NAME: [&str; 4] = ["tables", "arms[].values", "arms[].metrics", "arms[].series"];
    match value {
        serde_json::Value::Object(map) if BY_NAME.contains(&path) => {
            found.insert(format!("{path}{{}}"));
            map.values().for_each(|value| fields(value, &format!("{path}{{}}"), found));
        }
        serde_json::Value::Object(map) => {
            found.insert(path.to_owned());
            let under = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
            map.iter().for_each(|(name, value)| fields(value, &under(name), found));
        }
        serde_json::Value::Array(list) => {
            found.insert(format!("{path}[]"));
            list.iter().for_each(|value| fields(value, &format!("{path}[]"), found));
        }
        _ => drop(found.insert(path.to_owned())),
    }
}

#[test]
fn every_field_is_documented() {
    let page = include_str!("../stdlib/reports/README.md");
    let documented: std::collections::BTreeSet<&str> =
        page.lines().filter_map(|line| line.strip_prefix("| `")?.split_once('`')).map(|(field, _)| field).collect();
    let text = render(&findings(&rich()), Form::Json).expect("renders");
    let mut found = std::collections::BTreeSet::new();
    fields(&serde_json::from_str(&text).expect("JSON"), "", &mut found);
    for field in &found {
        // The parts of what is explained in one line are named there.
        let named = |(parent, name): (&str, &str)| {
            let line = page.lines().find(|line| line.starts_with(&format!("| `{parent}`")));
            line.is_some_and(|line| line.contains(&format!("`{}`", name.trim_end_matches("[]"))))
        };
        let paired = field.ends_with("[][]") || field.contains("series{}[]") || field.contains(".format.");
        let top = field.is_empty() || paired || documented.contains(field.as_str());
        assert!(top || field.rsplit_once('.').is_some_and(named), "{field} is not documented");
    }
    // What a finished study has not: a field that is null or a list that is empty.
    for field in documented {
        let bare = field.trim_end_matches("[]");
        assert!(found.contains(field) || found.contains(bare), "{field} is documented, and there is no such field");
    }
}

#[test]
fn a_terminal_gets_aligned_text() {
    let text = render(&findings(&rich()), Form::Text).expect("renders");
    assert!(text.lines().all(|line| !line.chars().any(char::is_control)));
    let at = text.find("\nInteraction of placement and schedule\n").expect("the table");
    let rows: Vec<&str> = text[at..].lines().skip(2).take(4).collect();
    let ends: Vec<usize> = rows[..3].iter().map(|row| row.find("joint").or_else(|| row.find('±')).expect("a cell")).collect();
    assert!(ends[1] == ends[2] && rows[3].contains("Δ = post − pre"), "{rows:#?}");
    assert!(text.contains("(a) n = ") && text.contains("Threats to validity"));
}

#[test]
fn reports_are_compared() {
    let json = |story: &xrun::report::Story| render(&findings(story), Form::Json).expect("renders");
    let old = json(&rich());
    assert_eq!(xrun::report::differences(&old, &old), Ok(Vec::new()));
    let mut story = rich();
    story.study.claims.remove(1);
    story.runs.retain(|run| run.arm != 4 || run.seed != 0);
    let found = xrun::report::differences(&old, &json(&story)).expect("two reports");
    for wanted in
        ["claim growth_prefers_post: gone, was ", "run [post, grow] seed 0: finished -> missing", "ablation / post / grow: "]
    {
        assert!(found.iter().any(|line| line.starts_with(wanted)), "{wanted} not in {found:#?}");
    }
    assert!(xrun::report::differences("{}", &old).is_err() && xrun::report::differences(&old, "[").is_err());
}

#[test]
fn the_page_asks_for_nothing() {
    let page = render(&findings(&rich()), Form::Html).expect("renders");
    // The one script is the shipped one, and it has no word for asking; the page forbids itself what it does not have.
    assert_eq!(page.matches("<script").count(), 1);
    assert!(page.contains(r#"content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'""#));
    let page_text = page.replace("http-equiv", "").replace("http://www.w3.org/2000/svg", "");
    for word in ["http", "<link", "@import", "url(", "src=", "fetch(", "XMLHttpRequest", "WebSocket", "import(", "sendBeacon"] {
        assert!(!page_text.contains(word), "{word} in the page");
    }
    assert!(page.match_indices("href=").all(|(at, _)| page[at..].starts_with("href=\"#run-")));
    assert!(page.contains("prefers-color-scheme: dark") && page.contains("<svg") && page.contains("n = 4 of 5, 1 diverged"));
    let shown = page.split("<script>").next().expect("a page");
    assert!(!shown.contains("NaN") && !shown.contains(">none<"));
    let samples = std::path::Path::new(env!("CARGO_TARGET_TMPDIR"));
    std::fs::write(samples.join("report.html"), page).expect("a sample to look at");
    std::fs::write(samples.join("report.md"), markdown(&rich())).expect("a sample to look at");
}

#[test]
fn names_are_only_characters() {
    const NASTY: &str = r#"a|b_% & # $ {{ 7 * 7 }} ~ ^ \ <script>alert("x")</script> > ü`"#;
    let mut story = rich();
    story.study.name = NASTY.to_owned();
    story.study.doc = Some(NASTY.to_owned());
    story.study.axes[0].values[1].label = NASTY.to_owned();
    for arm in &mut story.study.arms {
        if let Some(value) = arm.values.get_mut("placement").filter(|value| *value == "post") {
            *value = NASTY.to_owned();
            arm.name = NASTY.to_owned();
        }
    }
    story.study.claims[0].text = NASTY.to_owned();
    let found = findings(&story);
    let page = render(&found, Form::Html).expect("renders");
    assert!(page.matches("<script").count() == 1 && page.contains("&lt;script&gt;"));
    let text = render(&found, Form::Markdown).expect("renders");
    assert!(text.contains(r#"a\|b\_% & # \$ {{ 7 * 7 }} ~ ^ \\ \<script>alert("x")\</script> > ü"#));
    assert!(!text.replace(r"\<", "").contains("<script"));
    let table = text.lines().find(|line| line.starts_with(r"| a\|b")).expect("a row");
    assert!(table.ends_with(" |"));
    let csv = render(&found, Form::Csv).expect("renders");
    assert!(csv.contains(r#""a|b_% & # $ {{ 7 * 7 }} ~ ^ \ <script>alert(""x"")</script> > ü`""#));
}

#[test]
fn csv_is_a_table() {
    let csv = render(&findings(&rich()), Form::Csv).expect("renders");
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some("table,row,column,text,value,half_width,n,planned,diverged,under_way,missing"));
    let fields = |line: &str| {
        let mut quoted = false;
        1 + line
            .chars()
            .filter(|c| {
                quoted ^= *c == '"';
                *c == ',' && !quoted
            })
            .count()
    };
    for line in lines {
        assert_eq!(fields(line), 11, "{line}");
    }
    assert!(csv.contains("\nbudgets,\"[pre, joint]; 9\",tokens,2.05M,2048000,,,,,,\n"), "{csv}");
    // A spreadsheet reads a sign as a number only where there is nothing else.
    assert!(csv.lines().all(|line| !line.split(',').any(|field| field.starts_with('='))));
}

#[test]
fn a_template_of_ones_own() {
    let found = findings(&three_seeds());
    let text =
        render_with(&found, "mine.md", "{% for claim in report.claims %}{{ claim.name }}: {{ claim.verdict }}\n{% endfor %}");
    assert_eq!(text.as_deref(), Ok("post_wins: supported\n"));
    let page = render_with(&found, "mine.html", "{{ report.tables.interaction is undefined }}<b>{{ '<' ~ report.study }}</b>");
    assert_eq!(page.as_deref(), Ok("True<b>&lt;placement_by_curriculum</b>"));
}

#[test]
fn a_misspelt_field_is_an_error_with_its_line() {
    let found = findings(&three_seeds());
    for name in ["mine.md", "mine.html", "mine.csv", "mine.txt"] {
        for body in [
            "one\ntwo {{ report.studdy }}",
            "one\n{{ report.studdy|upper }}",
            "one\n{{ report.claims[0].verdit|upper|trim }}",
            "one\n{% for row in report.tabels %}{% endfor %}",
            "one\n{% if report.claims[0].verdit == 'supported' %}x{% endif %}",
            "one\n{{ reprot.study }}",
            "one\n{{ report.claims|map(attribute='verdit')|join(', ') }}",
            "one\n{{ report.claims|selectattr('verdit', 'eq', 'x')|list }}",
            "one\n{{ report.claims|sort(attribute='name,verdit') }}",
            "one\n{{ report.claims|groupby('count.usd') }}",
            "one\n{{ report.study|uper }}",
            "one\n{{ report.study",
        ] {
            let error = render_with(&found, name, body).expect_err(body);
            assert_eq!((error.template.as_str(), error.line), (name, Some(2)), "{body}: {error}");
        }
    }
}

#[test]
fn a_template_is_bounded() {
    let found = findings(&three_seeds());
    let endless = "{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}";
    assert!(render_with(&found, "mine.md", endless).is_err());
    assert!(render_with(&found, "mine.md", "{% include '/etc/passwd' %}").is_err());
    assert!(render_with(&found, "mine.md", &" ".repeat(2 << 20)).is_err());
}

#[test]
fn numbers() {
    assert_eq!(number::fixed(-0.000_01, 4), "0.0000");
    assert_eq!(number::fixed(f64::NAN, 2), "diverged");
    assert_eq!(number::fixed(f64::NEG_INFINITY, 2), "-inf");
    assert_eq!(number::signed(0.000_4, 4), "+0.0004");
    assert_eq!(number::signed(0.000_01, 4), "0.0000");
    assert_eq!(number::exact(9_007_199_254_740_993), "9,007,199,254,740,993");
    assert_eq!((number::exact(0), number::exact(999), number::exact(1_000)), ("0".into(), "999".into(), "1,000".into()));
    let shorts = [3_110_000_000, 27_990_000_000, 999_999_999, 999_999, 1_000_000, u64::MAX].map(number::short);
    assert_eq!(shorts, ["3.11B", "27.99B", "1.00B", "999,999", "1.00M", "18446744.07T"]);
    assert_eq!(number::decimals(&[], 4), 4);
    assert_eq!(number::decimals(&[0.0, f64::NAN], 4), 4);
    assert_eq!(number::decimals(&[0.0123], 4), 3);
    assert_eq!(number::decimals(&[0.5, 0.4, 0.003], 4), 3);
    assert_eq!(number::decimals(&[120.0, 340.0], 4), 0);
    assert_eq!(number::plural(1, "seed"), "1 seed");
    assert_eq!(number::plural(5_000, "seed"), "5,000 seeds");
}

#[test]
fn a_report_is_a_function_of_its_story() {
    let story = rich();
    let mut shuffled = story.clone();
    shuffled.runs.reverse();
    assert_eq!(findings(&story), findings(&shuffled));
}

/// Neither placements nor schedules vary: an axis over learning rates, and no axis at all.
#[test]
fn studies_of_other_shapes() {
    let mut story = three_seeds();
    story.study.axes = vec![fixture::axis("lr", &["1e-3", "3e-4"])];
    for (arm, value) in story.study.arms.iter_mut().zip(["1e-3", "3e-4"]) {
        arm.name = format!("[lr: {value}]");
        arm.values = [("lr".to_owned(), value.to_owned())].into_iter().collect();
    }
    story.study.reports = vec![Ablation { rows: Vec::new(), columns: vec!["lr".to_owned()] }];
    let found = findings(&story);
    assert_eq!(found.tables.keys().map(String::as_str).collect::<Vec<_>>(), ["ablation", "arms", "budgets"]);
    assert_eq!(found.tables["ablation"].columns[1].label, "3e-4");
    assert!(render(&found, Form::Html).is_ok());
    story.study.axes.clear();
    story.study.reports.clear();
    story.study.claims.clear();
    story.study.arms.truncate(1);
    story.study.arms[0].values.clear();
    story.runs.retain(|run| run.arm == 0);
    let found = findings(&story);
    assert!(found.all_supported() && found.tables.contains_key("arms"));
    assert!(render(&found, Form::Html).is_ok());
}

#[test]
fn other_metrics_than_cross_entropy() {
    let mut story = rich();
    story.study.measures.retain(|measure| measure.metric == Metric::TrainLoss);
    let found = findings(&story);
    assert!(render(&found, Form::Html).is_ok());
    story.study.measures.clear();
    assert!(render(&findings(&story), Form::Markdown).is_ok());
}
