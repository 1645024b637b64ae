//! A drawing as a list of shapes, before it is any format: what figures are made of.
//!
//! Owns the shapes. Deliberately knows neither colour nor format: a shape has words of [`super::paint`], and [`super::svg`] and [`super::tikz`]
//! write them. Lengths are in units of the page's small text; y grows downwards.

use super::{svg, tikz};

/// A point.
pub type At = (f64, f64);

/// A drawing under way.
#[derive(Debug, Clone, PartialEq)]
pub struct Drawing {
    /// In its own units.
    pub size: At,
    /// In the order in which they cover one another.
    pub shapes: Vec<Shape>,
}

/// Where a text is anchored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// What is drawn; `class` is words of [`super::paint`].
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    Line { class: String, from: At, to: At },
    Path { class: String, points: Vec<At>, closed: bool, values: Option<Values> },
    Rect { class: String, corner: At, size: At },
    Dot { class: String, at: At, radius: f64, title: String },
    Text { class: String, at: At, anchor: Anchor, text: String },
    Clipped { corner: At, size: At, shapes: Vec<Shape> },
}

/// What a curve shows, for whoever points at it: its name and (step, value), parallel to its points.
#[derive(Debug, Clone, PartialEq)]
pub struct Values {
    pub name: String,
    pub values: Vec<(u64, f64)>,
}

/// A finished drawing with what it says to those who do not see it.
#[derive(Debug, Clone, PartialEq)]
pub struct Panel {
    pub label: String,
    pub drawing: Drawing,
}

impl Shape {
    /// The same shape elsewhere.
    pub fn moved(&self, (right, down): At) -> Self {
        let to = |(x, y): At| (x + right, y + down);
        let mut moved = self.clone();
        match &mut moved {
            Shape::Line { from, to: end, .. } => (*from, *end) = (to(*from), to(*end)),
            Shape::Path { points, .. } => points.iter_mut().for_each(|point| *point = to(*point)),
            Shape::Rect { corner, .. } => *corner = to(*corner),
            Shape::Dot { at, .. } | Shape::Text { at, .. } => *at = to(*at),
            Shape::Clipped { corner, shapes, .. } => {
                *corner = to(*corner);
                shapes.iter_mut().for_each(|shape| *shape = shape.moved((right, down)));
            }
        }
        moved
    }
}

impl Panel {
    /// For a page whose style sheet has the colours.
    pub fn svg(&self) -> String {
        svg::inline(self)
    }
    /// A file of its own.
    pub fn file(&self) -> String {
        svg::file(self)
    }
    /// For LaTeX.
    pub fn tikz(&self) -> String {
        tikz::picture(self)
    }
}

impl serde::Serialize for Panel {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut panel = serializer.serialize_struct("Panel", 3)?;
        panel.serialize_field("label", &self.label)?;
        panel.serialize_field("svg", &self.svg())?;
        panel.serialize_field("tikz", &self.tikz())?;
        panel.end()
    }
}

impl Drawing {
    pub fn new(width: f64, height: f64) -> Self {
        Self { size: (width, height), shapes: Vec::new() }
    }

    pub fn line(&mut self, class: &str, from: At, to: At) {
        self.shapes.push(Shape::Line { class: class.to_owned(), from, to });
    }

    pub fn path(&mut self, class: &str, points: &[At]) {
        self.track(class, points, false, None);
    }

    /// A path that says its values when it is pointed at.
    pub fn curve(&mut self, class: &str, points: &[At], values: Values) {
        self.track(class, points, false, Some(values));
    }

    pub fn area(&mut self, class: &str, points: &[At]) {
        self.track(class, points, true, None);
    }

    fn track(&mut self, class: &str, points: &[At], closed: bool, values: Option<Values>) {
        if points.len() > 1 + usize::from(closed) {
            self.shapes.push(Shape::Path { class: class.to_owned(), points: points.to_vec(), closed, values });
        }
    }

    pub fn rect(&mut self, class: &str, corner: At, (width, height): At) {
        self.shapes.push(Shape::Rect { class: class.to_owned(), corner, size: (width.max(0.0), height.max(0.0)) });
    }

    /// With what it says when it is pointed at.
    pub fn dot(&mut self, class: &str, at: At, radius: f64, title: &str) {
        self.shapes.push(Shape::Dot { class: class.to_owned(), at, radius, title: title.to_owned() });
    }

    pub fn text(&mut self, class: &str, at: At, anchor: Anchor, text: &str) {
        self.shapes.push(Shape::Text { class: class.to_owned(), at, anchor, text: text.to_owned() });
    }

    /// What is drawn inside shows only within a rectangle.
    pub fn clipped(&mut self, corner: At, size: At, draw: impl FnOnce(&mut Self)) {
        let mut inner = Self { size: self.size, shapes: Vec::new() };
        draw(&mut inner);
        self.shapes.push(Shape::Clipped { corner, size, shapes: inner.shapes });
    }

    pub fn finish(self, label: &str) -> Panel {
        Panel { label: label.to_owned(), drawing: self }
    }
}
