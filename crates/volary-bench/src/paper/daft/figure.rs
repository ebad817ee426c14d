//! Figure 2 as a picture.

use super::{DISKS, METHODS, Rates, SIZES};
use svg::Document;
use svg::node::element::{Line, Rectangle, Text};
use volary::bulk::Method;

/// Pixels of the bars of a disk, and around them.
const WIDTH: f64 = 360.0;
const HEIGHT: f64 = 240.0;
const AROUND: f64 = 50.0;
/// A bar.
const BAR: f64 = 28.0;

fn colour(method: Method) -> (&'static str, &'static str) {
    match method {
        Method::Vanilla => ("Vanilla", "#999999"),
        Method::DaftNm => ("DAFTNM", "#6699cc"),
        Method::DaftM => ("DAFTM", "#224488"),
    }
}

fn text(words: &str, (x, y): (f64, f64), anchor: &str) -> Text {
    Text::new(words)
        .set("x", x)
        .set("y", y)
        .set("text-anchor", anchor)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
}

/// Draws the rates: one part for each disk.
pub(super) fn picture(rates: &Rates) -> Document {
    let (width, height) = (WIDTH + 2.0 * AROUND, HEIGHT + 2.0 * AROUND);
    let mut document = Document::new()
        .set("viewBox", (0, 0, width * DISKS.len() as f64, height))
        .set("width", width * DISKS.len() as f64)
        .set("height", height);
    for (number, (disk, model)) in (0_i32..).zip(DISKS) {
        let left = f64::from(number) * width + AROUND;
        // The disk's own rate is the top.
        document = axes(document, left, (disk, model.outer));
        for (group, (kib, rates)) in (0_i32..).zip(rates.of(disk)) {
            let step = WIDTH / SIZES.len() as f64;
            let middle = left + step * (f64::from(group) + 0.5);
            let from = middle - BAR * METHODS.len() as f64 / 2.0;
            for (bar, (method, rate)) in (0_i32..).zip(METHODS.into_iter().zip(rates)) {
                let tall = HEIGHT * rate / model.outer;
                let (_, colour) = colour(method);
                let x = from + BAR * f64::from(bar);
                let y = AROUND + HEIGHT - tall;
                let bar = Rectangle::new()
                    .set("x", x)
                    .set("y", y)
                    .set("width", BAR - 4.0)
                    .set("height", tall)
                    .set("fill", colour);
                let words = format!("{rate:.0}");
                let words = text(&words, (x + BAR / 2.0 - 2.0, y - 3.0), "middle");
                document = document.add(bar).add(words);
            }
            let words = format!("{kib} KiB");
            let below = (middle, AROUND + HEIGHT + 16.0);
            document = document.add(text(&words, below, "middle"));
        }
    }
    document
}

fn axes(document: Document, left: f64, (disk, top): (&str, f64)) -> Document {
    let line = |from: (f64, f64), to: (f64, f64)| {
        Line::new()
            .set("x1", from.0)
            .set("y1", from.1)
            .set("x2", to.0)
            .set("y2", to.1)
            .set("stroke", "black")
    };
    let bottom = AROUND + HEIGHT;
    let mut document = document
        .add(line((left, AROUND), (left, bottom)))
        .add(line((left, bottom), (left + WIDTH, bottom)));
    for part in 0..=4 {
        let part = f64::from(part) / 4.0;
        let words = format!("{:.0}", top * part);
        let at = (left - 6.0, bottom - HEIGHT * part + 4.0);
        document = document.add(text(&words, at, "end"));
    }
    let title = format!("{disk}, MB/s");
    document = document.add(text(&title, (left, AROUND - 28.0), "start"));
    for (number, method) in (0_i32..).zip(METHODS) {
        let (name, colour) = colour(method);
        let x = left + 120.0 + 85.0 * f64::from(number);
        let mark = Rectangle::new()
            .set("x", x)
            .set("y", AROUND - 38.0)
            .set("width", 10)
            .set("height", 10)
            .set("fill", colour);
        let words = text(name, (x + 14.0, AROUND - 28.0), "start");
        document = document.add(mark).add(words);
    }
    document
}
