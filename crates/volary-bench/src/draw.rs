//! Shapes of pictures. Places have two digits behind the point, so that a picture is the same text on each machine.

use svg::node::element::{Line, Rectangle, Text};

/// Returns a place as pictures have it.
pub fn near(place: f64) -> String {
    format!("{place:.2}")
}

/// Returns words at a place, which is their `start`, `middle` or `end`.
pub fn text(words: &str, (x, y): (f64, f64), anchor: &str) -> Text {
    Text::new(words)
        .set("x", near(x))
        .set("y", near(y))
        .set("text-anchor", anchor)
}

/// Returns a straight line.
pub fn line(from: (f64, f64), to: (f64, f64), colour: &str, width: f64) -> Line {
    Line::new()
        .set("x1", near(from.0))
        .set("y1", near(from.1))
        .set("x2", near(to.0))
        .set("y2", near(to.1))
        .set("stroke", colour)
        .set("stroke-width", width)
}

/// Returns a filled rectangle with its upper left corner at a place.
pub fn rectangle((x, y): (f64, f64), (width, height): (f64, f64), colour: &str) -> Rectangle {
    Rectangle::new()
        .set("x", near(x))
        .set("y", near(y))
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
