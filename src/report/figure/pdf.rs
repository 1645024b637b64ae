//! Writes drawings as PDF: vectors in the light palette, with text that can be searched and copied, in letters that the file brings along.
//!
//! Invariant: the same drawing gives the same bytes, without a date; a file refers to nothing outside itself.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use miniz_oxide::deflate::compress_to_vec_zlib;
use pdf_writer::types::{CidFontType, FontFlags, LineCapStyle, LineJoinStyle, SystemInfo, TextRenderingMode, UnicodeCmap};
use pdf_writer::{Content, Filter, Finish, Name, Pdf, Rect, Ref, Str, TextStr};

use super::POINTS;
use super::drawing::{At, Panel, Shape};
use super::letters::{Glyph, Letters, before, letters};
use super::paint::{Paint, paint, rgb};

/// Control points of a quarter of a circle, in radii: 4/3 · (√2 − 1).
const ROUND: f32 = 0.552_285;
/// As dense as it can be packed.
const DENSEST: u8 = 9;
/// Names of the two weights on a page.
const FONTS: [Name<'static>; 2] = [Name(b"Book"), Name(b"Bold")];
/// Glyphs by their numbers.
const BY_NUMBER: SystemInfo<'static> = SystemInfo { registry: Str(b"Adobe"), ordering: Str(b"Identity"), supplement: 0 };

/// The fonts as they lie in a file.
static PACKED: LazyLock<[Vec<u8>; 2]> =
    LazyLock::new(|| [false, true].map(|bold| compress_to_vec_zlib(letters(bold).bytes, DENSEST)));

/// A page of the drawing's size.
pub fn file(panel: &Panel) -> Vec<u8> {
    let size = panel.drawing.size;
    let (width, height) = ((size.0 * POINTS) as f32, (size.1 * POINTS) as f32);
    let mut writer = Writer { content: Content::new(), opacities: BTreeSet::new(), used: Default::default() };
    // Downwards, in units of the drawing.
    writer.content.transform([POINTS as f32, 0.0, 0.0, -POINTS as f32, 0.0, height]);
    writer.shapes(&panel.drawing.shapes);
    let Writer { content, opacities, used } = writer;

    let mut next = Ref::new(1);
    let [catalog, pages, page, stream, info] = std::array::from_fn(|_| next.bump());
    let mut pdf = Pdf::new();
    pdf.catalog(catalog).pages(pages);
    pdf.pages(pages).kids([page]).count(1);
    pdf.document_info(info).title(TextStr(&panel.label)).creator(TextStr("xrun"));
    let fonts = [false, true].map(|bold| font(&mut pdf, &mut next, bold, &used[usize::from(bold)]));
    let states: Vec<(String, Ref)> = opacities
        .into_iter()
        .map(|percent| {
            let (id, opacity) = (next.bump(), f32::from(percent) / 100.0);
            pdf.ext_graphics(id).non_stroking_alpha(opacity).stroking_alpha(opacity);
            (opacity_name(percent), id)
        })
        .collect();
    let mut own = pdf.page(page);
    own.parent(pages).media_box(Rect::new(0.0, 0.0, width, height)).contents(stream);
    let mut resources = own.resources();
    resources.fonts().pairs(FONTS.into_iter().zip(fonts));
    resources.ext_g_states().pairs(states.iter().map(|(name, id)| (Name(name.as_bytes()), *id)));
    resources.finish();
    own.finish();
    pdf.stream(stream, &compress_to_vec_zlib(&content.finish(), DENSEST)).filter(Filter::FlateDecode);
    pdf.finish()
}

fn opacity_name(percent: u8) -> String {
    format!("Opacity{percent}")
}

/// Writes a weight and what its glyphs are.
fn font(pdf: &mut Pdf, next: &mut Ref, bold: bool, used: &BTreeMap<u16, Glyph>) -> Ref {
    let Letters { name, bytes, face } = letters(bold);
    let name = Name(name.as_bytes());
    let thousandths = |units: i16| 1_000.0 * letters(bold).sizes(units.into()) as f32;
    let [font, descendant, descriptor, unicode, file] = std::array::from_fn(|_| next.bump());
    pdf.type0_font(font).base_font(name).encoding_predefined(Name(b"Identity-H")).descendant_font(descendant).to_unicode(unicode);
    let mut cid = pdf.cid_font(descendant);
    cid.subtype(CidFontType::Type2).base_font(name).system_info(BY_NUMBER).font_descriptor(descriptor);
    cid.cid_to_gid_map_predefined(Name(b"Identity"));
    let mut widths = cid.widths();
    for (number, glyph) in used {
        widths.consecutive(*number, [1_000.0 * glyph.advance as f32]);
    }
    widths.finish();
    cid.finish();
    let bounds = face.global_bounding_box();
    pdf.font_descriptor(descriptor)
        .name(name)
        .flags(FontFlags::SYMBOLIC)
        .bbox(Rect::new(
            thousandths(bounds.x_min),
            thousandths(bounds.y_min),
            thousandths(bounds.x_max),
            thousandths(bounds.y_max),
        ))
        .italic_angle(0.0)
        .ascent(thousandths(face.ascender()))
        .descent(thousandths(face.descender()))
        .cap_height(thousandths(face.capital_height().unwrap_or(face.ascender())))
        // Of upright stems, in thousandths: about what the two weights have.
        .stem_v(if bold { 165.0 } else { 80.0 })
        .font_file2(file);
    let mut meanings = UnicodeCmap::new(Name(b"Meanings"), BY_NUMBER);
    for (number, glyph) in used {
        meanings.pair(*number, glyph.character);
    }
    pdf.cmap(unicode, &meanings.finish());
    let mut stream = pdf.stream(file, &PACKED[usize::from(bold)]);
    stream.filter(Filter::FlateDecode).pair(Name(b"Length1"), bytes.len() as i32);
    stream.finish();
    font
}

struct Writer {
    content: Content,
    /// In hundredths.
    opacities: BTreeSet<u8>,
    /// Glyphs of the two weights.
    used: [BTreeMap<u16, Glyph>; 2],
}

impl Writer {
    fn shapes(&mut self, shapes: &[Shape]) {
        for shape in shapes {
            self.shape(shape);
        }
    }

    fn shape(&mut self, shape: &Shape) {
        match shape {
            Shape::Line { class, from, to } => self.drawn(&paint(class), |content| {
                let ((x, y), (to_x, to_y)) = (place(*from), place(*to));
                content.move_to(x, y).line_to(to_x, to_y);
            }),
            Shape::Path { class, points, closed, .. } => self.drawn(&paint(class), |content| {
                content.set_line_cap(LineCapStyle::RoundCap).set_line_join(LineJoinStyle::RoundJoin);
                for (number, (x, y)) in points.iter().map(|point| place(*point)).enumerate() {
                    let _ = if number == 0 { content.move_to(x, y) } else { content.line_to(x, y) };
                }
                if *closed {
                    content.close_path();
                }
            }),
            Shape::Rect { class, corner, size } => self.drawn(&paint(class), |content| {
                let ((x, y), (width, height)) = (place(*corner), place(*size));
                content.rect(x, y, width, height);
            }),
            Shape::Dot { class, at, radius, .. } => {
                self.drawn(&paint(class), |content| circle(content, place(*at), *radius as f32))
            }
            Shape::Text { class, at, anchor, text } => {
                let paint = paint(class);
                let glyphs = letters(paint.bold).glyphs(text);
                let x = at.0 - before(&glyphs, *anchor) * paint.size;
                self.text(&paint, place((x, at.1)), &glyphs);
            }
            Shape::Clipped { corner, size, shapes } => {
                let ((x, y), (width, height)) = (place(*corner), place(*size));
                self.content.save_state().rect(x, y, width, height).clip_nonzero().end_path();
                self.shapes(shapes);
                self.content.restore_state();
            }
        }
    }

    /// What is traced, painted.
    fn drawn(&mut self, paint: &Paint, trace: impl FnOnce(&mut Content)) {
        if paint.hidden {
            return;
        }
        self.look(paint);
        trace(&mut self.content);
        match (paint.fill, paint.stroke) {
            (Some(_), Some(_)) => self.content.fill_nonzero_and_stroke(),
            (Some(_), None) => self.content.fill_nonzero(),
            (None, Some(_)) => self.content.stroke(),
            (None, None) => self.content.end_path(),
        };
        self.content.restore_state();
    }

    /// Saves the state and sets the look of a shape.
    fn look(&mut self, paint: &Paint) {
        self.content.save_state();
        if paint.opacity < 1.0 {
            let percent = (paint.opacity * 100.0).round() as u8;
            self.opacities.insert(percent);
            self.content.set_parameters(Name(opacity_name(percent).as_bytes()));
        }
        let colour = |ink| rgb(ink).map(|part| f32::from(part) / 255.0);
        if let Some([red, green, blue]) = paint.fill.map(colour) {
            self.content.set_fill_rgb(red, green, blue);
        }
        if let Some([red, green, blue]) = paint.stroke.map(colour) {
            self.content.set_stroke_rgb(red, green, blue).set_line_width(paint.width as f32);
        }
        if let Some((dash, gap)) = paint.dash {
            self.content.set_dash_pattern([dash as f32, gap as f32], 0.0);
        }
    }

    /// Letters on a line; a stroke is a ground below them.
    fn text(&mut self, paint: &Paint, (x, y): (f32, f32), glyphs: &[Glyph]) {
        let numbers: Vec<u8> = glyphs.iter().flat_map(|glyph| glyph.number.to_be_bytes()).collect();
        self.used[usize::from(paint.bold)].extend(glyphs.iter().map(|glyph| (glyph.number, *glyph)));
        self.look(paint);
        self.content.set_line_join(LineJoinStyle::RoundJoin);
        self.content.begin_text().set_font(FONTS[usize::from(paint.bold)], paint.size as f32);
        let modes = [paint.stroke.map(|_| TextRenderingMode::Stroke), Some(TextRenderingMode::Fill)];
        for mode in modes.into_iter().flatten() {
            // Letters stand upright where y grows downwards.
            self.content.set_text_rendering_mode(mode).set_text_matrix([1.0, 0.0, 0.0, -1.0, x, y]).show(Str(&numbers));
        }
        self.content.end_text().restore_state();
    }
}

fn circle(content: &mut Content, (x, y): (f32, f32), radius: f32) {
    let (reach, edge) = (ROUND * radius, radius);
    content.move_to(x + edge, y);
    for ((ax, ay), (bx, by)) in
        [((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (-1.0, 0.0)), ((-1.0, 0.0), (0.0, -1.0)), ((0.0, -1.0), (1.0, 0.0))]
    {
        content.cubic_to(
            x + edge * ax + reach * bx,
            y + edge * ay + reach * by,
            x + edge * bx + reach * ax,
            y + edge * by + reach * ay,
            x + edge * bx,
            y + edge * by,
        );
    }
    content.close_path();
}

/// To a hundredth; what is not finite lies outside.
fn place((x, y): At) -> (f32, f32) {
    let hundredth = |value: f64| if value.is_finite() { ((value * 100.0).round() / 100.0) as f32 } else { -1e4 };
    (hundredth(x), hundredth(y))
}
