//! What Slurm is handed: a script for each job, and the options that hold jobs together.
//!
//! Owns quoting: names and paths are characters here. The script asks for sizes, the user's profile after it: the later line of two counts.
//! What makes the jobs of a submission one work (name, array, dependencies) is on the command line, which a profile cannot change.

use std::fmt::Write;
use std::path::Path;

use super::arrays::{Array, Job, Place};
use super::commands::SlurmError;

/// A batch is worked on in two shards, by a thread each (`tensor::fused`).
const THREADS: usize = 2;
/// So long before its time is up a job is told to save. Slurm may say it up to a minute sooner, sbatch(1). Assumption: a checkpoint is
/// written in less.
const NOTICE_SECONDS: u32 = 120;

/// What all scripts of a submission share.
pub struct Common<'a> {
    /// The program, as a path that the nodes of the cluster know.
    pub program: &'a Path,
    /// The folder of the submission, likewise.
    pub folder: &'a Path,
    /// Whether a node trains on a GPU.
    pub gpu: bool,
    /// Lines of the user's own: `#SBATCH` options, and what a shell should do before xrun starts.
    pub profile: &'a str,
    /// Tasks of an array at a time.
    pub at_once: Option<usize>,
}

/// Its file.
pub fn file(job: usize) -> String {
    format!("{job}.sh")
}

/// The name under which Slurm shows a job: study, folder of the submission, place in it.
pub fn name(study: &str, submission: &str, job: usize) -> String {
    let plain = |letter: char| if letter.is_ascii_alphanumeric() || "-_".contains(letter) { letter } else { '_' };
    format!("{}.{submission}.{job}", study.chars().map(plain).collect::<String>())
}

/// Folder of the submission and place in it, if that is a name of ours.
pub fn place(name: &str) -> Option<(&str, usize)> {
    let mut parts = name.rsplitn(3, '.');
    let (job, submission) = (parts.next()?.parse().ok()?, parts.next()?);
    parts.next().map(|_| (submission, job))
}

impl Common<'_> {
    /// The script of the job at that place.
    pub fn script(&self, job: usize, array: &Array) -> Result<String, SlurmError> {
        let quoted = |path: &Path| path.to_str().map(quoted).ok_or_else(|| SlurmError::Path(path.into()));
        let (shell, profile) = match self.profile.split_once('\n') {
            Some((first, rest)) if first.starts_with("#!") => (first, rest),
            _ => ("#!/bin/bash", self.profile),
        };
        let log = if array.tasks.len() > 1 { format!("{job}_%a.log") } else { format!("{job}.log") };
        let mut text = format!("{shell}\n#SBATCH --output={log}\n#SBATCH --open-mode=append\n");
        text.push_str("#SBATCH --requeue\n");
        let mut option = |line: std::fmt::Arguments<'_>| {
            // Writing to a text does not fail.
            let _ = writeln!(text, "#SBATCH {line}");
        };
        option(format_args!("--signal=B:USR1@{NOTICE_SECONDS}"));
        option(format_args!("--cpus-per-task={THREADS}"));
        if self.gpu {
            option(format_args!("--gres=gpu:1"));
        }
        if let Some(mebibytes) = array.size.mebibytes() {
            option(format_args!("--mem={mebibytes}M"));
        }
        if let Some(minutes) = array.size.minutes() {
            option(format_args!("--time={minutes}"));
        }
        if !profile.trim().is_empty() {
            text.push_str(profile.trim_end());
            text.push('\n');
        }
        // In place of the shell, so that signals reach it.
        let _ = writeln!(text, "exec {} job {} {job}", quoted(self.program)?, quoted(self.folder)?);
        Ok(text)
    }
    /// Options of `sbatch` for an array, where `id` knows what was submitted before.
    pub fn options(&self, name: &str, array: &Array, id: &dyn Fn(Job) -> Option<u64>) -> Vec<String> {
        let mut options = vec![format!("--job-name={name}")];
        if array.tasks.len() > 1 {
            let at_once = self.at_once.map_or_else(String::new, |count| format!("%{count}"));
            options.push(format!("--array={}{at_once}", ranges(array.tasks.keys().copied())));
        }
        let text = |Place { job, task }: &Place| {
            let id = id(*job)?;
            Some(task.map_or_else(|| id.to_string(), |task| format!("{id}_{task}")))
        };
        let after: Vec<String> = array.after.iter().filter_map(text).collect();
        let pairs = array.pairs.and_then(id).map(|id| format!("aftercorr:{id}"));
        let after = (!after.is_empty()).then(|| format!("afterok:{}", after.join(":")));
        let dependencies: Vec<String> = after.into_iter().chain(pairs).collect();
        if !dependencies.is_empty() {
            options.push(format!("--dependency={}", dependencies.join(",")));
            options.push("--kill-on-invalid-dep=yes".to_owned());
        }
        options
    }
}

/// `0-3,5`, as `--array` has it; numbers ascend.
fn ranges(numbers: impl Iterator<Item = u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for number in numbers {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == number => *last = number,
            _ => ranges.push((number, number)),
        }
    }
    let text = |(first, last): &(u32, u32)| if first == last { first.to_string() } else { format!("{first}-{last}") };
    ranges.iter().map(text).collect::<Vec<_>>().join(",")
}

/// As one word of a POSIX shell.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Cost, Key};
    use crate::run::slurm::size::Size;

    fn array(tasks: &[u32], cost: Cost) -> Array {
        let tasks = tasks.iter().map(|task| (*task, Key(format!("k{task}")))).collect();
        let after = [Place { job: Job::New(0), task: None }, Place { job: Job::Queued(7), task: Some(3) }].into();
        Array { size: Size::of(&cost), tasks, after, pairs: Some(Job::New(1)) }
    }

    #[test]
    fn a_script_and_its_options() {
        let common = Common {
            program: Path::new("/opt/it's here/xrun"),
            folder: Path::new("/store/$(date)/slurm/job-a"),
            gpu: true,
            profile: "#!/bin/bash -l\n#SBATCH --partition=long\n\nmodule load cuda\n\n",
            at_once: Some(4),
        };
        let cost = Cost { memory: Some(3 << 30), seconds: Some(3_000.0), ..Cost::nothing() };
        let array = array(&[0, 1, 2, 5, 7, 8], cost);
        let script = common.script(2, &array).expect("Unicode");
        let id = |job| Some(if job == Job::Queued(7) { 7 } else { 100 });
        let options = common.options(&name("a study", "job-a", 2), &array, &id).join("\n");
        insta::assert_snapshot!(format!("{options}\n\n{script}"), @r"
        --job-name=a_study.job-a.2
        --array=0-2,5,7-8%4
        --dependency=afterok:7_3:100,aftercorr:100
        --kill-on-invalid-dep=yes

        #!/bin/bash -l
        #SBATCH --output=2_%a.log
        #SBATCH --open-mode=append
        #SBATCH --requeue
        #SBATCH --signal=B:USR1@120
        #SBATCH --cpus-per-task=2
        #SBATCH --gres=gpu:1
        #SBATCH --mem=6656M
        #SBATCH --time=150
        #SBATCH --partition=long

        module load cuda
        exec '/opt/it'\''s here/xrun' job '/store/$(date)/slurm/job-a' 2
        ");
    }

    #[test]
    fn one_task_is_a_job_and_what_is_not_known_is_not_asked_for() {
        let common = Common { program: Path::new("xrun"), folder: Path::new("f"), gpu: false, profile: "", at_once: Some(4) };
        let array = Array { after: [].into(), pairs: None, ..array(&[0], Cost::nothing()) };
        let script = common.script(0, &array).expect("Unicode");
        insta::assert_snapshot!(script, @r"
        #!/bin/bash
        #SBATCH --output=0.log
        #SBATCH --open-mode=append
        #SBATCH --requeue
        #SBATCH --signal=B:USR1@120
        #SBATCH --cpus-per-task=2
        exec 'xrun' job 'f' 0
        ");
        assert_eq!(common.options("n", &array, &|_| None), ["--job-name=n"]);
    }

    #[test]
    fn names_go_there_and_back() {
        let told = name("e.g. ünits;$(x)", "job-Ab1", 12);
        assert!(told.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte)), "{told}");
        assert_eq!(place(&told), Some(("job-Ab1", 12)));
        assert_eq!((place("sleep"), place("a.b"), place("my.job.x")), (None, None, None));
    }

    /// A shell of this machine reads back what was quoted.
    #[cfg(unix)]
    #[test]
    fn a_shell_sees_characters() {
        let hostile = "a'b\"c $(exit 3) `exit 4` \\ ; \n é";
        let output = std::process::Command::new("sh").arg("-c").arg(format!("printf %s {}", quoted(hostile))).output();
        assert_eq!(output.expect("sh runs").stdout, hostile.as_bytes());
    }
}
