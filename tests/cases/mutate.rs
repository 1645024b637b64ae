//! Texts made worse at random: bytes, words, lines, splices, brackets, numbers.

use super::generate::{Layout, laid, program};
use super::random::Random;

/// What mutations are made of.
pub struct Material {
    pub texts: Vec<String>,
    /// Every different piece of the texts.
    pieces: Vec<String>,
}

/// Numbers at the borders of what is allowed.
const NUMBERS: [&str; 22] = [
    "0",
    "1",
    "2",
    "3",
    "-1",
    "0.5",
    "1e-9",
    "10_000",
    "10_001",
    "1M",
    "2.5k",
    "1e12",
    "9_007_199_254_740_992",
    "9_007_199_254_740_993",
    "18446744073709551616",
    "1e308",
    "1e400",
    "0%",
    "5%",
    "100%",
    "1..3",
    ".1",
];
/// A text is never longer: what is too long is refused at once, and teaches nothing.
const LONGEST: usize = 64 << 10;

impl Material {
    pub fn new(texts: Vec<String>) -> Self {
        let mut pieces: Vec<String> = texts.iter().flat_map(|text| cut(text)).map(str::to_owned).collect();
        pieces.sort();
        pieces.dedup();
        Self { texts, pieces }
    }

    /// One of the texts, or one that was made for the purpose and is right.
    fn text(&self, random: &mut Random) -> String {
        if random.once_in(2) { self.texts[random.below(self.texts.len())].clone() } else { made(random) }
    }

    /// A text that was a good one, or never was.
    pub fn mutant(&self, random: &mut Random) -> String {
        if random.once_in(40) {
            return self.noise(random);
        }
        let mut text = self.text(random);
        // Most have one fault only: the later stages are reached by texts that are nearly right.
        for _ in 0..1 + [0, 0, 0, 0, 0, 1, 2, 8][random.below(8)] {
            text = match random.below(14) {
                0 => bytes(&text, random),
                1 | 2 => self.words(&text, random),
                3 | 4 | 10 | 11 | 12 => numbers(&text, random),
                5 => lines(&text, &self.text(random), random),
                6 => self.splice(&text, random),
                7 => brackets(&text, random),
                _ => self.exchange(&text, random),
            };
        }
        let end = (0..=LONGEST.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
        text.truncate(end);
        text
    }

    /// Bytes, letters or pieces without any order.
    fn noise(&self, random: &mut Random) -> String {
        let length = random.below(400);
        match random.below(3) {
            0 => String::from_utf8_lossy(&(0..length).map(|_| random.below(256) as u8).collect::<Vec<_>>()).into_owned(),
            1 => (0..length).filter_map(|_| char::from_u32(random.below(0x11_0000) as u32)).collect(),
            _ => (0..length).map(|_| self.pieces[random.below(self.pieces.len())].as_str()).collect(),
        }
    }

    /// Pieces deleted, doubled, moved, put in.
    fn words(&self, text: &str, random: &mut Random) -> String {
        let mut pieces = cut(text);
        let (at, other) = (random.below(pieces.len()), random.below(pieces.len()));
        match random.below(5) {
            _ if pieces.is_empty() => {}
            0 => drop(pieces.remove(at)),
            1 => pieces.insert(at, pieces[at]),
            2 => pieces.swap(at, other),
            3 => pieces.insert(at, &self.pieces[random.below(self.pieces.len())]),
            _ => pieces[at] = &self.pieces[random.below(self.pieces.len())],
        }
        pieces.concat()
    }

    /// A word in the place of another word, so that the shape stays.
    fn exchange(&self, text: &str, random: &mut Random) -> String {
        let mut pieces = cut(text);
        let is_word = |piece: &str| piece.starts_with(|letter: char| letter.is_alphabetic());
        let words: Vec<usize> = (0..pieces.len()).filter(|at| is_word(pieces[*at])).collect();
        if words.is_empty() {
            return text.to_owned();
        }
        let at = words[random.below(words.len())];
        if random.once_in(2) {
            pieces.swap(at, words[random.below(words.len())]);
        } else {
            let others: Vec<&str> = self.pieces.iter().map(String::as_str).filter(|piece| is_word(piece)).collect();
            pieces[at] = random.pick(&others);
        }
        pieces.concat()
    }

    /// The beginning of one text, and the end of another.
    fn splice(&self, text: &str, random: &mut Random) -> String {
        let other = self.text(random);
        let (a, b) = (cut(text), cut(&other));
        let (a_end, b_start) = (random.below(a.len() + 1), random.below(b.len() + 1));
        a[..a_end].concat() + &b[b_start..].concat()
    }
}

/// A program of nobody's.
fn made(random: &mut Random) -> String {
    let layout = if random.once_in(4) { Layout::Odd } else { Layout::Plain };
    laid(&program(random), layout, random)
}

/// A text in pieces: words, numbers, texts, blanks, single signs. Their sum is the text.
fn cut(text: &str) -> Vec<&str> {
    let kind = |letter: char| match letter {
        _ if letter.is_alphanumeric() || letter == '_' || letter == '.' => 1,
        ' ' | '\t' => 2,
        _ => 0,
    };
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let end = match kind(first) {
            0 => first.len_utf8(),
            own => rest.find(|letter| kind(letter) != own).unwrap_or(rest.len()),
        };
        let (piece, behind) = rest.split_at(end);
        pieces.push(piece);
        rest = behind;
    }
    pieces
}

fn bytes(text: &str, random: &mut Random) -> String {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..1 + random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            _ if bytes.is_empty() => {}
            0 => drop(bytes.remove(at)),
            1 => bytes.insert(at, random.below(256) as u8),
            2 => bytes[at] = random.below(128) as u8,
            _ => bytes[at] ^= 1 << random.below(8),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Another number in the place of one.
fn numbers(text: &str, random: &mut Random) -> String {
    let mut pieces = cut(text);
    let numbers: Vec<usize> =
        (0..pieces.len()).filter(|at| pieces[*at].starts_with(|letter: char| letter.is_ascii_digit())).collect();
    if !numbers.is_empty() {
        pieces[numbers[random.below(numbers.len())]] = random.pick(&NUMBERS);
    }
    pieces.concat()
}

/// Lines deleted, doubled, moved, taken from another text.
fn lines(text: &str, other: &str, random: &mut Random) -> String {
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let others: Vec<&str> = other.split_inclusive('\n').collect();
    let (at, to) = (random.below(lines.len()), random.below(lines.len()));
    match random.below(4) {
        _ if lines.is_empty() || others.is_empty() => {}
        0 => drop(lines.remove(at)),
        1 => lines.insert(to, lines[at]),
        2 => lines.swap(at, to),
        _ => lines.insert(to, others[random.below(others.len())]),
    }
    lines.concat()
}

/// Brackets around a part, a part again and again.
fn brackets(text: &str, random: &mut Random) -> String {
    let pieces = cut(text);
    let start = random.below(pieces.len() + 1);
    let end = (start + random.below(12)).min(pieces.len());
    let deep = [1, 2, 10, 62, 63, 64, 65, 300][random.below(8)];
    let inside = pieces[start..end].concat();
    let middle = match random.below(6) {
        0 => inside.repeat(deep),
        1 => "(".repeat(deep) + &inside,
        2 => format!("{}{inside}{}", "-".repeat(deep), "}".repeat(deep)),
        kind => {
            let (open, close) = [("(", ")"), ("[", "]"), ("{", "}")][kind % 3];
            format!("{}{inside}{}", open.repeat(deep), close.repeat(deep))
        }
    };
    format!("{}{middle}{}", pieces[..start].concat(), pieces[end..].concat())
}
