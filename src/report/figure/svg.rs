//! Writes drawings as SVG: numbers to a tenth of a unit, texts escaped.
//!
//! Invariant: every text is escaped, and a drawing refers to nothing outside itself but, on a page, the page's palette.

use std::fmt::Write;

use super::drawing::{Anchor, At, Panel, Shape};
use super::paint::{Ink, light, paint};

/// As an element of a page, in the colours of the page.
pub fn inline(panel: &Panel) -> String {
    let (width, height) = panel.drawing.size;
    let head = format!(
        "<svg class=\"panel\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\">\n",
        escape(&panel.label),
        tenth(width),
        tenth(height)
    );
    Writer { out: head, page: true }.shapes(&panel.drawing.shapes) + "</svg>"
}

/// As a file, in the colours of the light palette, on white.
pub fn file(panel: &Panel) -> String {
    let (width, height) = panel.drawing.size;
    let head = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
         font-family=\"Helvetica, Arial, 'Liberation Sans', sans-serif\">\n<title>{2}</title>\n<rect width=\"{0}\" height=\"{1}\" fill=\"#ffffff\"/>\n",
        tenth(width),
        tenth(height),
        escape(&panel.label)
    );
    Writer { out: head, page: false }.shapes(&panel.drawing.shapes) + "</svg>\n"
}

struct Writer {
    out: String,
    /// Whether colours are the page's.
    page: bool,
}

impl Writer {
    fn shapes(mut self, shapes: &[Shape]) -> String {
        for shape in shapes {
            self.shape(shape);
        }
        self.out
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { class, from, to } => {
                let place =
                    format!("x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\"", tenth(from.0), tenth(from.1), tenth(to.0), tenth(to.1));
                self.element("line", class, &place, None);
            }
            Shape::Path { class, points, closed, values } => {
                let mut place = format!("d=\"{}{}\"", track(points), if *closed { "Z" } else { "" });
                if let Some(values) = values.as_ref().filter(|_| self.page) {
                    let _ = write!(place, " data-name=\"{}\" data-values=\"", escape(&values.name));
                    for (number, (step, value)) in values.values.iter().enumerate() {
                        let _ = write!(place, "{}{step} {}", if number == 0 { "" } else { "," }, significant(*value));
                    }
                    place.push('"');
                }
                self.element("path", class, &place, None);
            }
            Shape::Rect { class, corner, size } => {
                let place = format!(
                    "x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"",
                    tenth(corner.0),
                    tenth(corner.1),
                    tenth(size.0),
                    tenth(size.1)
                );
                self.element("rect", class, &place, None);
            }
            Shape::Dot { class, at, radius, title } => {
                let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
                let place = format!("cx=\"{}\" cy=\"{}\" r=\"{}\"", tenth(at.0), tenth(at.1), tenth(*radius));
                self.element("circle", class, &place, Some(&title));
            }
            Shape::Text { class, at, anchor, text } => {
                if paint(class).stroke.is_some() && !class.ends_with("ground") {
                    // A ground below its letters, so that they stand out from what is drawn there.
                    let class = format!("{class} ground");
                    self.shape(&Shape::Text { class, at: *at, anchor: *anchor, text: text.clone() });
                }
                let anchor = match anchor {
                    Anchor::Start => "start",
                    Anchor::Middle => "middle",
                    Anchor::End => "end",
                };
                let place = format!("x=\"{}\" y=\"{}\" text-anchor=\"{anchor}\"", tenth(at.0), tenth(at.1));
                self.element("text", class, &place, Some(&escape(text)));
            }
            Shape::Clipped { corner: (x, y), size: (width, height), shapes } => {
                // A nested viewport clips without an identifier, which would have to be unique on the page.
                let _ = writeln!(
                    self.out,
                    "<svg x=\"{0}\" y=\"{1}\" width=\"{2}\" height=\"{3}\" viewBox=\"{0} {1} {2} {3}\">",
                    tenth(*x),
                    tenth(*y),
                    tenth(*width),
                    tenth(*height)
                );
                for shape in shapes {
                    self.shape(shape);
                }
                self.out.push_str("</svg>\n");
            }
        }
    }

    fn element(&mut self, name: &str, class: &str, place: &str, inside: Option<&str>) {
        let paint = paint(class);
        if paint.hidden && !self.page {
            return;
        }
        let colour = |ink: Ink| if self.page { format!("var(--{ink})") } else { format!("#{}", light(ink)) };
        let mut look = String::new();
        // Something that is there to be pointed at has a fill that is not seen.
        let fill = if paint.hidden { "transparent".to_owned() } else { paint.fill.map_or("none".to_owned(), colour) };
        let _ = write!(look, " fill=\"{fill}\"");
        if let Some(stroke) = paint.stroke.filter(|_| name != "text" || class.ends_with("ground")) {
            let _ = write!(look, " stroke=\"{}\"", colour(stroke));
            if paint.width != 1.0 {
                let _ = write!(look, " stroke-width=\"{}\"", paint.width);
            }
        }
        if let Some((dash, gap)) = paint.dash {
            let _ = write!(look, " stroke-dasharray=\"{dash} {gap}\"");
        }
        if paint.opacity != 1.0 {
            let _ = write!(look, " opacity=\"{}\"", paint.opacity);
        }
        match name {
            "path" => look.push_str(" stroke-linejoin=\"round\" stroke-linecap=\"round\""),
            "text" => {
                let _ = write!(look, " font-size=\"{}\"", paint.size);
                if paint.bold {
                    look.push_str(" font-weight=\"600\"");
                }
            }
            _ => {}
        }
        let _ = match inside {
            Some(inside) => writeln!(self.out, "<{name} {place}{look}>{inside}</{name}>"),
            None => writeln!(self.out, "<{name} {place}{look}/>"),
        };
    }
}

fn track(points: &[At]) -> String {
    let mut text = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{}{} {}", if place == 0 { "M" } else { "L" }, tenth(*x), tenth(*y));
    }
    text
}

/// To a tenth, without a needless zero; what is not finite is kept out of the drawing.
pub fn tenth(value: f64) -> String {
    let value = if value.is_finite() { (value * 10.0).round() / 10.0 } else { -1e4 };
    format!("{}", if value == 0.0 { 0.0 } else { value })
}

/// To five significant digits.
fn significant(value: f64) -> String {
    let rounded: f64 = format!("{value:.4e}").parse().unwrap_or(value);
    format!("{rounded}")
}

/// For text and attributes alike; control characters have no place in XML.
pub fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
