//! The study of 2608.13156 as it stands in `experiments`, planned with neither its text nor its teacher at hand.

use std::path::Path;
use std::time::{Duration, Instant};

use xrun::check::check;
use xrun::data::{Reach, gather};
use xrun::plan::{Plan, Why, build, text};
use xrun::source::{Source, World};

struct Alone;

impl World for Alone {
    fn read(&self, _: &str, _: &str) -> Result<Source, String> {
        Err("it stands alone".to_owned())
    }
}

/// The plan of a study of that file.
fn plan(name: &str) -> Plan {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments/100_placement_by_curriculum_full.exp");
    let checked = check(&Alone, Source::new("100.exp", std::fs::read_to_string(path).expect("reads")));
    assert!(checked.problems.is_empty(), "{}", checked.problems.render(&checked.sources, false));
    let study = checked.studies.iter().find(|study| study.name == name).expect("in the file");
    build(study, &gather(study, Path::new("nowhere"), &Reach::whole())).expect("a plan")
}

/// The budget table of the paper, its controls, FLOPs with and without the head and those of the teacher, and what is shared.
#[test]
fn the_full_study_is_planned_to_the_digit() {
    let began = Instant::now();
    let plan = plan("paper");
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    let said = text::text(&plan, &|_| Why::New, false);
    // Memory, disk and time are estimates, and have tests of their own.
    let paragraphs = said.split("\n\n").filter(|paragraph| {
        ["arms", "FLOPs", "controls", "sharing", "teachers"].iter().any(|heading| paragraph.starts_with(heading))
    });
    insta::assert_snapshot!(paragraphs.collect::<Vec<_>>().join("\n\n"));
}

/// Phases trained once and the teacher heard once, against every arm on its own with the teacher beside it: 2.7 times fewer FLOPs.
#[test]
fn sharing_and_the_cache_save_nearly_two_thirds() {
    let totals = plan("paper").totals;
    let (planned, alone) = (totals.flops_planned.expect("known"), totals.flops_if_unshared.expect("known"));
    // By hand, in units of 1e18. A layer has 192,937,984 elements in its matrices, a head 622,329,856; a sequence 972 tokens; a student costs
    // 6 per element and token where it learns and reaches down, 2 where it only runs; the teacher 2.
    let (layer, head, teacher_layer) = (192_937_984.0, 622_329_856.0, 192_937_984.0);
    let (phase, length, heads) = (3.11e9, 62_200.0 / 64.0, 4096.0);
    let run = |elements: f64, layers: f64, passes: f64| phase * (2.0 * elements + 2.0 * length * heads) * layers * passes / 1e18;
    let heads_of = |phases: f64| phases * phase * 6.0 * head / 1e18;
    let joint = run(layer, 9.0, 3.0) + heads_of(1.0);
    let single = run(layer, 3.0, 3.0) + heads_of(1.0);
    let grow = run(layer, 18.0, 3.0) + heads_of(3.0);
    // What is frozen runs forward: 3 of 6 layers, then 6 of 9.
    let frozen = run(layer, 9.0, 3.0) + run(layer, 9.0, 1.0) + heads_of(3.0);
    let teacher = run(teacher_layer, 36.0, 1.0) + phase * 2.0 * head / 1e18;
    let students = 2.0 * (joint + single + grow + frozen) + 2.0 * joint + 3.0 * joint;
    let by_hand = students + teacher * (2.0 * (1.0 + 1.0 + 3.0 + 3.0) + 2.0 + 3.0);
    assert!((alone / 1e18 / by_hand - 1.0).abs() < 0.01, "{} against {by_hand}", alone / 1e18);
    // Shared: single and the first phase of frozen are in grow; the long controls have the joint phase and one more in common.
    let shared = 2.0 * (joint + grow + frozen - single) + 2.0 * joint + 3.0 * teacher;
    assert!((planned / 1e18 / shared - 1.0).abs() < 0.01, "{} against {shared}", planned / 1e18);
    assert!((2.6..2.8).contains(&(alone / planned)), "{}", alone / planned);
}

/// What a referee would ask for costs what its controls say.
#[test]
fn the_arms_that_the_paper_lacks_are_priced() {
    let plan = plan("referee");
    let run = |name: &str| plan.runs.iter().find(|run| run.name == name).unwrap_or_else(|| panic!("no arm {name}"));
    assert_eq!((run("pre_joint_long").steps, run("joint_replay").steps), (100_000, 100_000));
    assert_eq!(run("joint_replay").unique_tokens, run("[post, joint]").unique_tokens);
    // With the head counted, the control is an eighth longer.
    assert!((110_000..116_000).contains(&run("flops_matched").steps), "{}", run("flops_matched").steps);
}
