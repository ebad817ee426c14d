//! How many times as fast volary is, drawn: a line for each task and rival.

use crate::draw::{self, Point, near, text};
use crate::peers::Row;
use svg::Document;
use svg::node::element::Circle;

/// Least and most times that are drawn: a factor of 1024 in all.
const LEAST: f64 = 1.0 / 16.0;
const MOST: f64 = 64.0;
/// Width of the names, and of the field right of them.
const NAMES: f64 = 360.0;
const FIELD: f64 = 520.0;
/// Height of a line, and of the scale above all.
const LINE: f64 = 18.0;
const SCALE: f64 = 24.0;

const HELD: &str = "#2a7a3a";
const MISSED: &str = "#b03a2e";
const GREY: &str = "#bbbbbb";

/// Draws these rows, as long as there are some: on a scale of powers of two the ratio of the medians as a point, that of
/// the extremes as a line, the aim as a stroke.
pub(super) fn plot(rows: &[&Row]) -> Option<String> {
    if rows.is_empty() {
        return None;
    }
    let height = SCALE + LINE * rows.len() as f64 + 4.0;
    let mut document = Document::new()
        .set("viewBox", (0, 0, NAMES + FIELD + 20.0, height))
        .set("width", NAMES + FIELD + 20.0)
        .set("font-family", "sans-serif")
        .set("font-size", 12);
    for times in scale() {
        let word = match times {
            1.. => format!("{times}"),
            _ => format!("1/{}", -times),
        };
        let at = x(match times {
            1.. => f64::from(times),
            _ => -1.0 / f64::from(times),
        });
        let colour = if times == 1 { "#555555" } else { "#e4e4e4" };
        document = document
            .add(draw::line(
                Point::new(at, SCALE),
                Point::new(at, height),
                colour,
                1.0,
            ))
            .add(text(&word, Point::new(at, SCALE - 8.0), "middle"));
    }
    for (number, row) in (0u32..).zip(rows) {
        document = line(document, row, SCALE + LINE * (f64::from(number) + 0.5));
    }
    Some(document.to_string())
}

/// Returns the scale's numbers; negative ones are those of fractions.
fn scale() -> impl Iterator<Item = i32> {
    [-16, -4, 1, 4, 16, 64].into_iter()
}

fn line(document: Document, row: &Row, y: f64) -> Document {
    let colour = if row.ratio >= row.aim { HELD } else { MISSED };
    let name = format!("{}: {}", row.task, row.rival);
    let (least, most) = (
        row.theirs.least / row.ours.most,
        row.theirs.most / row.ours.least,
    );
    let (from, to) = (Point::new(x(least), y), Point::new(x(most), y));
    let mut document = document
        .add(text(&name, Point::new(NAMES - 10.0, y + 4.0), "end"))
        .add(draw::line(from, to, colour, 2.0));
    if row.aim > 0.0 {
        let aim = x(row.aim);
        let (from, to) = (Point::new(aim, y - 6.0), Point::new(aim, y + 6.0));
        document = document.add(draw::line(from, to, GREY, 3.0));
    }
    let point = Circle::new()
        .set("cx", near(x(row.ratio)))
        .set("cy", near(y))
        .set("r", 4)
        .set("fill", colour);
    document.add(point)
}

/// Returns where so many times are, from left to right.
fn x(times: f64) -> f64 {
    let times = if times.is_finite() { times } else { MOST };
    let part = (times.clamp(LEAST, MOST) / LEAST).log2() / (MOST / LEAST).log2();
    NAMES + part * FIELD
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_is_one_of_powers_with_its_ends_for_what_is_beyond() {
        assert_eq!((x(LEAST), x(MOST)), (NAMES, NAMES + FIELD));
        assert_eq!(x(4.0) - x(1.0), x(16.0) - x(4.0));
        assert_eq!((x(0.0), x(f64::INFINITY)), (NAMES, NAMES + FIELD));
        assert_eq!(x(f64::NAN), NAMES + FIELD);
    }
}
