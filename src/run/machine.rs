//! What the machine has: memory, space on a disk.
//!
//! Owns how Linux is asked. Deliberately decides nothing. Invariant: what cannot be told is `None`, and nobody stops for it.

use std::path::{Path, PathBuf};

/// Bytes of memory that this process has now, and the most that it had.
pub fn resident() -> Option<(u64, u64)> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    Some((kibibytes(&text, "VmRSS:")?, kibibytes(&text, "VmHWM:")?))
}

/// Threads that the machine runs at a time, as far as this process may use them.
pub fn threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Bytes that this process may still take: what the machine has left, or what its control group (a job, a container) allows, whichever is less.
pub fn memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let machine = kibibytes(&text, "MemAvailable:")?;
    Some(allowed().map_or(machine, |allowed| machine.min(allowed)))
}

/// What the control groups of this process leave it: the least of its own and those around it.
fn allowed() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let own = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    let group = Path::new("/sys/fs/cgroup").join(own.trim_start_matches('/'));
    let number = |path: PathBuf| std::fs::read_to_string(path).ok()?.trim().parse::<u64>().ok();
    let left = |group: &Path| Some(number(group.join("memory.max"))?.saturating_sub(number(group.join("memory.current"))?));
    group.ancestors().filter_map(left).min()
}

/// Bytes that this user may still write where `path` is, or will be.
#[cfg(unix)]
pub fn space(path: &Path) -> Option<u64> {
    let there = path.ancestors().find(|path| path.exists()).filter(|path| !path.as_os_str().is_empty());
    let disk = rustix::fs::statvfs(there.unwrap_or(Path::new("."))).ok()?;
    disk.f_bavail.checked_mul(disk.f_frsize)
}

/// Nobody is asked elsewhere.
#[cfg(not(unix))]
pub fn space(_: &Path) -> Option<u64> {
    None
}

/// The value of a line `name   123 kB`, in bytes.
fn kibibytes(text: &str, name: &str) -> Option<u64> {
    let value = text.lines().find_map(|line| line.strip_prefix(name))?.trim().strip_suffix("kB")?;
    value.trim().parse::<u64>().ok()?.checked_mul(1_024)
}
