//! `bench`: a step is timed, and plans tell times from then on.

use super::bench::{Bench, TINY};

#[test]
fn a_measured_speed_gives_plans_their_times() {
    let bench = Bench::new(TINY);
    let time = |bench: &Bench| {
        let plan = bench.says(0, &["plan", "study.exp"]);
        plan.lines().find_map(|line| line.trim().strip_prefix("time    ").map(str::to_owned)).expect("a line")
    };
    assert_eq!(time(&bench), "unknown until something of it has run here, or `xrun bench FILE` has measured it");
    let seen = bench.json(0, &["bench", "study.exp", "--steps", "2", "--warmup", "1", "--threads", "1"]);
    let number = |name: &str| seen[name].as_f64().filter(|number| *number > 0.0).unwrap_or_else(|| panic!("{name} of {seen}"));
    for name in ["params", "tokens_per_step", "loss_first", "loss_last", "peak_rss_mb", "flops_per_step", "gemm_gflops"] {
        number(name);
    }
    assert!((number("tokens_per_s") / (1e3 * number("tokens_per_step") / number("median_step_ms")) - 1.0).abs() < 1e-2);
    assert!(time(&bench).starts_with("about ") && bench.store().join("speed.ron").exists());
    // A time is no part of any key.
    let keys = |plan: &serde_json::Value| {
        let nodes = plan["nodes"].as_array().expect("nodes").iter();
        nodes.map(|node| node["key"].clone()).collect::<Vec<_>>()
    };
    let timed = bench.json(0, &["plan", "study.exp", "--format", "json"]);
    std::fs::remove_file(bench.store().join("speed.ron")).expect("it is there");
    assert_eq!(keys(&timed), keys(&bench.json(0, &["plan", "study.exp", "--format", "json"])));
}

#[test]
fn named_shapes_learn_what_they_are_given() {
    let bench = Bench::new(TINY);
    let sides =
        "--d-model 16 --layers 3 --heads 2 --kv-heads 1 --ffn 24 --vocab 300 --seq 16 --batch 2 --steps 6 --warmup 0 --threads 2";
    for (placement, loss, frozen) in [("pre", "ce", "0"), ("post", "ce", "1"), ("pre", "kd", "0")] {
        let mut arguments = vec!["bench", "--placement", placement, "--loss", loss, "--frozen-layers", frozen];
        arguments.extend(sides.split(' '));
        let seen = bench.json(0, &arguments);
        let loss = |name: &str| seen[name].as_f64().expect("a loss");
        assert!(loss("loss_first") > 0.0 && loss("loss_last") > 0.0 && seen["tokens_per_step"] == 32, "{seen}");
        // A width of 16 over 300 tokens: embedding, three layers, and for pre the last norm.
        let layer = 16 * 16 + 2 * 16 * 8 + 16 * 16 + 3 * 16 * 24 + 2 * 16 + 2 * 8;
        assert_eq!(seen["params"], 300 * 16 + 3 * layer + if placement == "pre" { 16 } else { 0 });
    }
    assert!(!bench.store().exists());
    assert_eq!(bench.xrun(&["bench", "--heads", "3"]).status.code(), Some(2));
}
