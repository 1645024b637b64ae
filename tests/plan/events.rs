//! What a plan says of each event: its table, as text and for programs.

use std::path::Path;

use xrun::check::check;
use xrun::data::{Reach, gather};
use xrun::plan::{self, Plan, Why};
use xrun::source::{Source, World};

struct Alone;

impl World for Alone {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("no such file".to_owned())
    }
}

/// Grows as copies, freezes, thaws; what a frozen prefix cannot reach; norms that freeze alone; data that rewind, are fresh and are relaid.
const STUDY: &str = "
use std.placements (pre, post)
data tales { generate tales(documents: 60, seed: 1), context 16 tokens, holdout 10%, shard 1_000 tokens }
model tiny { layers 6, block 2 layers, width 8, heads 2, kv 1, ffn swiglu(12) }
training plain { loss cross_entropy, optimizer adamw(lr: 2e-3), lr warmup 4 steps then linear to 0, batch 4 sequences }
schedule much {
  start with 1 block
  at step 5: grow block copying last, freeze prefix
  at step 9: grow 1 layer at bottom as identity, thaw prefix, freeze norms, rewind data
  at step 12: grow 1 layer after layer 3, freeze layers 1..2, reset optimizer, restart lr, fresh data
  at step 15: drop 2 layers, thaw all, set context 8 tokens, set batch 2 sequences
  end at step 20
}
study s {
  data tales, model tiny, training plain, schedule much
  vary training.lr over warmup 4 steps then linear to 0, constant
  vary placement over pre, post
  probe boundary_rms at step 17
}
";

fn plan() -> Plan {
    let checked = check(&Alone, Source::new("events.exp", STUDY));
    assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    let study = &checked.studies[0];
    plan::build(study, &gather(study, Path::new(""), &Reach::whole())).expect("a plan")
}

#[test]
fn an_event_has_its_table() {
    let text = plan::text::text(&plan(), &|_| Why::New, false);
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    let schedules = text.split("\nschedules\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("schedules");
    insta::assert_snapshot!(schedules);
}

/// For each phase of a run, also where a probe cuts one in two: nothing happens there.
#[test]
fn the_tables_of_a_run_are_there_for_programs() {
    let plan = plan();
    let json = serde_json::to_value(plan::json::json(&plan, &|_| Why::New)).expect("JSON");
    let run = &plan.runs[0];
    let of = |key: &plan::Key| {
        let node = json["nodes"].as_array().expect("nodes").iter().find(|node| node["key"] == key.0.as_str()).expect("a node");
        node["transition"].clone()
    };
    let tables: Vec<_> = run.phases.iter().map(of).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&tables[2]).expect("JSON"));
    let words = |at: usize, of: &dyn Fn(&serde_json::Value) -> String| {
        tables[at]["rows"].as_array().expect("rows").iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(words(0, &|row| row["value"].to_string()).iter().filter(|value| *value != "\"new\"").count(), 0);
    // The probe's cut: everything goes on.
    assert_eq!(tables.len(), 6);
    assert_eq!(tables[5]["actions"], serde_json::json!([]));
    assert_eq!(tables[5]["data"]["reading"], "goes_on");
    assert!(words(5, &|row| row["moments"].to_string()).iter().all(|moments| moments == "\"kept\""));
    assert!(words(5, &|row| row["updates"].to_string()).iter().all(|updates| ["2", "5"].contains(&updates.as_str())));
    let others = json["nodes"].as_array().expect("nodes").iter().filter(|node| node["kind"] != "phase");
    assert!(others.into_iter().all(|node| node["transition"].is_null()));
    // The plan of another machine carries them.
    let written = ron::to_string(&plan).expect("RON");
    assert_eq!(ron::from_str::<Plan>(&written).expect("the same plan"), plan);
}
