//! A machine that fails: full disks, stores that cannot be written, files that are lost or changed, odd paths, clocks that jump. Each is said, and loses
//! nothing.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime};

use super::bench::{Bench, SMALL, TINY};

type Files = BTreeMap<PathBuf, Vec<u8>>;

/// What is done to a file.
type Harm<'a> = &'a dyn Fn(&Path);

/// As [`TINY`], without a teacher.
fn plain() -> String {
    TINY.replace("training distilled\n  vary", "training base\n  vary")
}

/// The nodes of a store that nothing happened to.
fn whole(study: &str) -> Files {
    let bench = Bench::new(study);
    bench.says(0, &["run", "study.exp", "--quiet", "--jobs", "2"]);
    Bench::files(&bench.store().join("nodes"))
}

/// Every file of `some` is in `all`, with the same bytes.
fn belong(some: &Files, all: &Files) -> bool {
    some.iter().all(|(path, bytes)| all.get(path) == Some(bytes))
}

/// A shell that may mount what nobody else sees, where the system lets users do so.
fn mounting(bench: &Bench, script: &str) -> Option<Output> {
    let shell = |script: &str| {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", script]).current_dir(bench.path());
        command.env("XRUN", env!("CARGO_BIN_EXE_xrun")).env_remove("XRUN_STORE").output().ok()
    };
    let may = shell("mkdir -p may && mount -t tmpfs tmpfs may").is_some_and(|output| output.status.success());
    if !may {
        eprintln!("skipped: nothing can be mounted here");
        return None;
    }
    shell(script)
}

fn read(bench: &Bench, name: &str) -> String {
    std::fs::read_to_string(bench.path().join(name)).unwrap_or_default()
}

#[test]
fn a_disk_that_is_full_is_said_and_what_is_missing_is_made_later() {
    let expected = whole(&plain());
    for size in [16, 120, 300] {
        let bench = Bench::new(&plain());
        let script = format!(
            "mkdir store && mount -t tmpfs -o size=64m tmpfs store
             (until [ -d store/nodes ]; do :; done; head -c $(((65536 - {size}) * 1024)) /dev/zero > store/other) &
             \"$XRUN\" run study.exp --store store 2> told; echo $? > code
             cp -r store/nodes before
             rm store/other
             \"$XRUN\" run study.exp --store store --quiet 2> again || exit 1
             cp -r store/nodes after; ls store/failures > failures"
        );
        let Some(output) = mounting(&bench, &script) else { return };
        let told = read(&bench, "told");
        assert!(output.status.success(), "{size}: {output:?}\n{}", read(&bench, "again"));
        assert_eq!(read(&bench, "code"), "1\n", "{size} KiB: {told}");
        assert!(told.contains("FAILED   ") && told.contains("No space left on device"), "{size}: {told}");
        let before = Bench::files(&bench.path().join("before"));
        assert!(belong(&before, &expected), "{size}");
        assert!(before.len() < expected.len(), "{size}");
        assert!(Bench::files(&bench.path().join("after")) == expected, "{size}");
        assert_eq!(read(&bench, "failures"), "", "{size}");
    }
}

#[test]
fn a_disk_that_is_too_small_is_refused_before_anything_begins() {
    let bench = Bench::new(&plain());
    let script = "mkdir store && mount -t tmpfs -o size=16k tmpfs store
        \"$XRUN\" run study.exp --store store 2> told; echo $? > code; ls -A store > left";
    if mounting(&bench, script).is_some() {
        let told = read(&bench, "told");
        assert!(told.contains("`store` has 16.0 KiB left: nothing was begun"), "{told}");
        assert_eq!((read(&bench, "code").as_str(), read(&bench, "left").as_str()), ("1\n", ""), "{told}");
    }
}

#[test]
fn a_store_that_cannot_be_written_is_read_and_what_is_missing_in_it_refused() {
    let bench = Bench::new(&plain());
    bench.says(0, &["run", "study.exp", "--quiet", "--arm", "[pre, joint]"]);
    let before = Bench::files(&bench.store());
    let script = "mount --bind .xrun .xrun && mount -o remount,ro,bind .xrun || exit 9
        for verb in plan status report; do \"$XRUN\" $verb study.exp > $verb 2>&1 || exit 8; done
        \"$XRUN\" run study.exp --arm '[pre, joint]' > done 2>&1; echo $? > code
        \"$XRUN\" run study.exp > told 2>&1; echo $? >> code";
    let Some(output) = mounting(&bench, script) else { return };
    if output.status.code() == Some(9) {
        return eprintln!("skipped: nothing can be mounted read-only here");
    }
    assert!(output.status.success(), "{output:?}");
    assert!(read(&bench, "report").contains("2 of 14 runs finished") && read(&bench, "plan").contains(": new"));
    let (found, told) = (read(&bench, "done"), read(&bench, "told"));
    assert_eq!(read(&bench, "code"), "0\n1\n", "{found}\n{told}");
    assert!(found.contains("0 of ") && told.contains("Read-only file system") && told.contains(".xrun"), "{found}\n{told}");
    assert!(Bench::files(&bench.store()) == before);
    bench.says(0, &["run", "study.exp", "--quiet"]);
    assert!(Bench::files(&bench.store().join("nodes")) == whole(&plain()));
}

#[test]
fn files_that_are_lost_or_changed_are_made_anew_and_nothing_else() {
    let bench = Bench::new(&plain());
    bench.says(0, &["run", "study.exp", "--quiet", "--jobs", "2"]);
    let nodes = bench.store().join("nodes");
    let before = Bench::files(&nodes);
    let last = |name: &str| before.keys().rfind(|path| path.ends_with(name)).expect("a file");
    let flipped = |path: &Path| {
        let mut bytes = std::fs::read(path).expect("reads");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 4;
        std::fs::write(path, bytes).expect("writes");
    };
    let cut = |path: &Path| File::options().write(true).open(path).and_then(|file| file.set_len(1)).expect("cuts");
    let removed = |path: &Path| std::fs::remove_file(path).expect("removes");
    let harms: [(&str, Harm<'_>); 6] = [
        ("checkpoint.safetensors", &flipped),
        ("checkpoint.safetensors", &removed),
        ("metrics.jsonl", &cut),
        ("probe.json", &removed),
        ("record.ron", &removed),
        ("record.ron", &cut),
    ];
    for (name, harm) in harms {
        let path = last(name);
        harm(&nodes.join(path));
        let plan = bench.says(0, &["plan", "study.exp"]);
        assert!(plan.contains("\nto do\n  1 node: damaged: "), "{name}: {plan}");
        let output = bench.xrun(&["run", "study.exp"]);
        let told = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{name}: {told}");
        assert!(told.contains(": damaged: ") && told.contains("\n1 of "), "{name}: {told}");
        assert!(Bench::files(&nodes) == before, "{name}");
    }
}

#[test]
fn paths_are_just_characters() {
    let expected = whole(SMALL);
    let names = ["a b", "größer — 模型", "$(touch x);`y`'\"&", "[a]*?{b}", "-rf", "line\nbreak"];
    let bench = Bench::new(SMALL);
    for name in names {
        let folder = bench.path().join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let (file, store) = (format!("./{name}/{name}.exp"), format!("./{name}/store of {name}"));
        std::fs::copy(bench.path().join("study.exp"), bench.path().join(&file)).expect("copies");
        bench.says(0, &["run", &file, "--store", &store, "--quiet", "--jobs", "2"]);
        assert!(Bench::files(&bench.path().join(&store).join("nodes")) == expected, "{name}");
        assert!(bench.says(0, &["report", &file, "--store", &store]).contains("1 of 1 runs finished"), "{name}");
        assert!(bench.says(0, &["status", &file, "--store", &store]).contains("phase"), "{name}");
        let mut left: Vec<_> = std::fs::read_dir(&folder).expect("lists").flatten().map(|entry| entry.file_name()).collect();
        left.sort();
        let mut wanted = [format!("{name}.exp"), format!("store of {name}")];
        wanted.sort();
        assert_eq!(left, wanted.map(std::ffi::OsString::from), "{name}");
    }
}

/// Nodes in the store.
fn done(bench: &Bench) -> usize {
    std::fs::read_dir(bench.store().join("nodes")).map_or(0, Iterator::count)
}

/// Every file of a folder is from another time.
fn shift(folder: &Path, time: SystemTime) {
    for name in Bench::files(folder).keys() {
        File::options().append(true).open(folder.join(name)).and_then(|file| file.set_modified(time)).expect("a time");
    }
}

#[test]
fn clocks_that_jump_say_nothing() {
    let study = plain();
    let bench = Bench::new(&study);
    let years = |years: u64| Duration::from_secs(years * 365 * 86_400);
    let now = SystemTime::now();
    let mut began = 0;
    // Killed again and again, each time under another clock.
    for time in [now + years(30), now - years(30), now + years(1)] {
        let mut child = bench.command(&["run", "study.exp", "--quiet"]).spawn().expect("starts");
        let was = std::time::Instant::now();
        while done(&bench) < began + 3 && was.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        child.kill().expect("kills");
        child.wait().expect("ends");
        shift(&bench.store(), time);
        began = done(&bench);
    }
    bench.says(0, &["run", "study.exp", "--quiet"]);
    assert!(Bench::files(&bench.store().join("nodes")) == whole(&study));
    shift(&bench.store(), now + years(30));
    assert!(bench.says(0, &["plan", "study.exp"]).contains("nothing: every node is in the store"));
    let again = bench.xrun(&["run", "study.exp"]);
    assert!(
        String::from_utf8_lossy(&again.stderr).contains("\n0 of ") || String::from_utf8_lossy(&again.stderr).starts_with("0 of ")
    );
}
