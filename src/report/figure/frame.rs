//! The frame of a panel: title, axes, grid, phase boundaries, labels beside the ends of lines.

use super::WIDTH;
use super::drawing::{Anchor, Drawing};
use super::scale::Scale;

/// What runs along the bottom.
pub enum Bottom {
    /// Numbers.
    Numbers(Scale),
    /// Names, each with a place of its own.
    Names(Vec<String>),
}

/// A panel with its axes.
pub struct Frame {
    /// What is drawn so far.
    pub drawing: Drawing,
    bottom: Bottom,
    y: Scale,
    left: f64,
    right: f64,
    top: f64,
    base: f64,
}

/// About the width of a text of the panel's size.
pub fn width_of(text: &str) -> f64 {
    text.chars().count() as f64 * 6.7
}

impl Frame {
    /// Draws title, grid and axes. `labels` will stand beside the right edge, and get the room that they need.
    pub fn new(title: &str, y_title: &str, x_title: &str, y: Scale, bottom: Bottom, labels: &[String]) -> Self {
        const HEIGHT: f64 = 252.0;
        let ticks = y.ticks(5);
        let widest = ticks.iter().map(|(_, text)| width_of(text)).fold(18.0, f64::max);
        let room = labels.iter().map(|label| width_of(label)).fold(0.0, f64::max).min(130.0);
        let (left, right) = (widest + 12.0, WIDTH - if room > 0.0 { room + 12.0 } else { 10.0 });
        let mut frame = Self { drawing: Drawing::new(WIDTH, HEIGHT), bottom, y, left, right, top: 46.0, base: HEIGHT - 38.0 };
        frame.drawing.text("title", (0.0, 14.0), Anchor::Start, title);
        frame.drawing.text("label", (0.0, 31.0), Anchor::Start, y_title);
        for (value, text) in ticks {
            let at = frame.y(value);
            frame.drawing.line("grid", (frame.left, at), (frame.right, at));
            frame.drawing.text("tick", (frame.left - 6.0, at + 3.8), Anchor::End, &text);
        }
        frame.drawing.line("axis", (frame.left, frame.base), (frame.right, frame.base));
        frame.draw_bottom();
        frame.drawing.text("label", (frame.right, HEIGHT - 4.0), Anchor::End, x_title);
        frame
    }

    fn draw_bottom(&mut self) {
        let marks: Vec<(f64, String)> = match &self.bottom {
            Bottom::Numbers(scale) => {
                let mut marks: Vec<(f64, String)> = Vec::new();
                for (value, text) in scale.ticks(5) {
                    let x = self.left + scale.place(value) * (self.right - self.left);
                    let free =
                        marks.last().is_none_or(|(before, label)| x - before > (width_of(label) + width_of(&text)) / 2.0 + 8.0);
                    if free {
                        marks.push((x, text));
                    }
                }
                marks
            }
            Bottom::Names(names) => names.iter().enumerate().map(|(place, name)| (self.name_at(place), name.clone())).collect(),
        };
        let numbers = matches!(self.bottom, Bottom::Numbers(_));
        for (x, text) in marks {
            if numbers {
                self.drawing.line("axis", (x, self.base), (x, self.base + 4.0));
            }
            self.drawing.text("tick", (x, self.base + 17.0), Anchor::Middle, &text);
        }
    }

    /// The place of a number along the bottom.
    pub fn x(&self, value: f64) -> f64 {
        match &self.bottom {
            Bottom::Numbers(scale) => self.left + scale.place(value) * (self.right - self.left),
            Bottom::Names(_) => self.name_at(value.max(0.0) as usize),
        }
    }

    /// The middle of a name's place along the bottom.
    pub fn name_at(&self, place: usize) -> f64 {
        self.left + (place as f64 + 0.5) * self.slot()
    }

    /// The room of one name.
    pub fn slot(&self) -> f64 {
        let count = match &self.bottom {
            Bottom::Names(names) => names.len().max(1),
            Bottom::Numbers(_) => 1,
        };
        (self.right - self.left) / count as f64
    }

    /// The place of a value.
    pub fn y(&self, value: f64) -> f64 {
        self.base - self.y.place(value) * (self.base - self.top)
    }

    /// The bottom edge.
    pub fn base(&self) -> f64 {
        self.base
    }

    /// A horizontal line through a value, where it is in range.
    pub fn level(&mut self, class: &str, value: f64) {
        let at = self.y(value);
        if (self.top..=self.base).contains(&at) {
            self.drawing.line(class, (self.left, at), (self.right, at));
        }
    }

    /// A vertical line at a step.
    pub fn boundary(&mut self, step: u64) {
        self.upright("boundary", step as f64);
    }

    /// A vertical line through a number along the bottom.
    pub fn upright(&mut self, class: &str, value: f64) {
        let at = self.x(value);
        self.drawing.line(class, (at, self.top), (at, self.base));
    }

    /// Draws inside the axes only.
    pub fn clipped(&mut self, draw: impl FnOnce(&mut Drawing)) {
        let (corner, size) = ((self.left, self.top - 2.0), (self.right - self.left + 3.0, self.base - self.top + 3.0));
        self.drawing.clipped(corner, size, draw);
    }

    /// Labels beside the right edge at the heights of their lines, moved apart where they would touch; of more than there is room for, some from top
    /// to bottom, and how many others there are.
    pub fn labels(&mut self, labels: &[(f64, String, usize)]) {
        const LINE: f64 = 14.0;
        let mut placed: Vec<(f64, &str, String)> = labels
            .iter()
            .map(|(at, text, colour)| (at.clamp(self.top, self.base), text.as_str(), format!("name c{colour}")))
            .collect();
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (all, room) = (placed.len(), ((self.base - self.top) / LINE) as usize);
        let more = format!("and {} more", (all + 1).saturating_sub(room));
        if all > room {
            let kept: std::collections::BTreeSet<usize> = (0..room - 1).map(|place| place * (all - 1) / (room - 2)).collect();
            let mut place = 0;
            placed.retain(|_| {
                place += 1;
                kept.contains(&(place - 1))
            });
            placed.push((self.base, &more, "label".to_owned()));
        }
        // Downwards, then back up from the base.
        for next in 1..placed.len() {
            placed[next].0 = placed[next].0.max(placed[next - 1].0 + LINE);
        }
        let mut floor = self.base - 4.0;
        for label in placed.iter_mut().rev() {
            label.0 = label.0.min(floor);
            floor = label.0 - LINE;
        }
        for (at, text, class) in placed {
            self.drawing.text(&class, (self.right + 7.0, at + 4.0), Anchor::Start, text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::drawing::Shape;
    use super::*;

    /// Heights and texts of labels.
    fn labelled(count: usize) -> Vec<(f64, String)> {
        let mut frame = Frame::new("", "", "", Scale::linear(0.0, 1.0), Bottom::Numbers(Scale::linear(0.0, 1.0)), &[]);
        let before = frame.drawing.shapes.len();
        frame.labels(&(0..count).map(|place| (100.0 + place as f64, format!("arm {place}"), place)).collect::<Vec<_>>());
        let text = |shape: &Shape| match shape {
            Shape::Text { at, text, .. } => (at.1, text.clone()),
            other => panic!("{other:?}"),
        };
        frame.drawing.shapes[before..].iter().map(text).collect()
    }

    #[test]
    fn labels_stay_beside_the_panel() {
        for count in [1, 3, 12, 13, 40] {
            let found = labelled(count);
            assert!(found.windows(2).all(|pair| pair[1].0 - pair[0].0 >= 13.9), "{found:?}");
            assert!(found.iter().all(|(at, _)| (46.0..=252.0 - 38.0).contains(at)), "{count}: {found:?}");
        }
        assert_eq!(labelled(12).len(), 12);
        let many = labelled(40);
        assert_eq!(
            (many.len(), many[0].1.as_str(), many[10].1.as_str(), many[11].1.as_str()),
            (12, "arm 0", "arm 39", "and 29 more")
        );
    }
}
