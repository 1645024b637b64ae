//! The letters of figures that are files: two weights of one family, shipped with the program (`stdlib/fonts/README.md`).
//!
//! Owns the choice of glyphs and their widths. Deliberately shapes nothing: one glyph for a character, from left to right. Invariant: a text has the
//! same glyphs and the same width on every machine; what the family lacks shows as a box.

use std::sync::LazyLock;

use ttf_parser::{Face, GlyphId, OutlineBuilder};

use super::drawing::Anchor;

/// One weight.
pub struct Letters {
    /// Its PostScript name.
    pub name: &'static str,
    /// The file.
    pub bytes: &'static [u8],
    /// The file as read.
    pub face: Face<'static>,
}

/// A character as it is drawn.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Glyph {
    /// Its number in the file; 0 for what is not there.
    pub number: u16,
    /// What it stands for.
    pub character: char,
    /// How far it moves on, in sizes of the text.
    pub advance: f64,
}

static WEIGHTS: LazyLock<[Letters; 2]> = LazyLock::new(|| {
    let book: &[u8] = include_bytes!("../../../stdlib/fonts/DejaVuSansCondensed.ttf");
    let bold: &[u8] = include_bytes!("../../../stdlib/fonts/DejaVuSansCondensed-Bold.ttf");
    [("DejaVuSansCondensed", book), ("DejaVuSansCondensed-Bold", bold)].map(|(name, bytes)| Letters {
        name,
        bytes,
        face: Face::parse(bytes, 0).expect("this is a bug in xrun: a shipped font cannot be read"),
    })
});

/// Those of a weight.
pub fn letters(bold: bool) -> &'static Letters {
    &WEIGHTS[usize::from(bold)]
}

impl Letters {
    /// A text, glyph by glyph.
    pub fn glyphs(&self, text: &str) -> Vec<Glyph> {
        let glyph = |character: char| {
            let id = self.face.glyph_index(character).unwrap_or(GlyphId(0));
            Glyph { number: id.0, character, advance: self.sizes(self.face.glyph_hor_advance(id).unwrap_or(0).into()) }
        };
        text.chars().map(|c| glyph(if c.is_control() { ' ' } else { c })).collect()
    }

    /// A length of the file's own in sizes of the text.
    pub fn sizes(&self, units: f64) -> f64 {
        units / f64::from(self.face.units_per_em())
    }

    /// Draws the outline of a glyph; in the file's own units, upwards.
    pub fn outline(&self, glyph: Glyph, pen: &mut dyn OutlineBuilder) {
        // What has no outline is a blank.
        let _ = self.face.outline_glyph(GlyphId(glyph.number), pen);
    }
}

/// How far before the place where it is anchored a text begins, in sizes of the text.
pub fn before(glyphs: &[Glyph], anchor: Anchor) -> f64 {
    let width: f64 = glyphs.iter().map(|glyph| glyph.advance).sum();
    match anchor {
        Anchor::Start => 0.0,
        Anchor::Middle => width / 2.0,
        Anchor::End => width,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_figures_say_has_letters() {
        for bold in [false, true] {
            let text = "Δ = post − pre, 95 % ± 3→6→9 α β τ ₀ · × ≤ “grow” [pre, 3e-4] Größe Ж";
            let glyphs = letters(bold).glyphs(text);
            let missing: Vec<char> = glyphs.iter().filter(|glyph| glyph.number == 0).map(|glyph| glyph.character).collect();
            assert!(missing.is_empty(), "{missing:?}");
            assert!(glyphs.iter().all(|glyph| (0.1..1.3).contains(&glyph.advance)));
        }
        let beyond = letters(false).glyphs("中\n");
        assert_eq!((beyond[0].number, beyond[1].character), (0, ' '));
        assert!(
            (before(&letters(false).glyphs("ab"), Anchor::Middle) * 2.0 - before(&letters(false).glyphs("ab"), Anchor::End))
                .abs()
                < 1e-12
        );
    }
}
