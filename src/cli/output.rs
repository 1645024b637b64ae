//! The two streams, and files that appear whole.

use std::io::{ErrorKind, Write};
use std::path::Path;

use super::Fault;

/// Writes a result to standard output. Whoever reads it may stop early.
pub fn say(text: &str) -> Result<(), Fault> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
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
    match out {
        Some(path) => write(text.as_bytes(), path),
        None => say(text),
    }
}

/// A file, whole or not at all.
pub fn write(bytes: &[u8], path: &Path) -> Result<(), Fault> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
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
