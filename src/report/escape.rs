//! Text that stays text: in Markdown and in CSV. (HTML is escaped by the template engine, SVG by its writer.)

/// In a paragraph, a heading or a table's cell of Markdown: never markup, HTML or a new row. Characters that are harmless where they stand
/// (`validation_ce[post, grow] < 3 * 4`) are left alone, so that the source reads well in a terminal.
pub fn markdown(text: &str) -> String {
    let characters: Vec<char> = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let mut escaped = String::with_capacity(text.len());
    for (place, c) in characters.iter().copied().enumerate() {
        let before = place.checked_sub(1).map_or(' ', |place| characters[place]);
        let after = characters.get(place + 1).copied().unwrap_or(' ');
        let active = match c {
            '\\' | '`' | '|' | '$' => true,
            // Emphasis opens or closes beside a character that is no space; `_` does not within a word.
            '*' | '~' => !(before.is_whitespace() && after.is_whitespace()),
            '_' => !(before.is_alphanumeric() && after.is_alphanumeric()),
            // A link needs a target or a definition.
            ']' => matches!(after, '(' | '[' | ':'),
            '<' => !(after.is_whitespace() || after.is_ascii_digit()),
            '&' => after.is_alphanumeric() || after == '#',
            '#' | '>' => place == 0,
            _ => false,
        };
        if active {
            escaped.push('\\');
        }
        escaped.push(c);
    }
    escaped
}

/// A field by RFC 4180. What a spreadsheet would take for a formula gets an apostrophe in front, numbers and signs of numbers aside.
pub fn csv(text: &str) -> String {
    let number = text.split(' ').next().is_some_and(|first| first.parse::<f64>().is_ok());
    let formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !number;
    let text = if formula { format!("'{text}") } else { text.to_owned() };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}
