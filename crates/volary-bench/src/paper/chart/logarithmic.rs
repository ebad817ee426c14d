//! A table as a bar chart on a scale of powers of ten: a group for each column, a bar for each row.

use crate::draw::{Point, colour, line, rectangle, text};
use crate::paper::table::Table;
use svg::Document;
use svg::node::element::{Group, Title};

/// Pixels of the field's height, and around it.
const HEIGHT: f64 = 260.0;
const AROUND: f64 = 50.0;
/// A bar, what is between two groups, and the column of names.
const BAR: f64 = 12.0;
const BETWEEN: f64 = 24.0;
const NAMES: f64 = 190.0;
const LINE: f64 = 18.0;

const COLOURS: [&str; 12] = [
    "#555555", "#1f6f8b", "#8fbcd4", "#5b93b8", "#c6dbe8", "#2a7a3a", "#b35806", "#e08214",
    "#fdb863", "#762a83", "#9970ab", "#c2a5cf",
];

/// Draws our figures, on a scale of powers of ten, with the paper's as strokes.
pub(in crate::paper) fn bars(table: &Table) -> Document {
    let group = BAR * table.rows.len() as f64 + BETWEEN;
    let field = group * table.columns.len() as f64;
    let height = HEIGHT.max(LINE * table.rows.len() as f64) + 2.0 * AROUND;
    let width = field + 2.0 * AROUND + NAMES;
    let scale = Scale::of(table);
    let mut document = Document::new()
        .set("viewBox", (0, 0, width, height))
        .set("width", width)
        .set("height", height)
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(text(
            &table.title,
            Point::new(AROUND, AROUND - 28.0),
            "start",
        ));
    document = axes(document, &scale, field, &table.of);
    for (number, column) in (0_u32..).zip(&table.columns) {
        let left = AROUND + BETWEEN / 2.0 + group * f64::from(number);
        let middle = Point::new(left + (group - BETWEEN) / 2.0, AROUND + HEIGHT + 16.0);
        document = document.add(text(column, middle, "middle"));
        for (bar, row) in (0_u32..).zip(&table.rows) {
            let Some(cell) = row.cells.get(number as usize) else {
                continue;
            };
            let x = left + BAR * f64::from(bar);
            if let Some(ours) = cell.ours {
                let name = format!("{}, {column}: {ours:.2}", row.name);
                let colour = colour(&COLOURS, bar as usize);
                document = document.add(one(&scale, x, ours, colour, &name));
            }
            if let Some(paper) = cell.paper {
                let y = scale.y(paper);
                let (from, to) = (Point::new(x, y), Point::new(x + BAR, y));
                document = document.add(line(from, to, "#b03a2e", 2.0));
            }
        }
    }
    names(document, table, field)
}

/// Returns one bar, with what shows when it is pointed at.
fn one(scale: &Scale, x: f64, ours: f64, colour: &str, name: &str) -> Group {
    let top = scale.y(ours);
    let height = AROUND + HEIGHT - top;
    let bar = rectangle(Point::new(x, top), BAR - 1.0, height, colour);
    Group::new().add(Title::new(name)).add(bar)
}

/// Returns the colours' names.
fn names(mut document: Document, table: &Table, field: f64) -> Document {
    let left = field + AROUND + 16.0;
    for (bar, row) in (0_u32..).zip(&table.rows) {
        let y = AROUND + LINE * f64::from(bar);
        let colour = colour(&COLOURS, bar as usize);
        let mark = rectangle(Point::new(left, y), 10.0, 10.0, colour);
        let name = text(&row.name, Point::new(left + 16.0, y + 10.0), "start");
        document = document.add(mark).add(name);
    }
    document
}

fn axes(mut document: Document, scale: &Scale, field: f64, unit: &str) -> Document {
    for power in scale.least..=scale.most {
        let value = 10_f64.powi(power);
        let y = scale.y(value);
        let (from, to) = (Point::new(AROUND, y), Point::new(AROUND + field, y));
        let across = line(from, to, "#cccccc", 2.0);
        let at = Point::new(AROUND - 6.0, y + 4.0);
        let word = text(&format!("{value}"), at, "end");
        document = document.add(across).add(word);
    }
    document.add(text(unit, Point::new(AROUND, AROUND - 10.0), "start"))
}

/// Powers of ten.
struct Scale {
    least: i32,
    most: i32,
}

impl Scale {
    /// Returns a scale that covers all figures of a table, and at least one power of ten.
    fn of(table: &Table) -> Self {
        let cells = table.rows.iter().flat_map(|row| &row.cells);
        let figures = cells.flat_map(|cell| [cell.ours, cell.paper]).flatten();
        let powers = figures
            .filter(|x| *x > 0.0 && x.is_finite())
            .map(f64::log10);
        let (least, most) = powers.fold((f64::MAX, f64::MIN), |(least, most), power| {
            (least.min(power), most.max(power))
        });
        if least > most {
            return Self { least: 0, most: 1 };
        }
        // A float's power of ten is far within an i32.
        let (least, most) = (least.floor() as i32, most.ceil() as i32);
        Self {
            least,
            most: most.max(least + 1),
        }
    }

    /// Returns where a figure's bar ends.
    fn y(&self, figure: f64) -> f64 {
        let part = (figure.max(f64::MIN_POSITIVE).log10() - f64::from(self.least))
            / f64::from(self.most - self.least);
        AROUND + HEIGHT * (1.0 - part.clamp(0.0, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::table::Cell;

    #[test]
    fn there_is_a_bar_for_each_of_our_figures_and_a_stroke_for_each_of_the_papers() {
        let mut table = Table::new("A figure", "ms", &["read", "write"]);
        table.row("a", vec![Cell::new(150.0, 1.5), Cell::default()]);
        table.row("b", vec![Cell::ours(20.0), Cell::ours(99.0)]);
        let drawn = bars(&table).to_string();
        assert_eq!(drawn.matches("<title>").count(), 3, "{drawn}");
        assert_eq!(drawn.matches("#b03a2e").count(), 1);
        assert!(drawn.contains("b, write: 99.00"));
        let scale = Scale::of(&table);
        assert_eq!((scale.least, scale.most), (0, 3));
        assert_eq!((scale.y(1.0), scale.y(1000.0)), (AROUND + HEIGHT, AROUND));
        assert!(scale.y(10.0) > scale.y(100.0));
        assert_eq!(scale.y(0.0), AROUND + HEIGHT);
    }

    #[test]
    fn a_table_without_figures_is_drawn_empty() {
        let drawn = bars(&Table::new("None", "ms", &[])).to_string();
        assert!(
            drawn.contains("None") && !drawn.contains("<title>"),
            "{drawn}"
        );
    }
}
