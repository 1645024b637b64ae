//! Writes drawings for LaTeX as TikZ, so that a figure has the document's fonts and stays a vector drawing.
//!
//! Deliberately leaves the meaning of colours to the document: the shipped template defines them (`xrun-k0` and so on) from the palette.
//! Invariant: every text goes through [`crate::report::latex::latex`]; a picture of a column's width has text of seven points or more.

use std::fmt::Write;

use super::POINTS;
use super::drawing::{Anchor, At, Panel, Shape};
use super::paint::paint;
use super::svg::tenth;
use crate::report::latex::latex;

/// A TeX line of input holds so many coordinates.
const A_LINE: usize = 8;

/// As a picture.
pub fn picture(panel: &Panel) -> String {
    let (width, height) = panel.drawing.size;
    let mut out =
        format!("\\begin{{tikzpicture}}[x={POINTS}pt,y=-{POINTS}pt]\n\\useasboundingbox (0,0) rectangle ({width},{height});\n");
    shapes(&panel.drawing.shapes, &mut out);
    out.push_str("\\end{tikzpicture}");
    out
}

fn shapes(shapes_: &[Shape], out: &mut String) {
    for shape in shapes_ {
        // Writing to a `String` cannot fail.
        let _ = match shape {
            Shape::Line { class, from, to } => writeln!(out, "\\draw[{}] {} -- {};", look(class), at(*from), at(*to)),
            Shape::Path { class, points, closed, .. } => {
                let mut track = String::new();
                for (place, point) in points.iter().enumerate() {
                    let break_ = if place > 0 && place.is_multiple_of(A_LINE) { "\n" } else { "" };
                    let _ = write!(track, "{}{}{break_}", if place == 0 { "" } else { "--" }, at(*point));
                }
                writeln!(out, "\\path[{}] {track}{};", look(class), if *closed { "--cycle" } else { "" })
            }
            Shape::Rect { class, corner, size } => {
                writeln!(out, "\\path[{}] {} rectangle {};", look(class), at(*corner), at((corner.0 + size.0, corner.1 + size.1)))
            }
            Shape::Dot { class, at: place, radius, .. } if !paint(class).hidden => {
                writeln!(out, "\\path[{}] {} circle[radius={}pt];", look(class), at(*place), tenth(radius * POINTS))
            }
            Shape::Dot { .. } => Ok(()),
            Shape::Text { class, at: place, anchor, text } => {
                let anchor = match anchor {
                    Anchor::Start => "base west",
                    Anchor::Middle => "base",
                    Anchor::End => "base east",
                };
                let paint = paint(class);
                let size = if paint.size > 12.0 { "\\footnotesize" } else { "\\scriptsize" };
                let weight = if paint.bold { "\\bfseries" } else { "" };
                let colour = paint.fill.unwrap_or("ink");
                let ground = if paint.stroke.is_some() { ",fill=white,fill opacity=0.8,text opacity=1" } else { "" };
                writeln!(
                    out,
                    "\\node[anchor={anchor},inner sep=0pt{ground},text=xrun-{colour},font=\\sffamily{size}{weight}] at {} {{{}}};",
                    at(*place),
                    latex(text)
                )
            }
            Shape::Clipped { corner, size, shapes: inner } => {
                let far = (corner.0 + size.0, corner.1 + size.1);
                let _ = writeln!(out, "\\begin{{scope}}\\clip {} rectangle {};", at(*corner), at(far));
                shapes(inner, out);
                writeln!(out, "\\end{{scope}}")
            }
        };
    }
}

fn at((x, y): At) -> String {
    // Beyond these TeX's own numbers end; what is not finite lies outside as well.
    let inside = |value: f64| if value.is_finite() { value.clamp(-5_000.0, 5_000.0) } else { -5_000.0 };
    format!("({},{})", tenth(inside(x)), tenth(inside(y)))
}

fn look(class: &str) -> String {
    let paint = paint(class);
    let mut look = Vec::new();
    if let Some(stroke) = paint.stroke {
        look.push(format!("draw=xrun-{stroke},line width={:.2}pt", paint.width * 0.5));
    }
    if let Some((dash, gap)) = paint.dash {
        look.push(format!("dash pattern=on {}pt off {}pt", dash * POINTS, gap * POINTS));
    }
    if let Some(fill) = paint.fill {
        look.push(format!("fill=xrun-{fill}"));
    }
    if paint.opacity != 1.0 {
        look.push(format!("opacity={}", paint.opacity));
    }
    look.join(",")
}
