//! Tables as pictures.

pub(super) mod logarithmic;

use super::table::{FigureKind, Table};
use crate::draw::{self, Point, near, rectangle, text};
use svg::Document;
use svg::node::element::{Circle, Polyline};

/// The field in which lines and bars are, and the space around it.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 320.0;
const LEFT: f64 = 70.0;
const TOP: f64 = 48.0;
const BELOW: f64 = 56.0;

const COLOURS: [&str; 6] = [
    "#224488", "#c0503a", "#3a8a4a", "#888888", "#8a5aa0", "#c09020",
];

/// Returns the name of a table's picture and the picture as SVG, if the table is a figure.
pub fn drawn(table: &Table) -> Option<(&'static str, String)> {
    let figure = table.figure?;
    Some((figure.name, draw(table, figure.kind)))
}

/// Draws what is ours in a table.
fn draw(table: &Table, kind: FigureKind) -> String {
    let top = nice(most(table));
    let document = legend(axis(frame(table, kind), top), table);
    let drawn = match kind {
        FigureKind::Bars => bars(document, table, top),
        FigureKind::Lines => lines(document, table, top),
    };
    drawn.to_string()
}

fn most(table: &Table) -> f64 {
    let cells = table.rows.iter().flat_map(|row| &row.cells);
    cells.filter_map(|cell| cell.ours).fold(0.0, f64::max)
}

/// Returns the least round number that is no less.
fn nice(most: f64) -> f64 {
    let power = 10_f64.powf(most.max(1e-9).log10().floor());
    let steps = [1.0, 1.2, 1.6, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0];
    let step = steps.iter().find(|step| *step * power >= most);
    step.unwrap_or(&10.0) * power
}

fn colour(number: usize) -> &'static str {
    draw::colour(&COLOURS, number)
}

fn y(value: f64, top: f64) -> f64 {
    TOP + HEIGHT * (1.0 - value / top)
}

fn frame(table: &Table, kind: FigureKind) -> Document {
    // The unit of bars, or what lines go over.
    let of = match kind {
        FigureKind::Bars => Point::new(LEFT / 2.0, TOP - 14.0),
        FigureKind::Lines => Point::new(LEFT + WIDTH / 2.0, TOP + HEIGHT + 48.0),
    };
    let title = table.title.lines().next().unwrap_or_default();
    let (width, height) = (LEFT + WIDTH + 20.0, TOP + HEIGHT + BELOW);
    Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(text(title, Point::new(LEFT, 16.0), "start"))
        .add(text(&table.of, of, "middle"))
}

fn axis(mut document: Document, top: f64) -> Document {
    for part in 0..=4 {
        let value = top * f64::from(part) / 4.0;
        let at = y(value, top);
        let colour = if part == 0 { "#555555" } else { "#e0e0e0" };
        let (from, to) = (Point::new(LEFT, at), Point::new(LEFT + WIDTH, at));
        let line = draw::line(from, to, colour, 1.0);
        let digits = usize::from(top < 8.0);
        let words = format!("{value:.digits$}");
        document = document
            .add(line)
            .add(text(&words, Point::new(LEFT - 6.0, at + 4.0), "end"));
    }
    document
}

fn legend(mut document: Document, table: &Table) -> Document {
    let mut at = LEFT;
    for (number, name) in table.columns.iter().enumerate() {
        let mark = rectangle(Point::new(at, 26.0), 10.0, 10.0, colour(number));
        document = document
            .add(mark)
            .add(text(name, Point::new(at + 14.0, 35.0), "start"));
        at += 30.0 + 7.0 * name.chars().count() as f64;
    }
    document
}

fn bars(mut document: Document, table: &Table, top: f64) -> Document {
    let group = WIDTH / table.rows.len().max(1) as f64;
    let bar = (group / (table.columns.len() as f64 + 1.0)).min(40.0);
    for (number, row) in table.rows.iter().enumerate() {
        let middle = LEFT + group * (number as f64 + 0.5);
        let from = middle - bar * table.columns.len() as f64 / 2.0;
        for (place, cell) in row.cells.iter().enumerate() {
            let Some(value) = cell.ours else { continue };
            let corner = Point::new(from + bar * place as f64, y(value, top));
            let height = HEIGHT * value / top;
            document = document.add(rectangle(corner, bar - 2.0, height, colour(place)));
        }
        // Long names of many rows would run into each other.
        let below = if number % 2 == 1 && table.rows.len() > 6 {
            32.0
        } else {
            16.0
        };
        let at = Point::new(middle, TOP + HEIGHT + below);
        document = document.add(text(&row.name, at, "middle"));
    }
    document
}

fn lines(mut document: Document, table: &Table, top: f64) -> Document {
    let numbers: Vec<Option<f64>> = table.rows.iter().map(|row| row.name.parse().ok()).collect();
    let known = || numbers.iter().flatten().copied();
    let (least, most) = (
        known().fold(f64::MAX, f64::min),
        known().fold(0.0, f64::max),
    );
    let span = (most / least).log2().max(1e-9);
    let x = |number: f64| LEFT + WIDTH * (number / least).log2() / span;
    for (place, _) in table.columns.iter().enumerate() {
        let values = table.rows.iter().map(|row| row.cells.get(place)?.ours);
        let points: Vec<(f64, f64)> = values
            .zip(&numbers)
            .filter_map(|(value, number)| Some((x((*number)?), y(value?, top))))
            .collect();
        let path: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{},{}", near(*x), near(*y)))
            .collect();
        let line = Polyline::new()
            .set("points", path.join(" "))
            .set("fill", "none")
            .set("stroke", colour(place));
        document = document.add(line);
        for (x, y) in points {
            let point = Circle::new()
                .set("cx", near(x))
                .set("cy", near(y))
                .set("r", 2.5)
                .set("fill", colour(place));
            document = document.add(point);
        }
    }
    let mut last = f64::MIN;
    for (row, number) in table.rows.iter().zip(&numbers) {
        let at = number.map_or(f64::MIN, x);
        if at - last > 30.0 {
            let below = Point::new(at, TOP + HEIGHT + 16.0);
            document = document.add(text(&row.name, below, "middle"));
            last = at;
        }
    }
    document
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::table::Cell;

    fn table() -> Table {
        let mut table = Table::new("Figure 0: <both>", "files", &["a & b", "other"]);
        table.row("1", vec![Cell::ours(3.0), Cell::ours(7.5)]);
        table.row("4", vec![Cell::ours(6.0)]);
        table.row("16", vec![Cell::ours(0.0), Cell::new(9.0, 1.0)]);
        table
    }

    #[test]
    fn the_scale_ends_at_a_round_number() {
        assert_eq!(
            [0.4, 7.5, 10.0, 41.0, 990.0].map(nice),
            [0.4, 8.0, 10.0, 50.0, 1000.0]
        );
    }

    #[test]
    fn each_figure_has_its_bar_or_its_point() {
        let bars = draw(&table(), FigureKind::Bars);
        // Two of them are the legend's.
        assert_eq!(bars.matches("<rect").count(), 5 + 2, "{bars}");
        assert!(
            bars.contains("a &amp; b") && bars.contains("&lt;both&gt;"),
            "{bars}"
        );
        let lines = draw(&table(), FigureKind::Lines);
        assert_eq!(lines.matches("<circle").count(), 5, "{lines}");
        assert_eq!(lines.matches("<polyline").count(), 2, "{lines}");
        // Four times as many are half of the way to sixteen times.
        assert!(lines.contains(r#"cx="430.00""#), "{lines}");
    }
}
