//! How shapes look, once for every format: strokes, fills, sizes of text, and the palette.
//!
//! Owns the words that a shape's class is made of. The palette's home is `stdlib/reports/style.css`: a page takes its colours from there by name,
//! light or dark; a file of its own has the light ones. Invariant: a shape's look depends on its class alone.

/// The style sheet of the page, which has the palette.
pub const STYLE: &str = include_str!("../../../stdlib/reports/style.css");

/// The name of a colour in the palette.
pub type Ink = &'static str;

/// The look of a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paint {
    pub stroke: Option<Ink>,
    pub width: f64,
    /// Lengths of dash and gap.
    pub dash: Option<(f64, f64)>,
    pub fill: Option<Ink>,
    pub opacity: f64,
    /// Of text.
    pub size: f64,
    pub bold: bool,
    /// It is there to be pointed at and not to be seen.
    pub hidden: bool,
}

/// Colours of series, in order.
pub const SERIES: [Ink; 8] = ["k0", "k1", "k2", "k3", "k4", "k5", "k6", "k7"];

/// All colours that a drawing may have.
pub fn inks() -> impl Iterator<Item = Ink> {
    SERIES.into_iter().chain(["ink", "soft", "grid", "paper", "yes", "no", "open"])
}

/// The look of a class.
pub fn paint(class: &str) -> Paint {
    let own = class.split(' ').find_map(series).unwrap_or("ink");
    let plain = Paint { stroke: None, width: 1.0, dash: None, fill: None, opacity: 1.0, size: 12.0, bold: false, hidden: false };
    class.split(' ').fold(plain, |paint, word| match word {
        "title" => Paint { fill: Some("ink"), size: 13.0, bold: true, ..paint },
        "label" | "tick" => Paint { fill: Some("soft"), size: 11.0, ..paint },
        "halo" => Paint { fill: Some("ink"), stroke: Some("paper"), width: 4.0, ..paint },
        "inverse" => Paint { fill: Some("paper"), size: 10.5, bold: true, ..paint },
        "edge" => Paint { stroke: Some("soft"), ..paint },
        "name" => Paint { fill: Some(own), size: 11.5, bold: true, ..paint },
        "grid" => Paint { stroke: Some("grid"), ..paint },
        "axis" => Paint { stroke: Some("soft"), ..paint },
        "zero" => Paint { stroke: Some("ink"), ..paint },
        "boundary" => Paint { stroke: Some("soft"), dash: Some((3.0, 4.0)), opacity: 0.75, ..paint },
        "curve" => Paint { stroke: Some(own), width: 1.9, ..paint },
        "dashed" => Paint { dash: Some((5.0, 4.0)), ..paint },
        "band" => Paint { fill: Some(own), opacity: 0.17, ..paint },
        "whisker" => Paint { stroke: Some(own), width: 2.0, ..paint },
        "dot" => Paint { fill: Some(own), stroke: Some("paper"), ..paint },
        "seed" => Paint { fill: Some(own), opacity: 0.55, ..paint },
        "bar" => Paint { fill: Some(own), opacity: 0.88, ..paint },
        "error" => Paint { stroke: Some("ink"), width: 1.2, ..paint },
        "margin" => Paint { fill: Some("ink"), opacity: 0.09, ..paint },
        "hover" => Paint { hidden: true, ..paint },
        "old" => Paint { opacity: 0.35, ..paint },
        "recent" => Paint { opacity: 0.6, ..paint },
        _ => paint,
    })
}

/// The colour that a word of a class stands for.
fn series(word: &str) -> Option<Ink> {
    match word {
        "supported" => Some("yes"),
        "refuted" => Some("no"),
        "undecided" => Some("open"),
        _ => SERIES.get(word.strip_prefix('c')?.parse::<usize>().ok()?).copied(),
    }
}

/// A colour of the light palette as six hexadecimal digits.
pub fn light(ink: Ink) -> &'static str {
    let at = STYLE.find(&format!("--{ink}: #")).map_or(0, |at| at + ink.len() + 5);
    STYLE.get(at..at + 6).filter(|digits| digits.chars().all(|c| c.is_ascii_hexdigit())).unwrap_or("000000")
}

/// A colour of the light palette as red, green and blue.
#[cfg(feature = "figures")]
pub fn rgb(ink: Ink) -> [u8; 3] {
    let [_, red, green, blue] = u32::from_str_radix(light(ink), 16).unwrap_or_default().to_be_bytes();
    [red, green, blue]
}
