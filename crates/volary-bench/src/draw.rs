//! Shapes of pictures. Places have two digits behind the point, so that a picture is the same text on each machine.

use svg::node::element::{Line, Rectangle, Text};

/// Returns a place as pictures have it.
pub fn near(place: f64) -> String {
    format!("{place:.2}")
}

/// A place of a picture, from its left and upper edges on.
#[derive(Clone, Copy, Debug)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Down.
    pub y: f64,
}

impl Point {
    /// Returns the point at these places.
    pub const fn new(x: f64, y: f64) -> Self {
        Self { x, y }
    }
}

/// Returns words at a place, which is their `start`, `middle` or `end`.
pub fn text(words: &str, at: Point, anchor: &str) -> Text {
    Text::new(words)
        .set("x", near(at.x))
        .set("y", near(at.y))
        .set("text-anchor", anchor)
}

/// Returns a straight line.
pub fn line(from: Point, to: Point, colour: &str, width: f64) -> Line {
    Line::new()
        .set("x1", near(from.x))
        .set("y1", near(from.y))
        .set("x2", near(to.x))
        .set("y2", near(to.y))
        .set("stroke", colour)
        .set("stroke-width", width)
}

/// Returns a filled rectangle with this upper left corner.
pub fn rectangle(corner: Point, width: f64, height: f64, colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", near(corner.x))
        .set("y", near(corner.y))
        .set("width", near(width))
        .set("height", near(height))
        .set("fill", colour)
}

/// Returns the colour of this number; after the last one they begin anew.
pub fn colour<'a>(colours: &[&'a str], number: usize) -> &'a str {
    let of = number.checked_rem(colours.len());
    of.and_then(|of| colours.get(of))
        .copied()
        .unwrap_or("black")
}
