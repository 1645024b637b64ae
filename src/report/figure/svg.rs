//! Writes SVG: shapes with classes, numbers to a tenth of a pixel, texts escaped.

use std::fmt::Write;

/// A drawing under way.
pub struct Svg {
    width: f64,
    height: f64,
    body: String,
}

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Svg {
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, body: String::new() }
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.element(&format!(
            r#"<line class="{class}" x1="{}" y1="{}" x2="{}" y2="{}"/>"#,
            tenth(from.0),
            tenth(from.1),
            tenth(to.0),
            tenth(to.1)
        ));
    }

    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 1 {
            self.element(&format!(r#"<path class="{class}" d="{}"/>"#, track(points)));
        }
    }

    pub fn area(&mut self, class: &str, points: &[(f64, f64)]) {
        if points.len() > 2 {
            self.element(&format!(r#"<path class="{class}" d="{}Z"/>"#, track(points)));
        }
    }

    pub fn rect(&mut self, class: &str, (x, y): (f64, f64), (width, height): (f64, f64)) {
        self.element(&format!(
            r#"<rect class="{class}" x="{}" y="{}" width="{}" height="{}"/>"#,
            tenth(x),
            tenth(y),
            tenth(width.max(0.0)),
            tenth(height.max(0.0))
        ));
    }

    /// With what it says when it is pointed at.
    pub fn dot(&mut self, class: &str, (x, y): (f64, f64), radius: f64, title: &str) {
        let title = if title.is_empty() { String::new() } else { format!("<title>{}</title>", escape(title)) };
        self.element(&format!(
            r#"<circle class="{class}" cx="{}" cy="{}" r="{}">{title}</circle>"#,
            tenth(x),
            tenth(y),
            tenth(radius)
        ));
    }

    pub fn text(&mut self, class: &str, (x, y): (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        self.element(&format!(
            r#"<text class="{class}" x="{}" y="{}" text-anchor="{anchor}">{}</text>"#,
            tenth(x),
            tenth(y),
            escape(text)
        ));
    }

    /// What is drawn inside shows only within a rectangle.
    pub fn clipped(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), draw: impl FnOnce(&mut Self)) {
        // A nested viewport clips without an identifier, which would have to be unique on the page.
        self.element(&format!(
            r#"<svg x="{0}" y="{1}" width="{2}" height="{3}" viewBox="{0} {1} {2} {3}">"#,
            tenth(x),
            tenth(y),
            tenth(width),
            tenth(height)
        ));
        draw(self);
        self.element("</svg>");
    }

    /// The whole element, `label` for those who do not see it.
    pub fn finish(self, label: &str) -> String {
        format!(
            "<svg class=\"panel\" role=\"img\" aria-label=\"{}\" viewBox=\"0 0 {} {}\">\n{}</svg>",
            escape(label),
            tenth(self.width),
            tenth(self.height),
            self.body
        )
    }

    fn element(&mut self, text: &str) {
        self.body.push_str(text);
        self.body.push('\n');
    }
}

fn track(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    for (place, (x, y)) in points.iter().enumerate() {
        // Writing to a `String` cannot fail.
        let _ = write!(text, "{}{} {}", if place == 0 { "M" } else { "L" }, tenth(*x), tenth(*y));
    }
    text
}

/// To a tenth, without a needless zero; what is not finite is kept out of the drawing.
fn tenth(value: f64) -> String {
    let value = if value.is_finite() { (value * 10.0).round() / 10.0 } else { -1e4 };
    format!("{}", if value == 0.0 { 0.0 } else { value })
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
            c if c.is_control() => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}
