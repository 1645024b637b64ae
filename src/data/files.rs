//! Files as they lie on the disk: which ones a pattern means, what kind each is, and its bytes, unpacked.
//!
//! A file is known by its name: `.gz` and `.zst` are unpacked as they are read, and the ending before them says the kind. Deliberately knows
//! no document. Invariant: a file is read in pieces and never held whole.

use std::cell::Cell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use super::documents::DocumentsError;

/// Bytes of a piece (an assumption: large enough that calls do not count).
pub(super) const PIECE: usize = 1 << 16;
/// How Git LFS begins a file that stands for another.
const POINTER: &[u8] = b"version https://git-lfs";

/// The files of some patterns in the order of their paths, each once. Relative patterns are relative to `folder`.
pub(super) fn matching(patterns: &[String], folder: &Path) -> Result<Vec<PathBuf>, DocumentsError> {
    let mut all = Vec::new();
    for pattern in patterns {
        let full = Path::new(&glob::Pattern::escape(&folder.to_string_lossy())).join(pattern);
        let matches = glob::glob(&full.to_string_lossy())
            .map_err(|error| DocumentsError::Pattern { pattern: pattern.clone(), reason: error.msg.into() })?;
        let before = all.len();
        all.extend(matches.filter_map(Result::ok).filter(|path| path.is_file()));
        if all.len() == before {
            return Err(DocumentsError::NoFile(pattern.clone()));
        }
    }
    all.sort();
    all.dedup();
    Ok(all)
}

/// What a file holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Text: whatever has no other ending.
    Text,
    /// Columns, `.parquet`.
    Parquet,
    /// Tokens of two or four bytes each, `.bin`.
    Bin,
    /// A NumPy array of tokens, `.npy`.
    Npy,
}

/// How a file is packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Packing {
    None,
    Gzip,
    Zstd,
}

impl Packing {
    /// That of a path, and the path without its ending.
    fn of(path: &Path) -> (Self, PathBuf) {
        match path.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => (Packing::Gzip, path.with_extension("")),
            Some("zst") => (Packing::Zstd, path.with_extension("")),
            _ => (Packing::None, path.to_owned()),
        }
    }
}

impl Kind {
    /// That of a path.
    pub(super) fn of(path: &Path) -> Self {
        match Packing::of(path).1.extension().and_then(|ending| ending.to_str()) {
            Some("parquet") => Kind::Parquet,
            Some("bin") => Kind::Bin,
            Some("npy") => Kind::Npy,
            _ => Kind::Text,
        }
    }
}

/// Bytes of files that were read so far, as they lie on the disk.
pub(super) type Meter = Rc<Cell<u64>>;

/// The bytes of a file, unpacked.
pub(super) struct Plain {
    path: PathBuf,
    packing: Packing,
    from: Box<dyn Read>,
}

impl Plain {
    /// Opens a file; what is read of it is added to the meter.
    pub(super) fn open(path: &Path, meter: &Meter) -> Result<Self, DocumentsError> {
        let file = File::open(path).map_err(|source| DocumentsError::Read { path: path.into(), source })?;
        let mut file = BufReader::with_capacity(PIECE, Counted { file, meter: Rc::clone(meter) });
        let start = file.fill_buf().map_err(|source| DocumentsError::Read { path: path.into(), source })?;
        if start.starts_with(POINTER) {
            return Err(DocumentsError::Pointer(path.into()));
        }
        let packing = Packing::of(path).0;
        let from: Box<dyn Read> = match packing {
            Packing::None => Box::new(file),
            Packing::Gzip => Box::new(flate2::bufread::MultiGzDecoder::new(file)),
            Packing::Zstd => {
                let unpack = zstd::stream::read::Decoder::with_buffer(file);
                Box::new(unpack.map_err(|source| DocumentsError::Read { path: path.into(), source })?)
            }
        };
        Ok(Self { path: path.into(), packing, from })
    }
    /// Where it lies.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }
    /// Fills `into` as far as there are bytes; how many there were.
    pub(super) fn fill(&mut self, into: &mut [u8]) -> Result<usize, DocumentsError> {
        let mut filled = 0;
        while filled < into.len() {
            match self.from.read(&mut into[filled..]) {
                Ok(0) => break,
                Ok(more) => filled += more,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
        Ok(filled)
    }
    /// The file itself where it is not packed, else what it holds in a file without a name: for formats that are not read from the
    /// first byte to the last.
    pub(super) fn seekable(mut self) -> Result<File, DocumentsError> {
        let failed = |source| DocumentsError::Read { path: self.path.clone(), source };
        if self.packing == Packing::None {
            return File::open(&self.path).map_err(failed);
        }
        let mut file = tempfile::tempfile().map_err(failed)?;
        if let Err(source) = std::io::copy(&mut self.from, &mut file).and_then(|_| file.seek(SeekFrom::Start(0))) {
            return Err(self.failed(source));
        }
        Ok(file)
    }
    fn failed(&self, source: std::io::Error) -> DocumentsError {
        let path = self.path.clone();
        match self.packing {
            Packing::None => DocumentsError::Read { path, source },
            Packing::Gzip | Packing::Zstd => {
                let kind = if self.packing == Packing::Gzip { "gzip" } else { "Zstandard" };
                DocumentsError::Damaged { path, reason: format!("it is no whole {kind} file: {source}") }
            }
        }
    }
}

/// Counts what is read.
struct Counted {
    file: File,
    meter: Meter,
}

impl Read for Counted {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(into)?;
        self.meter.set(self.meter.get() + read as u64);
        Ok(read)
    }
}

/// Text in pieces of whole characters.
pub(super) struct Letters {
    plain: Plain,
    buffer: Vec<u8>,
    /// What of the buffer was given out, and what is filled.
    given: usize,
    filled: usize,
    /// Bytes given out before.
    before: u64,
}

impl Letters {
    /// The text of a file.
    pub(super) fn of(plain: Plain) -> Self {
        Self { plain, buffer: vec![0; PIECE], given: 0, filled: 0, before: 0 }
    }
    /// The next piece, never empty; `None` at the end.
    pub(super) fn next(&mut self) -> Result<Option<&str>, DocumentsError> {
        self.buffer.copy_within(self.given..self.filled, 0);
        self.before += self.given as u64;
        self.filled -= self.given;
        self.given = 0;
        self.filled += self.plain.fill(&mut self.buffer[self.filled..])?;
        let bytes = &self.buffer[..self.filled];
        let whole = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            // A character that goes on in the next piece.
            Err(error) if error.error_len().is_none() && self.filled == self.buffer.len() => {
                std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
            }
            Err(error) => {
                let at = self.before + error.valid_up_to() as u64;
                return Err(DocumentsError::NotText { path: self.plain.path().into(), at });
            }
        };
        self.given = whole.len();
        Ok(Some(whole).filter(|text| !text.is_empty()))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::super::documents::tests::{all, of_files};
    use super::*;
    use crate::study::Documents;

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        packed.write_all(text).expect("packs");
        packed.finish().expect("packs")
    }

    fn zstandard(text: &[u8]) -> Vec<u8> {
        zstd::encode_all(text, 1).expect("packs")
    }

    /// Twice what a piece holds, in characters of several bytes; the packed files have two members each.
    #[test]
    fn packed_files_are_the_files_that_they_hold() {
        let folder = tempfile::tempdir().expect("a folder");
        let text: String = (0..20_000).map(|line| format!("line {line} ä€𝄞\n")).collect();
        let (first, second) = text.as_bytes().split_at(text.len() / 3);
        let write = |name: &str, bytes: Vec<u8>| std::fs::write(folder.path().join(name), bytes).expect("writes");
        write("a.txt", text.clone().into_bytes());
        write("b.txt.gz", [gzip(first), gzip(second)].concat());
        write("c.txt.zst", [zstandard(first), zstandard(second)].concat());
        let read = |name: &str| all(&of_files(name, Documents::Line), folder.path(), None);
        let plain = read("a.txt").expect("reads");
        assert_eq!(plain.len(), 20_000);
        assert_eq!(read("b.txt.gz").as_ref(), Ok(&plain));
        assert_eq!(read("c.txt.zst").as_ref(), Ok(&plain));
        assert_eq!(read("*.txt*").map(|all| all.len()), Ok(60_000));
        let cut = zstandard(text.as_bytes());
        write("d.txt.zst", cut[..cut.len() / 2].to_vec());
        write("e.txt.gz", text.clone().into_bytes());
        assert!(read("d.txt.zst").is_err_and(|said| said.contains("`d.txt.zst` is damaged: it is no whole Zstandard file")));
        assert!(read("e.txt.gz").is_err_and(|said| said.contains("`e.txt.gz` is damaged: it is no whole gzip file")));
    }

    #[test]
    fn a_kind_is_told_by_a_name() {
        let kinds = ["a.txt", "a.parquet", "a.bin.zst", "a.npy", "a.jsonl.gz", "a.gz"].map(|name| Kind::of(Path::new(name)));
        assert_eq!(kinds, [Kind::Text, Kind::Parquet, Kind::Bin, Kind::Npy, Kind::Text, Kind::Text]);
    }
}
