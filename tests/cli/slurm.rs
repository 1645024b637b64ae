//! `run --on slurm` against programs that stand in for Slurm's: what is submitted, recorded, waited for, and that jobs do what a local run does.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, Instant};

use super::bench::{Bench, TINY};

/// Writes down what it is asked for and puts the tasks into a queue, which is a file of `squeue`'s lines.
const SBATCH: &str = r#"
[ ! -e "$FAKE/limit" ] || [ "$(ls -d "$FAKE"/job/* 2>/dev/null | wc -l)" -lt "$(cat "$FAKE/limit")" ] \
  || { echo 'sbatch: error: AssocMaxSubmitJobLimit' >&2; exit 1; }
id=$(( $(cat "$FAKE/last" 2>/dev/null || echo 40) + 1 )); echo $id > "$FAKE/last"
mkdir -p "$FAKE/job/$id"
tasks=N/A
for argument; do
  case $argument in
    --job-name=*) name=${argument#*=};;
    --array=*)
      ranges=${argument#*=}; tasks=
      for range in $(echo "${ranges%\%*}" | tr , ' '); do tasks="$tasks $(seq "${range%-*}" "${range#*-}")"; done;;
  esac
  echo "$argument" >> "$FAKE/job/$id/arguments"
done
cp "$argument" "$FAKE/job/$id/script"
for task in $tasks; do echo "$id|$task|$name|PENDING|Priority" >> "$FAKE/queue"; done
echo "$id;cluster"
"#;
const SQUEUE: &str = r#"cat "$FAKE/queue" 2>/dev/null || true"#;
const SCANCEL: &str = r#"printf '%s ' "$@" >> "$FAKE/cancelled""#;
const SCONTROL: &str = r#"
case $1 in
  show) echo 'MaxArraySize            = 1001';;
  *) echo "$@" >> "$FAKE/requeued";;
esac
"#;

/// A study with a fork, a teacher and probes, of 25 nodes.
fn study() -> String {
    TINY.replace("seeds    2", "seeds    1")
        .replace("  control joint_long: [post, joint] matched to [post, grow] on active_layer_tokens\n", "")
}

/// A bench with a cluster of its own.
struct Cluster {
    bench: Bench,
    fake: PathBuf,
}

/// What `sbatch` was given.
#[derive(Debug)]
struct Job {
    id: u64,
    arguments: Vec<String>,
    /// `None`: no array.
    tasks: Vec<Option<u32>>,
}

impl Cluster {
    fn new(text: &str) -> Self {
        let bench = Bench::new(text);
        let fake = bench.path().join("fake slurm");
        std::fs::create_dir(&fake).expect("makes");
        for (name, text) in [("sbatch", SBATCH), ("squeue", SQUEUE), ("scancel", SCANCEL), ("scontrol", SCONTROL)] {
            let path = fake.join(name);
            std::fs::write(&path, format!("#!/bin/sh\n{text}")).expect("writes");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).expect("may");
        }
        Self { bench, fake }
    }
    fn surround<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.fake.display()))
            .env("FAKE", &self.fake)
            .env_remove("SLURM_ARRAY_TASK_ID")
            .env_remove("SLURM_ARRAY_JOB_ID")
    }
    fn xrun(&self, arguments: &[&str]) -> Output {
        self.surround(&mut self.bench.command(arguments)).output().expect("xrun runs")
    }
    /// Its standard error; it must have ended with `code`.
    fn told(&self, code: i32, arguments: &[&str]) -> String {
        let output = self.xrun(arguments);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{arguments:?}: {told}");
        told
    }
    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.fake.join(name), text).expect("writes");
    }
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.fake.join(name)).unwrap_or_default()
    }
    fn jobs(&self) -> Vec<Job> {
        let entries = std::fs::read_dir(self.fake.join("job")).into_iter().flatten().flatten();
        let mut ids: Vec<u64> = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
        ids.sort_unstable();
        let queue = self.read("queue");
        let job = |id: u64| {
            let own = queue.lines().filter(|line| line.starts_with(&format!("{id}|")));
            let tasks = own.map(|line| line.split('|').nth(1).and_then(|task| task.parse().ok())).collect();
            Job { id, arguments: self.read(&format!("job/{id}/arguments")).lines().map(str::to_owned).collect(), tasks }
        };
        ids.into_iter().map(job).collect()
    }
    /// Does the task of a job as a node of the cluster would.
    fn task(&self, job: &Job, task: Option<u32>) -> Command {
        let mut command = Command::new("bash");
        command.arg(self.fake.join(format!("job/{}/script", job.id))).env("SLURM_JOB_ID", job.id.to_string());
        self.surround(&mut command);
        if let Some(task) = task {
            // The id of a task is another than that of its array, save for the last.
            command.env("SLURM_ARRAY_TASK_ID", task.to_string()).env("SLURM_ARRAY_JOB_ID", job.id.to_string());
        }
        command
    }
    fn nodes(&self, store: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
        Bench::files(&self.bench.path().join(store).join("nodes"))
    }
}

impl Job {
    fn option(&self, name: &str) -> Option<&str> {
        self.arguments.iter().find_map(|argument| argument.strip_prefix(name)?.strip_prefix('='))
    }
    /// Tasks that must have ended before a task of it: `afterok` and `aftercorr`, jobs by their id, tasks by id and number.
    fn waits_for(&self, task: Option<u32>) -> Vec<(u64, Option<u32>)> {
        let mut all = Vec::new();
        for part in self.option("--dependency").unwrap_or_default().split(',').filter(|part| !part.is_empty()) {
            let (kind, ids) = part.split_once(':').expect("a kind");
            for id in ids.split(':') {
                let (id, other) = id.split_once('_').map_or((id, None), |(id, task)| (id, task.parse().ok()));
                all.push((id.parse().expect("an id"), if kind == "aftercorr" { task } else { other }));
            }
        }
        all
    }
}

#[test]
fn jobs_do_what_a_local_run_does() {
    let local = Bench::new(&study());
    local.says(0, &["run", "study.exp", "--quiet"]);
    let cluster = Cluster::new(&study());
    let store = "it's $(a) störe";
    let submit = ["run", "study.exp", "--on", "slurm", "--store", store, "--cluster", "cluster.sh", "--jobs", "3"];
    std::fs::write(cluster.bench.path().join("cluster.sh"), "#SBATCH --partition=tiny\necho begins\n").expect("writes");
    let told = cluster.told(0, &submit);
    let jobs = cluster.jobs();
    let tasks: usize = jobs.iter().map(|job| job.tasks.len()).sum();
    assert!(told.contains(&format!("{tasks} of {tasks} nodes submitted in {} jobs", jobs.len())), "{told}");
    assert!(jobs.len() * 3 < tasks * 2, "{} calls for {tasks} nodes", jobs.len());
    let mut shown: Vec<String> = jobs.iter().map(|job| format!("{}: {}", job.id, job.arguments.join(" "))).collect();
    let token = jobs[0].option("--job-name").and_then(|name| name.split('.').nth(1)).expect("a token").to_owned();
    shown.iter_mut().for_each(|line| *line = line.replace(&token, "job-TOKEN"));
    insta::assert_snapshot!(shown.join("\n"));

    // Complete and on the disk before the command returned; the plan is a copy, which an edit of the file does not touch.
    let record = cluster.bench.path().join(store).join("slurm").join(&token).join("submission.ron");
    let record = std::fs::read_to_string(record).expect("reads");
    assert!(jobs.iter().all(|job| record.contains(&format!("id: Some({})", job.id))), "{record}");
    assert!(!cluster.nodes(Path::new(store)).keys().any(|_| true));
    let status = String::from_utf8(cluster.xrun(&["status", "study.exp", "--store", store, "--verbose"]).stdout).expect("UTF-8");
    assert!(status.contains("queued") && status.contains("job 41 PENDING (Priority)"), "{status}");
    let again = cluster.told(0, &submit);
    assert!(again.contains("0 of") && again.contains(&format!("{tasks} are in the queue")), "{again}");

    std::fs::write(cluster.bench.path().join("study.exp"), "").expect("writes");
    let mut done: BTreeSet<(u64, Option<u32>)> = BTreeSet::new();
    for job in &jobs {
        for task in job.tasks.iter().copied() {
            for (id, other) in job.waits_for(task) {
                let waited = jobs.iter().filter(|job| job.id == id).flat_map(|job| &job.tasks);
                let mut waited = waited.filter(|task| other.is_none() || **task == other);
                assert!(waited.clone().count() > 0 && waited.all(|task| done.contains(&(id, *task))), "{job:?} waits for {id}");
            }
            let output = cluster.task(job, task).output().expect("bash runs");
            let told = String::from_utf8_lossy(&output.stderr);
            assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(0), b"begins\n".as_slice()), "{told}");
            // Whatever it needs was there: the dependencies say all that matters.
            assert!(told.contains("1 of "), "{told}");
            done.insert((job.id, task));
        }
    }
    assert!(cluster.nodes(Path::new(store)) == Bench::files(&local.store().join("nodes")));
    std::fs::write(cluster.bench.path().join("study.exp"), study()).expect("writes");
    let last = cluster.told(0, &submit);
    assert!(last.contains(&format!("{tasks} were there")) && cluster.jobs().len() == jobs.len(), "{last}");
}

#[test]
fn what_was_cancelled_is_submitted_again_and_waits_for_what_is_left() {
    let cluster = Cluster::new(&study());
    cluster.told(0, &["run", "study.exp", "--on", "slurm"]);
    let jobs = cluster.jobs();
    // The corpus' job was cancelled, one that waited for it is stuck, Slurm has forgotten another; all else waits.
    let queue = cluster.read("queue");
    let (first, second) = (format!("{}|", jobs[0].id), format!("{}|", jobs[1].id));
    let last = format!("{}|", jobs[jobs.len() - 1].id);
    let lines = queue.lines().filter(|line| !line.starts_with(&last)).map(|line| {
        if line.starts_with(&first) {
            line.replace("PENDING|Priority", "CANCELLED|None")
        } else if line.starts_with(&second) {
            line.replace("Priority", "DependencyNeverSatisfied")
        } else {
            line.to_owned()
        }
    });
    cluster.write("queue", &(lines.collect::<Vec<_>>().join("\n") + "\n"));
    let gone = jobs[0].tasks.len() + jobs[1].tasks.len() + jobs[jobs.len() - 1].tasks.len();
    let told = cluster.told(0, &["run", "study.exp", "--on", "slurm"]);
    assert!(told.contains(&format!("{gone} of 25 nodes")), "{told}");
    let again = &cluster.jobs()[jobs.len()..];
    assert_eq!(again.iter().map(|job| job.tasks.len()).sum::<usize>(), gone);
    assert!(
        again.iter().any(|job| job
            .option("--dependency")
            .is_some_and(|after| jobs.iter().any(|old| after.contains(&old.id.to_string()))))
    );
    let told = cluster.told(0, &["cancel", "study.exp"]);
    assert!(told.contains(" tasks cancelled"), "{told}");
    let cancelled = cluster.read("cancelled");
    let cancelled: BTreeSet<&str> = cancelled.split_whitespace().collect();
    assert!(
        !cancelled.contains(jobs[0].id.to_string().as_str()) && cancelled.contains(again[0].id.to_string().as_str()),
        "{cancelled:?}"
    );
    assert!(cluster.told(0, &["cancel", "study.exp", "--study", "another"]).contains("nothing is in the queue"));
}

#[test]
fn a_cluster_that_says_no_half_way_loses_nothing() {
    let cluster = Cluster::new(&study());
    cluster.write("limit", "2");
    let told = cluster.told(1, &["run", "study.exp", "--on", "slurm"]);
    assert!(told.contains("AssocMaxSubmitJobLimit") && told.contains("2 of "), "{told}");
    std::fs::remove_file(cluster.fake.join("limit")).expect("removes");
    let before = cluster.jobs().iter().map(|job| job.tasks.len()).sum::<usize>();
    let told = cluster.told(0, &["run", "study.exp", "--on", "slurm"]);
    assert!(told.contains(&format!("{before} are in the queue already")), "{told}");
}

#[test]
fn without_slurm_nothing_is_written() {
    let cluster = Cluster::new(&study());
    let nothing = cluster.bench.path().join("nothing");
    std::fs::create_dir(&nothing).expect("makes");
    let output = cluster.bench.command(&["run", "study.exp", "--on", "slurm"]).env("PATH", nothing).output().expect("xrun runs");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && told.contains("is Slurm installed"), "{told}");
    assert!(!cluster.bench.store().exists());
    let told = cluster.told(2, &["run", "study.exp", "--cluster", "study.exp"]);
    assert!(told.contains("`--cluster` is for `--on slurm`"), "{told}");
}

/// Told that its time is nearly up, a job saves, goes into the queue again, and ends in the same bytes.
#[test]
fn a_job_whose_time_is_up_goes_on_in_another_turn() {
    let long = study()
        .replace("over joint(steps: 8), grow(phase: 8 steps), grow_frozen(phase: 8 steps)", "over joint(steps: 800)")
        .replace("every 4 steps", "every 400 steps")
        .replace("boundary_rms at every grow and at end", "boundary_rms at end")
        .replace("  claim growth_prefers_post: validation_ce[post, grow] < validation_ce[pre, grow]\n", "");
    let local = Bench::new(&long);
    local.says(0, &["run", "study.exp", "--quiet"]);
    let cluster = Cluster::new(&long);
    cluster.told(0, &["run", "study.exp", "--on", "slurm"]);
    let mut turns = 0;
    for job in cluster.jobs() {
        for task in job.tasks.iter().copied() {
            loop {
                let mut child = cluster.task(&job, task).stderr(std::process::Stdio::null()).spawn().expect("bash runs");
                let began = Instant::now();
                let partial = || {
                    Bench::files(&cluster.bench.store())
                        .keys()
                        .any(|path| path.ends_with("metrics.jsonl") && path.starts_with("work"))
                };
                let ended = loop {
                    if let Some(status) = child.try_wait().expect("waits") {
                        break status;
                    }
                    assert!(began.elapsed() < Duration::from_secs(60), "{job:?} does not end");
                    if turns == 0 && task == Some(1) && partial() {
                        let id = child.id().to_string();
                        assert!(Command::new("kill").args(["-USR1", &id]).status().expect("kill runs").success());
                        turns += 1;
                        break child.wait().expect("ends");
                    }
                    std::thread::sleep(Duration::from_millis(5));
                };
                match ended.code() {
                    Some(0) => break,
                    code => {
                        assert_eq!((code, cluster.read("requeued").trim()), (Some(130), format!("requeue {}_1", job.id).as_str()))
                    }
                }
            }
        }
    }
    assert_eq!(turns, 1);
    assert!(cluster.nodes(Path::new(".xrun")) == Bench::files(&local.store().join("nodes")));
}
