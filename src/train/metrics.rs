//! `metrics.jsonl`: one line a step, appended; cut back to a checkpoint's step when a phase goes on from it.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::Path;

use super::disk;
use crate::run::record::{METRICS, MetricLine};
use crate::run::worker::Failure;

/// An open metrics file.
pub(super) struct Metrics {
    file: BufWriter<File>,
    bytes: u64,
}

impl Metrics {
    /// Opens it and forgets all after `bytes`.
    pub(super) fn open(folder: &Path, bytes: u64) -> Result<Self, Failure> {
        let path = folder.join(METRICS);
        let context = || disk(format!("cannot open {METRICS}"));
        let mut file = OpenOptions::new().create(true).truncate(false).write(true).open(path).map_err(context())?;
        file.set_len(bytes).map_err(context())?;
        file.seek(SeekFrom::Start(bytes)).map_err(context())?;
        Ok(Self { file: BufWriter::new(file), bytes })
    }
    /// How long the file is that holds at least `bytes`; `None` if it is shorter.
    pub(super) fn holds(folder: &Path, bytes: u64) -> bool {
        std::fs::metadata(folder.join(METRICS)).is_ok_and(|metadata| metadata.len() >= bytes)
    }
    /// Appends a line.
    pub(super) fn push(&mut self, line: &MetricLine) -> Result<(), Failure> {
        let line = serde_json::to_string(line).map_err(|error| Failure::Input(error.to_string()))?;
        writeln!(self.file, "{line}").map_err(disk(format!("cannot write {METRICS}")))?;
        self.bytes += line.len() as u64 + 1;
        Ok(())
    }
    /// On the disk, all of it; its length.
    pub(super) fn sync(&mut self) -> Result<u64, Failure> {
        let context = || disk(format!("cannot write {METRICS}"));
        self.file.flush().map_err(context())?;
        self.file.get_ref().sync_all().map_err(context())?;
        Ok(self.bytes)
    }
}
