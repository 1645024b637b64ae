//! The store: one folder that holds what has been computed, by key.
//!
//! ```text
//! nodes/KEY/       a finished node: record.ron and the files that it names; never written again
//! work/KEY/N/      a node under way, as its N-th holder left it; kept between attempts
//! work/KEY/N.lock  who works on it ([`super::lock`])
//! failures/KEY.ron why the last attempt ended badly
//! events/RUN.jsonl what happened in a run ([`super::event`]), wall-clock and all: no part of any result
//! history.jsonl    what was finished, from what and in what time ([`super::history`]): of this machine, and no part of any result
//! speed.ron        how fast this machine trains, as `xrun bench` has measured it
//! slurm/           what was submitted to Slurm ([`super::slurm`])
//! ```
//!
//! Invariant: `nodes/KEY` appears by a rename after its files are on the disk, so that it is whole or absent. What is read is checked
//! against the hashes of its record; what does not agree is damaged and counts as absent. A holder that has lost its lock changes nothing
//! that is another's: each works in a folder of its own, and a node that is whole is never replaced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::history;
use super::lock::{self, Holder, Lock, Observer, Taken};
use super::record::{FailureRecord, Record, SpeedRecord, VERSION};
use crate::plan::node::Key;

/// Of a [`Key`].
const KEY_DIGITS: usize = 32;
/// Names what a finished node consists of.
const RECORD: &str = "record.ron";
const HISTORY: &str = "history.jsonl";
/// What `xrun bench` has measured.
const SPEED: &str = "speed.ron";

/// Why the store cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk.
    #[error("{context} `{}`: {source}", path.display())]
    Io {
        /// What was being done.
        context: &'static str,
        /// Which file or folder.
        path: PathBuf,
        /// Why it failed.
        source: std::io::Error,
    },
    /// A record cannot be written.
    #[error("cannot write the record of {key}: {reason}")]
    Record {
        /// Whose.
        key: String,
        /// Why.
        reason: String,
    },
}

/// What the store knows of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// Finished, and its files are as its record says.
    Finished(Record),
    /// There is something, but it is not to be trusted; says why.
    Damaged(String),
    /// Nothing.
    Absent,
}

/// How far a node is, at a glance: nothing is hashed.
#[derive(Debug, Clone, PartialEq)]
pub enum Standing {
    /// Its record is there.
    Done,
    /// Some process works on it.
    Running(Holder),
    /// The last attempt ended badly.
    Failed(FailureRecord),
    /// An attempt was interrupted; the next one goes on from there.
    Begun,
    /// Nothing is there.
    Missing,
}

/// A folder with results.
#[derive(Debug, Clone)]
pub struct Store {
    root: PathBuf,
}

/// How finishing a node ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// It is in the store.
    Now,
    /// Another had taken over: what was made here is dropped.
    ByAnother,
}

impl Store {
    /// The store in `root`, which need not exist; nothing is written.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }
    /// The same by a path that does not depend on where this process is.
    pub fn absolute(&self) -> Result<Self, StoreError> {
        std::path::absolute(&self.root).map(Self::at).map_err(io("cannot tell the path of", &self.root))
    }
    /// Makes the folders, private to the user.
    pub fn create(&self) -> Result<(), StoreError> {
        let is_new = !self.root.exists();
        for folder in ["nodes", "work", "failures"] {
            let path = self.root.join(folder);
            fs::create_dir_all(&path).map_err(io("cannot create", &path))?;
        }
        #[cfg(unix)]
        if is_new {
            use std::os::unix::fs::PermissionsExt;
            fs::set_permissions(&self.root, fs::Permissions::from_mode(0o700)).map_err(io("cannot make private", &self.root))?;
        }
        Ok(())
    }
    /// Where it is.
    pub fn root(&self) -> &Path {
        &self.root
    }
    /// The folder of the streams of events.
    pub fn events(&self) -> PathBuf {
        self.root.join("events")
    }
    /// The folder of a finished node.
    pub fn node(&self, key: &Key) -> PathBuf {
        self.root.join("nodes").join(&key.0)
    }
    /// The folder of a node under way, as its last holder knows it; it need not exist.
    pub fn work(&self, key: &Key) -> PathBuf {
        let at = self.attempts(key);
        let last = numbered(&at).pop().unwrap_or(0);
        at.join(last.to_string())
    }
    /// Where it is written down what was submitted to Slurm.
    pub fn slurm(&self) -> PathBuf {
        self.root.join("slurm")
    }
    /// Where the attempts at a node lie, and their locks.
    fn attempts(&self, key: &Key) -> PathBuf {
        self.root.join("work").join(&key.0)
    }
    /// Whether a node seems finished: its record is there. For plans; whoever reads a node asks for its [`Store::state`].
    pub fn has(&self, key: &Key) -> bool {
        self.node(key).join(RECORD).is_file()
    }
    /// What is written of a node, its files not looked at; the reason where that is not to be trusted, `None` where there is no such node.
    pub fn recorded(&self, key: &Key) -> Option<Result<Record, String>> {
        self.has(key).then(|| self.record(key))
    }
    /// How far a node is. For people; nothing is written.
    pub fn standing(&self, key: &Key) -> Standing {
        if self.has(key) {
            Standing::Done
        } else if let Some(holder) = lock::holder(&self.attempts(key)) {
            Standing::Running(holder)
        } else if let Some(failure) = self.failure(key) {
            Standing::Failed(failure)
        } else if !numbered(&self.attempts(key)).is_empty() {
            Standing::Begun
        } else {
            Standing::Missing
        }
    }
    /// A file of a finished node as it was written, for readers of a single file; the reason where it is damaged, `None` where there is no such node.
    pub fn read(&self, key: &Key, file: &str) -> Option<Result<Vec<u8>, String>> {
        let folder = self.node(key);
        folder.exists().then(|| {
            let record = self.record(key)?;
            let expected = record.files.get(file).ok_or_else(|| format!("its record has no `{file}`"))?;
            let bytes = fs::read(folder.join(file)).map_err(|error| format!("`{file}`: {error}"))?;
            let whole = blake3::hash(&bytes).to_hex().as_str() == expected;
            whole.then_some(bytes).ok_or_else(|| format!("`{file}` is not what was written"))
        })
    }
    /// What the store knows of a node, every file hashed anew.
    pub fn state(&self, key: &Key) -> State {
        self.looked_at(key, |_| true)
    }
    /// The same at a glance, for plans: a file that is older than its record is not hashed, it only has to be there.
    pub fn glance(&self, key: &Key) -> State {
        let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).ok();
        let record = written(&self.node(key).join(RECORD));
        self.looked_at(key, |path| written(path).is_none_or(|at| record.is_none_or(|record| at >= record)))
    }
    fn looked_at(&self, key: &Key, closely: impl Fn(&Path) -> bool) -> State {
        let folder = self.node(key);
        if !folder.exists() {
            return State::Absent;
        }
        let record = match self.record(key) {
            Ok(record) => record,
            Err(reason) => return State::Damaged(reason),
        };
        for (name, expected) in &record.files {
            let path = folder.join(name);
            if closely(&path) {
                match hash(&path) {
                    Ok(found) if found == *expected => {}
                    Ok(_) => return State::Damaged(format!("`{name}` is not what was written")),
                    Err(error) => return State::Damaged(format!("`{name}`: {error}")),
                }
            }
        }
        State::Finished(record)
    }
    fn record(&self, key: &Key) -> Result<Record, String> {
        let text = fs::read_to_string(self.node(key).join(RECORD)).map_err(|error| format!("its record: {error}"))?;
        let record: Record = ron::from_str(&text).map_err(|error| format!("its record: {error}"))?;
        if record.version != VERSION {
            return Err(format!("its record has version {}, this xrun writes {VERSION}", record.version));
        }
        if record.key != key.0 || record.seal != record.seal() {
            return Err("its record is not what was written".into());
        }
        Ok(record)
    }
    /// Takes the lock of a node, unless another process or thread holds it.
    pub fn lock(&self, key: &Key, observer: &Observer) -> Result<Taken, StoreError> {
        let path = self.attempts(key);
        fs::create_dir_all(&path).map_err(io("cannot create", &path))?;
        match Lock::take(&path, observer) {
            // Whoever has just finished the node took the folder away.
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Taken::Held(None)),
            taken => taken.map_err(io("cannot lock", &path)),
        }
    }
    /// The work folder of a holder, with what the attempt before left; half-written files that it never named are gone.
    pub fn begin(&self, key: &Key, lock: &Lock) -> Result<PathBuf, StoreError> {
        let at = self.attempts(key);
        let own = at.join(lock.number().to_string());
        if let Some(last) = numbered(&at).pop() {
            let left = at.join(last.to_string());
            if lock.after_silence() {
                // Its holder may wake up and write on: its files stay its own. A copy that is not whole has no number.
                let copy = at.join("copy");
                let _ = fs::remove_dir_all(&copy);
                copy_files(&left, &copy).and_then(|()| fs::rename(&copy, &own)).map_err(io("cannot take over", &left))?;
            } else {
                fs::rename(&left, &own).map_err(io("cannot take over", &left))?;
            }
        }
        fs::create_dir_all(&own).map_err(io("cannot create", &own))?;
        for entry in fs::read_dir(&own).map_err(io("cannot list", &own))?.flatten() {
            if is_temporary(&entry.file_name().to_string_lossy()) {
                fs::remove_file(entry.path()).map_err(io("cannot remove", &own))?;
            }
        }
        let failure = self.failure_path(key);
        if failure.exists() {
            fs::remove_file(&failure).map_err(io("cannot remove", &failure))?;
        }
        Ok(own)
    }
    /// Seals the work folder of a holder and moves it among the finished nodes, unless another has taken over. A damaged node of the same
    /// key gives way, a whole one never.
    pub fn finish(&self, key: &Key, lock: &Lock, kind: &str, counts: BTreeMap<String, u64>) -> Result<Published, StoreError> {
        let at = self.attempts(key);
        let work = at.join(lock.number().to_string());
        match self.seal(key, &work, kind, counts) {
            // Whoever took over has finished, and took the folder away.
            Err(_) if !lock.is_ours() => return Ok(Published::ByAnother),
            sealed => sealed?,
        }
        if !lock.is_ours() {
            return Ok(Published::ByAnother);
        }
        let node = self.node(key);
        match self.state(key) {
            State::Finished(_) => return Ok(Published::ByAnother),
            State::Damaged(_) => {
                let away = at.join("damaged");
                let _ = fs::remove_dir_all(&away);
                fs::rename(&node, &away).map_err(io("cannot remove the damaged", &node))?;
            }
            State::Absent => {}
        }
        match fs::rename(&work, &node) {
            // A folder is never moved over another that has files.
            Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
                return Ok(Published::ByAnother);
            }
            moved => moved.map_err(io("cannot move into place", &node))?,
        }
        sync_folder(&self.root.join("nodes"))?;
        self.tidy(key);
        Ok(Published::Now)
    }
    fn seal(&self, key: &Key, work: &Path, kind: &str, counts: BTreeMap<String, u64>) -> Result<(), StoreError> {
        let mut files = BTreeMap::new();
        for entry in fs::read_dir(work).map_err(io("cannot list", work))? {
            let path = entry.map_err(io("cannot list", work))?.path();
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
            if name == RECORD {
                continue;
            }
            File::open(&path).and_then(|file| file.sync_all()).map_err(io("cannot flush", &path))?;
            files.insert(name, hash(&path).map_err(io("cannot read back", &path))?);
        }
        let mut record = Record { version: VERSION, key: key.0.clone(), kind: kind.into(), files, counts, seal: String::new() };
        record.seal = record.seal();
        write_ron(&work.join(RECORD), &record, &key.0)?;
        sync_folder(work)
    }
    /// Removes what attempts at a finished node left, unless somebody holds its lock.
    pub fn clear(&self, key: &Key, observer: &Observer) {
        if self.attempts(key).exists()
            && let Ok(Taken::Ours(lock)) = self.lock(key, observer)
        {
            self.tidy(key);
            self.release(key, lock);
        }
    }
    /// As [`Store::clear`], for whoever holds the lock. What cannot be removed does no harm.
    fn tidy(&self, key: &Key) {
        let at = self.attempts(key);
        for entry in fs::read_dir(&at).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                let _ = fs::remove_dir_all(&path);
            } else if is_temporary(&entry.file_name().to_string_lossy()) {
                let _ = fs::remove_file(&path);
            }
        }
        let _ = fs::remove_file(self.failure_path(key));
    }
    /// Keys of which there is anything: results, attempts, failures. A store that does not exist has none.
    pub fn keys(&self) -> Result<Vec<Key>, StoreError> {
        let mut keys = BTreeSet::new();
        for folder in ["nodes", "work", "failures"] {
            let path = self.root.join(folder);
            let entries = match fs::read_dir(&path) {
                Err(error) if error.kind() == ErrorKind::NotFound => continue,
                entries => entries.map_err(io("cannot list", &path))?,
            };
            for entry in entries {
                let name = entry.map_err(io("cannot list", &path))?.file_name();
                let name = name.to_string_lossy();
                let name = name.strip_suffix(".ron").unwrap_or(&name);
                if name.len() == KEY_DIGITS && name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
                    keys.insert(Key(name.to_owned()));
                }
            }
        }
        Ok(keys.into_iter().collect())
    }
    /// Bytes of all that there is of a node.
    pub fn size(&self, key: &Key) -> u64 {
        [self.node(key), self.attempts(key)].iter().map(|folder| size(folder)).sum()
    }
    /// Removes all that there is of a node, unless somebody works on it; whether it did.
    pub fn remove(&self, key: &Key, observer: &Observer) -> Result<bool, StoreError> {
        let Taken::Ours(lock) = self.lock(key, observer)? else { return Ok(false) };
        let (node, away) = (self.node(key), self.attempts(key).join("removed"));
        let _ = fs::remove_dir_all(&away);
        if node.exists() {
            // It goes whole, by a rename, so that a kill leaves no half of it.
            fs::rename(&node, &away).map_err(io("cannot remove", &node))?;
        }
        self.tidy(key);
        self.release(key, lock);
        Ok(true)
    }
    /// Lets a lock go; a node without attempts leaves no folder.
    pub fn release(&self, key: &Key, lock: Lock) {
        drop(lock);
        // Refused by the system where something is left.
        let _ = fs::remove_dir(self.attempts(key));
    }
    /// Notes why an attempt ended badly; the work folder stays for the next one.
    pub fn fail(&self, key: &Key, failure: &FailureRecord) -> Result<(), StoreError> {
        write_ron(&self.failure_path(key), failure, &key.0)
    }
    /// Why the last attempt at a node ended badly, if it did.
    pub fn failure(&self, key: &Key) -> Option<FailureRecord> {
        let text = fs::read_to_string(self.failure_path(key)).ok()?;
        ron::from_str(&text).ok()
    }
    fn failure_path(&self, key: &Key) -> PathBuf {
        self.root.join("failures").join(format!("{key}.ron"))
    }
    /// Keeps how fast this machine trains.
    pub fn keep_speed(&self, speed: &SpeedRecord) -> Result<(), StoreError> {
        self.create()?;
        write_ron(&self.root.join(SPEED), speed, "the speed of this machine")
    }
    /// How fast this machine trains, if it has been measured.
    pub fn speed(&self) -> Option<SpeedRecord> {
        let text = fs::read_to_string(self.root.join(SPEED)).ok()?;
        ron::from_str(&text).ok().filter(|speed: &SpeedRecord| speed.flops_per_second.is_finite())
    }
    /// Appends a line to the history. Losing it loses no result, so that failures are not reported.
    pub(super) fn remember(&self, line: &history::Line) {
        let Ok(text) = serde_json::to_string(line) else { return };
        if let Ok(mut file) = OpenOptions::new().create(true).append(true).open(self.root.join(HISTORY)) {
            // One call, so that lines of several processes do not mix.
            let _ = file.write_all((text + "\n").as_bytes());
        }
    }
    /// The history's last bytes, as many as `most`, as text.
    pub(super) fn history(&self, most: u64) -> String {
        let mut bytes = Vec::new();
        if let Ok(mut file) = File::open(self.root.join(HISTORY)) {
            let start = file.metadata().map_or(0, |data| data.len()).saturating_sub(most);
            let _ = file.seek(SeekFrom::Start(start)).and_then(|_| file.take(most).read_to_end(&mut bytes));
        }
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Bytes of the files below a folder; links are not followed.
fn size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.map(|entry| match entry.metadata() {
        Ok(data) if data.is_dir() => size(&entry.path()),
        Ok(data) => data.len(),
        Err(_) => 0,
    });
    sizes.sum()
}

/// Folders that have a number, ascending.
fn numbered(folder: &Path) -> Vec<u64> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let folders = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let mut numbers: Vec<u64> = folders.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

/// Files that a kill left before they had a name.
fn is_temporary(name: &str) -> bool {
    name.starts_with('.')
}

/// Copies the files of a folder into a new one.
pub(super) fn copy_files(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        if entry.file_type()?.is_file() && !is_temporary(&entry.file_name().to_string_lossy()) {
            fs::copy(entry.path(), to.join(entry.file_name()))?;
        }
    }
    Ok(())
}

fn io<'a>(context: &'static str, path: &'a Path) -> impl Fn(std::io::Error) -> StoreError + 'a {
    move |source| StoreError::Io { context, path: path.into(), source }
}

fn hash(path: &Path) -> std::io::Result<String> {
    Ok(blake3::Hasher::new().update_mmap(path)?.finalize().to_hex().to_string())
}

/// Writes a file whole: beside its place, flushed, then moved there.
pub(super) fn write_ron<T: serde::Serialize>(path: &Path, value: &T, key: &str) -> Result<(), StoreError> {
    let text = ron::ser::to_string_pretty(value, ron::ser::PrettyConfig::default())
        .map_err(|error| StoreError::Record { key: key.into(), reason: error.to_string() })?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(io("cannot write into", folder))?;
    file.write_all(text.as_bytes()).map_err(io("cannot write", path))?;
    file.as_file().sync_all().map_err(io("cannot flush", path))?;
    file.persist(path).map_err(|error| io("cannot write", path)(error.error))?;
    Ok(())
}

fn sync_folder(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(io("cannot flush", path))
}
