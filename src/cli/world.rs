//! The world as the command line sees it: files beside the one that is compiled.

use std::path::{Component, Path, PathBuf};

use crate::source::{Source, World};

/// Larger files are not even read; what is read and still too long for a text is said like any other fault.
const LARGEST_TEXT: u64 = 16 << 20;

/// Reads `.exp` files.
pub struct Files;

impl Files {
    /// The file named on the command line.
    pub fn root(path: &Path) -> Result<Source, String> {
        read(path, &path.display().to_string())
    }
}

impl World for Files {
    fn read(&self, from: &str, path: &str) -> Result<Source, String> {
        let relative = Path::new(path);
        if !relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir)) {
            return Err("a study may only use files beside it or in folders below".into());
        }
        let folder = Path::new(from).parent().unwrap_or(Path::new(""));
        let full = folder.join(relative.components().filter(|part| *part != Component::CurDir).collect::<PathBuf>());
        // A link may lead out of the folder although its name does not.
        let beside = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        if let (Ok(real), Ok(home)) = (full.canonicalize(), beside.canonicalize())
            && !real.starts_with(home)
        {
            return Err("a study may only use files beside it or in folders below".into());
        }
        read(&full, &full.display().to_string())
    }
}

fn read(path: &Path, name: &str) -> Result<Source, String> {
    let cannot = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => "no such file".to_owned(),
        _ => format!("cannot be read: {error}"),
    };
    if std::fs::metadata(path).map_err(cannot)?.len() > LARGEST_TEXT {
        return Err(format!("larger than {} MiB", LARGEST_TEXT >> 20));
    }
    let bytes = std::fs::read(path).map_err(cannot)?;
    match String::from_utf8(bytes) {
        // Some editors begin a file with a byte order mark; it is no part of the text.
        Ok(text) => Ok(Source::new(name, text.strip_prefix('\u{feff}').unwrap_or(&text))),
        Err(error) => Err(format!("not UTF-8 text (byte {})", error.utf8_error().valid_up_to())),
    }
}
