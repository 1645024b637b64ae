//! Findings as JSON that can be read and compared line by line: indented on the outside, a row or a series on one line.
//!
//! Deliberately knows no field. Invariant: what lies [`DEEP`] or deeper is on the line of what holds it.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{Formatter, Serializer};

/// Lists and objects around one that is written without breaks: of a report, a row of a table and the values of a series.
const DEEP: usize = 4;

/// The text, with a line's end.
pub fn json(value: &impl Serialize) -> Result<String, serde_json::Error> {
    let mut out = Vec::new();
    value.serialize(&mut Serializer::with_formatter(&mut out, Indented::default()))?;
    out.push(b'\n');
    String::from_utf8(out).map_err(|error| serde_json::Error::io(io::Error::other(error)))
}

#[derive(Default)]
struct Indented {
    depth: usize,
    /// Whether the innermost list or object has anything in it.
    filled: bool,
}

impl Indented {
    fn open<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth += 1;
        self.filled = false;
        writer.write_all(bracket)
    }

    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth -= 1;
        if self.filled && self.depth < DEEP {
            self.break_line(writer)?;
        }
        self.filled = true;
        writer.write_all(bracket)
    }

    fn next<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if self.depth <= DEEP { self.break_line(writer) } else { Ok(()) }
    }

    fn break_line<W: ?Sized + Write>(&self, writer: &mut W) -> io::Result<()> {
        const SPACES: &[u8] = &[b' '; 2 * DEEP];
        writer.write_all(b"\n")?;
        writer.write_all(&SPACES[..2 * self.depth.min(DEEP)])
    }
}

impl Formatter for Indented {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"[")
    }
    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"]")
    }
    fn begin_array_value<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }
    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.open(writer, b"{")
    }
    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.close(writer, b"}")
    }
    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> io::Result<()> {
        self.next(writer, first)
    }
    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.depth <= DEEP { b": " } else { b":" })
    }
    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.filled = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::json;

    #[test]
    fn outside_in_lines_inside_on_one() {
        let value = serde_json::json!({"a": [], "b": {"c": [{"d": [[1, 2], [3, {"e": null}]], "f": {}}]}});
        let text = json(&value).expect("JSON");
        let wanted = "{\n  \"a\": [],\n  \"b\": {\n    \"c\": [\n      {\n        \"d\": [[1,2],[3,{\"e\":null}]],\n        \"f\": {}\n      }\n    ]\n  }\n}\n";
        assert_eq!(text, wanted);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).expect("JSON"), value);
    }
}
