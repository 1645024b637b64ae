//! Writes drawings as PNG: the light palette on white, at the size of print.
//!
//! Invariant: the same drawing gives the same pixels on every machine; only shapes are drawn, with letters as outlines.

use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Mask, Paint as Ink, Path, PathBuilder, Pixmap, Rect, Stroke, StrokeDash, Transform,
};
use ttf_parser::OutlineBuilder;

use super::POINTS;
use super::drawing::{Anchor, At, Panel, Shape};
use super::letters::{before, letters};
use super::paint::{Paint, paint, rgb};

/// Pixels for each unit of a drawing.
const PIXELS: f32 = 4.0;
/// Pixels for each metre of print: there are 72 points to the 25.4 mm of an inch, so that it is 443 to the inch.
const PER_METRE: f64 = PIXELS as f64 / POINTS * 72.0 / 0.0254;

/// The drawing as a file.
pub fn file(panel: &Panel) -> Vec<u8> {
    const BUG: &str = "this is a bug in xrun: a panel is no picture";
    let side = |units: f64| (units * f64::from(PIXELS)).ceil().max(1.0) as u32;
    let (width, height) = (side(panel.drawing.size.0), side(panel.drawing.size.1));
    let mut canvas = Canvas { pixels: Pixmap::new(width, height).expect(BUG) };
    canvas.pixels.fill(Color::WHITE);
    canvas.shapes(&panel.drawing.shapes, None);
    // Nothing shines through: the alpha of every pixel is whole.
    let opaque: Vec<u8> = canvas.pixels.data().chunks_exact(4).flat_map(|pixel| [pixel[0], pixel[1], pixel[2]]).collect();
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    let per_metre = PER_METRE.round() as u32;
    encoder.set_pixel_dims(Some(png::PixelDimensions { xppu: per_metre, yppu: per_metre, unit: png::Unit::Meter }));
    encoder.write_header().and_then(|mut writer| writer.write_image_data(&opaque)).expect(BUG);
    out
}

struct Canvas {
    pixels: Pixmap,
}

impl Canvas {
    fn shapes(&mut self, shapes: &[Shape], inside: Option<&Mask>) {
        for shape in shapes {
            self.shape(shape, inside);
        }
    }

    fn shape(&mut self, shape: &Shape, inside: Option<&Mask>) {
        let mut path = PathBuilder::new();
        match shape {
            Shape::Line { class, from, to } => {
                let ((x, y), (to_x, to_y)) = (place(*from), place(*to));
                path.move_to(x, y);
                path.line_to(to_x, to_y);
                self.painted(path, &paint(class), false, inside);
            }
            Shape::Path { class, points, closed, .. } => {
                for (number, (x, y)) in points.iter().map(|point| place(*point)).enumerate() {
                    if number == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
                }
                if *closed {
                    path.close();
                }
                self.painted(path, &paint(class), true, inside);
            }
            Shape::Rect { class, corner, size } => {
                if let Some(rectangle) = rectangle(*corner, *size) {
                    path.push_rect(rectangle);
                }
                self.painted(path, &paint(class), false, inside);
            }
            Shape::Dot { class, at, radius, .. } => {
                let (x, y) = place(*at);
                path.push_circle(x, y, *radius as f32);
                self.painted(path, &paint(class), false, inside);
            }
            Shape::Text { class, at, anchor, text } => self.text(&paint(class), *at, *anchor, text, inside),
            Shape::Clipped { corner, size, shapes } => {
                let mask = Mask::new(self.pixels.width(), self.pixels.height());
                // Without room there is nothing to see.
                if let Some((room, mut mask)) = rectangle(*corner, *size).zip(mask) {
                    mask.fill_path(&PathBuilder::from_rect(room), FillRule::Winding, true, scale());
                    self.shapes(shapes, Some(&mask));
                }
            }
        }
    }

    fn painted(&mut self, path: PathBuilder, paint: &Paint, round: bool, inside: Option<&Mask>) {
        let Some(path) = path.finish().filter(|_| !paint.hidden) else { return };
        if let Some(fill) = paint.fill {
            self.pixels.fill_path(&path, &ink(rgb(fill), paint.opacity), FillRule::Winding, scale(), inside);
        }
        self.stroked(&path, paint, round, inside);
    }

    fn stroked(&mut self, path: &Path, paint: &Paint, round: bool, inside: Option<&Mask>) {
        let Some(colour) = paint.stroke else { return };
        let dash = paint.dash.and_then(|(dash, gap)| StrokeDash::new(vec![dash as f32, gap as f32], 0.0));
        let (line_cap, line_join) = if round { (LineCap::Round, LineJoin::Round) } else { (LineCap::Butt, LineJoin::Miter) };
        let stroke = Stroke { width: paint.width as f32, line_cap, line_join, dash, ..Stroke::default() };
        self.pixels.stroke_path(path, &ink(rgb(colour), paint.opacity), &stroke, scale(), inside);
    }

    /// Letters on a line; a stroke is a ground below them.
    fn text(&mut self, paint: &Paint, at: At, anchor: Anchor, text: &str, inside: Option<&Mask>) {
        let letters = letters(paint.bold);
        let glyphs = letters.glyphs(text);
        let mut x = at.0 - before(&glyphs, anchor) * paint.size;
        let mut pen = Pen { path: PathBuilder::new(), origin: (0.0, 0.0), size: (letters.sizes(1.0) * paint.size) as f32 };
        for glyph in glyphs {
            pen.origin = place((x, at.1));
            letters.outline(glyph, &mut pen);
            x += glyph.advance * paint.size;
        }
        let Some(path) = pen.path.finish() else { return };
        self.stroked(&path, paint, true, inside);
        if let Some(fill) = paint.fill {
            self.pixels.fill_path(&path, &ink(rgb(fill), paint.opacity), FillRule::Winding, scale(), inside);
        }
    }
}

/// Sets letters from the font's own units, which go upwards.
struct Pen {
    path: PathBuilder,
    origin: (f32, f32),
    size: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.origin.0 + self.size * x, self.origin.1 - self.size * y)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.move_to(x, y);
    }

    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.path.line_to(x, y);
    }

    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.path.quad_to(x1, y1, x, y);
    }

    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.path.cubic_to(x1, y1, x2, y2, x, y);
    }

    fn close(&mut self) {
        self.path.close();
    }
}

fn scale() -> Transform {
    Transform::from_scale(PIXELS, PIXELS)
}

fn ink([red, green, blue]: [u8; 3], opacity: f64) -> Ink<'static> {
    let mut ink = Ink::default();
    ink.set_color_rgba8(red, green, blue, (opacity * 255.0).round() as u8);
    ink
}

fn rectangle(corner: At, size: At) -> Option<Rect> {
    let ((x, y), (width, height)) = (place(corner), place(size));
    Rect::from_xywh(x, y, width, height)
}

/// What is not finite lies outside.
fn place((x, y): At) -> (f32, f32) {
    let finite = |value: f64| if value.is_finite() { value as f32 } else { -1e4 };
    (finite(x), finite(y))
}
