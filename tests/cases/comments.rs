//! Comments of a text.

/// Where the comment of a line begins.
pub fn comment(line: &str) -> Option<usize> {
    let (mut quoted, mut escaped) = (false, false);
    for (at, letter) in line.char_indices() {
        match letter {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            '/' if !quoted && line[at..].starts_with("//") => return Some(at),
            _ => {}
        }
    }
    None
}
