//! The two streams, and files that appear whole.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::Path;

use super::Fault;

/// Writes a result to standard output. Whoever reads it may stop early.
pub fn say(text: &str) -> Result<(), Fault> {
    put(text.as_bytes())
}

fn put(bytes: &[u8]) -> Result<(), Fault> {
    let mut out = std::io::stdout().lock();
    match out.write_all(bytes).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Fault::Machine(format!("cannot write the result: {error}"))),
        _ => Ok(()),
    }
}

/// Writes to standard error what is no result. Nothing can be done where that is closed.
pub fn note(text: &str) {
    let _ = writeln!(std::io::stderr().lock(), "{text}");
}

/// Says why the command could not go on.
pub fn complain(text: &str) {
    if !text.is_empty() {
        note(&format!("error: {text}"));
    }
}

/// A result to where it was asked for: a file, or standard output.
pub fn deliver(text: &str, out: Option<&Path>) -> Result<(), Fault> {
    deliver_bytes(text.as_bytes(), out)
}

/// As [`deliver`], for what is no text.
pub fn deliver_bytes(bytes: &[u8], out: Option<&Path>) -> Result<(), Fault> {
    match out {
        Some(path) => write(bytes, path),
        None => put(bytes),
    }
}

/// A file, whole or not at all.
pub fn write(bytes: &[u8], path: &Path) -> Result<(), Fault> {
    let folder = around(path);
    let cannot = |error: std::io::Error| Fault::Machine(format!("cannot write `{}`: {error}", path.display()));
    let mut builder = tempfile::Builder::new();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        // As any other file of the user: the mask of the process applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(folder).map_err(cannot)?;
    file.write_all(bytes).map_err(cannot)?;
    file.persist(path).map_err(|error| cannot(error.error))?;
    Ok(())
}

/// A folder with what `write` puts into it: whole or not at all, and nothing that is there gives way to it.
pub fn deliver_folder<T>(path: &Path, write: impl FnOnce(&Path) -> Result<T, Fault>) -> Result<T, Fault> {
    let cannot = |error: std::io::Error| Fault::Machine(format!("cannot write `{}`: {error}", path.display()));
    if path.symlink_metadata().is_ok() && !std::fs::read_dir(path).is_ok_and(|mut inside| inside.next().is_none()) {
        return Err(Fault::Input(format!("`{}` is there already: take another folder, or remove it first", path.display())));
    }
    let mut builder = tempfile::Builder::new();
    builder.prefix(".xrun-");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o777));
    }
    let folder = builder.tempdir_in(around(path)).map_err(cannot)?;
    let written = write(folder.path())?;
    for entry in std::fs::read_dir(folder.path()).map_err(cannot)? {
        File::open(entry.map_err(cannot)?.path()).and_then(|file| file.sync_all()).map_err(cannot)?;
    }
    // Refused by the system where something has come into its place meanwhile.
    std::fs::rename(folder.path(), path).map_err(cannot)?;
    let _ = folder.keep();
    File::open(around(path)).and_then(|folder| folder.sync_all()).map_err(cannot)?;
    Ok(written)
}

/// The folder that something lies in.
fn around(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}
