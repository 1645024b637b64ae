//! Locks that hold between threads, processes and hosts, also where the file system knows no locks.
//!
//! Owns the files `N.lock` of a folder. Each holder makes the next number, and nobody reuses one: the highest is the owner, and a holder
//! that finds a higher one than its own has lost. A holder raises a counter in its file. Whoever waits takes over when the counter has stood
//! still for long enough by the waiting process' own clock, or at once where the kernel says that the holder is dead. Deliberately
//! compares no two clocks, and no time of a file. Invariant: at most one holder finds that it owns the lock.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{BuildHasher, Hasher};
use std::io::{Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// A holder whose counter stands still for so long is taken for dead. Assumption: longer than a network file system hides what others have
/// written, and than a machine under load forgets a thread; wrong takeovers cost time and nothing else.
pub const PATIENCE: Duration = Duration::from_secs(30);
/// Beats in that time: one may come late, or be lost, without harm.
const BEATS: u32 = 10;
/// Looks further apart count as so far apart: whoever was asleep, or waited for the disk, has not seen the holder stand still meanwhile.
const LOOKS_APART: Duration = Duration::from_secs(1);
/// Of the counter in the file: it is overwritten in place.
const DIGITS: usize = 20;

/// Who holds a lock, as its file says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Holder {
    /// The machine, for people.
    pub host: String,
    /// The process, for people.
    pub pid: u32,
    /// The kernel since it was started, where it says so: on the same one, its own locks tell who is dead.
    boot: Option<String>,
    /// Whether the file is locked as well.
    locked: bool,
    /// Of this holder alone.
    token: String,
    /// Raised as long as the holder lives.
    beat: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "process {} on {}", self.pid, self.host)
    }
}

impl Holder {
    pub(super) fn me(locked: bool) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let kernel = |name: &str| fs::read_to_string(Path::new("/proc/sys/kernel").join(name)).ok();
        let line = |text: String| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
        let boot = kernel("random/boot_id").and_then(line);
        let host = kernel("hostname").and_then(line).unwrap_or_else(|| "this host".to_owned());
        let pid = std::process::id();
        let mut hasher = std::hash::RandomState::new().build_hasher();
        hasher.write_u32(pid);
        hasher.write(boot.as_deref().unwrap_or_default().as_bytes());
        let token = format!("{:016x}-{pid}-{}", hasher.finish(), COUNT.fetch_add(1, Ordering::Relaxed));
        Self { host, pid, boot, locked, token, beat: format!("{:0DIGITS$}", 0) }
    }
    /// As text of a length that does not depend on the counter.
    fn text(&self) -> std::io::Result<String> {
        Ok(serde_json::to_string(self)? + "\n")
    }
    /// Who holds the lock of this file, if it can be read.
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_str(&fs::read_to_string(path).ok()?).ok()
    }
    /// Whether the kernel says that it is dead: it had a lock of the kernel that runs here, and has it no more.
    fn is_dead(&self, path: &Path) -> bool {
        let same = self.locked && self.boot.is_some() && self.boot == Holder::me(false).boot;
        same && File::open(path).is_ok_and(|file| file.try_lock_shared().is_ok())
    }
}

/// What a process that waits has seen of others' locks.
#[derive(Debug)]
pub struct Observer {
    patience: Duration,
    seen: Mutex<BTreeMap<PathBuf, Seen>>,
}

#[derive(Debug)]
struct Seen {
    text: Vec<u8>,
    still: Duration,
    looked: Instant,
}

impl Observer {
    /// One that takes over after so long.
    pub fn new(patience: Duration) -> Self {
        Self { patience, seen: Mutex::default() }
    }
    /// Whether the counter of a lock has stood still for long enough.
    fn gives_up(&self, path: &Path) -> bool {
        let Ok(text) = fs::read(path) else { return false };
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let last = seen.entry(path.to_owned()).or_insert_with(|| Seen { text: text.clone(), still: Duration::ZERO, looked: now });
        if last.text == text {
            last.still += (now - last.looked).min(LOOKS_APART);
        } else {
            (last.text, last.still) = (text, Duration::ZERO);
        }
        last.looked = now;
        last.still >= self.patience
    }
}

/// How an attempt to take a lock ended.
#[derive(Debug)]
pub enum Taken {
    /// It is ours.
    Ours(Lock),
    /// Another has it; `None` where its file could not be read just now.
    Held(Option<Holder>),
}

/// Held until dropped. A heart beats for it meanwhile.
#[derive(Debug)]
pub struct Lock {
    folder: PathBuf,
    number: u64,
    token: String,
    /// Whether the holder before may still be at work: it was taken for dead by its silence alone.
    silent: bool,
    lost: Arc<AtomicBool>,
    heart: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Lock {
    /// Takes the lock of a folder, which must exist.
    pub fn take(folder: &Path, observer: &Observer) -> std::io::Result<Taken> {
        let locks = numbers(folder)?;
        let mut silent = false;
        let mut dead = Vec::new();
        for number in locks.locked.iter().copied() {
            let path = lock_path(folder, number);
            let holder = Holder::read(&path);
            if !holder.as_ref().is_some_and(|holder| holder.is_dead(&path)) {
                if !observer.gives_up(&path) {
                    return Ok(Taken::Held(holder));
                }
                silent = true;
            }
            dead.push(number);
        }
        let number = locks.highest + 1;
        let path = lock_path(folder, number);
        let mut file = tempfile::NamedTempFile::new_in(folder)?;
        let me = Holder::me(file.as_file().try_lock().is_ok());
        file.write_all(me.text()?.as_bytes())?;
        // Its inode is locked before it has its name: nobody sees it unlocked.
        let file = match file.persist_noclobber(&path) {
            Ok(file) => file,
            Err(error) if error.error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(Taken::Held(Holder::read(&path))),
            Err(error) => return Err(error.error),
        };
        let token = me.token.clone();
        let mut lock = Self { folder: folder.into(), number, token, silent, lost: Arc::default(), heart: None };
        // Two may have found the lock free and taken different numbers: each that sees another gives way.
        let others = numbers(folder)?;
        if let Some(other) = others.locked.iter().find(|other| **other != number && !dead.contains(other)) {
            return Ok(Taken::Held(Holder::read(&lock_path(folder, *other))));
        }
        lock.heart = Some(lock.beat(file, me, observer.patience / BEATS)?);
        for number in dead {
            let _ = fs::remove_file(lock_path(folder, number));
        }
        Ok(Taken::Ours(lock))
    }
    /// Its number: higher than that of whoever held it before.
    pub fn number(&self) -> u64 {
        self.number
    }
    /// Whether the holder before may still be at work.
    pub fn after_silence(&self) -> bool {
        self.silent
    }
    /// Set by the heart once another has taken over: whoever works under it should end soon.
    pub fn lost(&self) -> &AtomicBool {
        &self.lost
    }
    /// Whether it is still ours, by what the disk says now.
    pub fn is_ours(&self) -> bool {
        let ours = !self.lost.load(Ordering::Relaxed) && is_owner(&self.folder, self.number, &self.token);
        if !ours {
            self.lost.store(true, Ordering::Relaxed);
        }
        ours
    }

    fn beat(&self, mut file: File, mut me: Holder, pause: Duration) -> std::io::Result<(Sender<()>, JoinHandle<()>)> {
        let (stop, stopped) = channel();
        let (folder, number, token) = (self.folder.clone(), self.number, self.token.clone());
        let lost = Arc::clone(&self.lost);
        let heart = move || {
            let mut beat: u64 = 0;
            while stopped.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
                if !is_owner(&folder, number, &token) {
                    lost.store(true, Ordering::Relaxed);
                    return;
                }
                beat += 1;
                me.beat = format!("{beat:0DIGITS$}");
                // A beat that cannot be written is one that others do not see: they may take over, which is found above.
                let _ = me.text().and_then(|text| {
                    file.seek(SeekFrom::Start(0))?;
                    file.write_all(text.as_bytes())
                });
            }
        };
        let thread = std::thread::Builder::new().name("heart".to_owned()).spawn(heart)?;
        Ok((stop, thread))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some((stop, heart)) = self.heart.take() {
            drop(stop);
            let _ = heart.join();
        }
        let path = lock_path(&self.folder, self.number);
        if Holder::read(&path).is_some_and(|holder| holder.token == self.token) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Who holds the lock of a folder, at a glance: one that has fallen silent still counts.
pub fn holder(folder: &Path) -> Option<Holder> {
    let number = *numbers(folder).ok()?.locked.last()?;
    let path = lock_path(folder, number);
    Holder::read(&path).filter(|holder| !holder.is_dead(&path))
}

/// Numbers in a folder.
struct Numbers {
    /// Of locks, ascending.
    locked: Vec<u64>,
    /// Of all that has a number; 0 for none.
    highest: u64,
}

fn numbers(folder: &Path) -> std::io::Result<Numbers> {
    let (mut locked, mut highest) = (Vec::new(), 0);
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let Some(name) = name.to_str() else { continue };
        let (digits, is_lock) = name.strip_suffix(".lock").map_or((name, false), |digits| (digits, true));
        let Ok(number) = digits.parse::<u64>() else { continue };
        highest = highest.max(number);
        if is_lock {
            locked.push(number);
        }
    }
    locked.sort_unstable();
    Ok(Numbers { locked, highest })
}

/// Its own file is there and no higher one; a disk that does not answer is no reason to give up.
fn is_owner(folder: &Path, number: u64, token: &str) -> bool {
    let path = lock_path(folder, number);
    let own = match fs::read_to_string(&path) {
        Ok(text) => text.contains(token),
        Err(error) => error.kind() != std::io::ErrorKind::NotFound,
    };
    own && numbers(folder).map_or(true, |numbers| numbers.locked.last().is_none_or(|last| *last <= number))
}

fn lock_path(folder: &Path, number: u64) -> PathBuf {
    folder.join(format!("{number}.lock"))
}
