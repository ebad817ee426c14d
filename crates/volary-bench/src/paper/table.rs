//! A paper's table: its figures, ours, and how they stand to each other; as text and as JSON.

use anyhow::Result;
use serde::ser::{Serialize, SerializeStruct, Serializer};
use std::io::Write;

/// How far a figure may be from the paper's until it is marked, as a part of it.
const FAR: f64 = 0.25;

/// Characters of a line of notes.
const WIDTH: usize = 150;

/// A table.
#[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
pub struct Table {
    /// What it shows.
    pub title: String,
    /// What stands above the names of rows; often the unit of all figures.
    pub of: String,
    /// The columns' names.
    pub columns: Vec<String>,
    /// One for each line.
    pub rows: Vec<Row>,
    /// What stands below it: what is assumed, fitted, and why figures differ. Text breaks their lines where these are long.
    pub notes: Vec<String>,
    /// How it is drawn, if it is a figure.
    #[serde(skip)]
    pub figure: Option<Figure>,
}

/// How a table is drawn: what is ours in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Figure {
    /// The picture's name: `daft-figure-2`.
    pub name: &'static str,
    /// Its kind.
    pub kind: FigureKind,
}

/// A kind of picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FigureKind {
    /// A line for each column over the rows, whose names are numbers, on a scale of powers.
    Lines,
    /// A group of bars for each row, with one for each column.
    Bars,
}

/// A line of a table.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// One for each column; those at the end may be left out.
    pub cells: Vec<Cell>,
}

/// The paper's figure and ours, as far as there are such.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cell {
    /// The paper's.
    pub paper: Option<f64>,
    /// Ours.
    pub ours: Option<f64>,
    /// Whether ours is marked where it is more than a quarter from the paper's.
    pub is_claimed: bool,
}

impl Cell {
    /// Returns both figures.
    pub fn new(paper: f64, ours: f64) -> Self {
        Self {
            paper: Some(paper),
            ours: Some(ours),
            is_claimed: false,
        }
    }

    /// Returns both figures; the text marks ours where it is far from the paper's.
    pub fn claimed(paper: f64, ours: f64) -> Self {
        Self {
            is_claimed: true,
            ..Self::new(paper, ours)
        }
    }

    /// Returns a figure that the paper does not have.
    pub fn ours(ours: f64) -> Self {
        Self {
            ours: Some(ours),
            ..Self::default()
        }
    }

    /// Returns a figure of the paper that is not measured here.
    pub fn paper(paper: f64) -> Self {
        Self {
            paper: Some(paper),
            ..Self::default()
        }
    }

    /// Returns ours by the paper's, if there are both.
    pub fn ratio(&self) -> Option<f64> {
        let (paper, ours) = (self.paper?, self.ours?);
        (paper != 0.0).then(|| ours / paper)
    }

    /// Returns whether ours is more than a quarter from the paper's, and is claimed not to be.
    pub fn is_far(&self) -> bool {
        self.is_claimed && self.ratio().is_some_and(|ratio| (ratio - 1.0).abs() > FAR)
    }

    /// Returns what is printed: paper, ours, ratio.
    fn words(&self) -> [String; 3] {
        let figure = |x: Option<f64>| x.map_or(String::new(), figure);
        let mark = if self.is_far() { "!" } else { "" };
        let ratio = self.ratio().map(|ratio| format!("{ratio:.2}{mark}"));
        [
            figure(self.paper),
            figure(self.ours),
            ratio.unwrap_or_default(),
        ]
    }
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut cell = serializer.serialize_struct("Cell", 3)?;
        cell.serialize_field("paper", &self.paper)?;
        cell.serialize_field("ours", &self.ours)?;
        cell.serialize_field("ratio", &self.ratio())?;
        cell.end()
    }
}

/// Returns a figure with three digits that count, and all before the point.
fn figure(x: f64) -> String {
    let digits = match x.abs() {
        99.95.. => 0,
        9.995.. => 1,
        0.0995.. => 2,
        _ => 3,
    };
    format!("{x:.digits$}")
}

/// What stands above the parts of a cell.
const PARTS: [&str; 3] = ["paper", "ours", "ratio"];

impl Table {
    /// Returns a table without rows.
    pub fn new(title: impl Into<String>, of: impl Into<String>, columns: &[&str]) -> Self {
        Self {
            title: title.into(),
            of: of.into(),
            columns: columns.iter().map(ToString::to_string).collect(),
            ..Self::default()
        }
    }

    /// Adds a row.
    pub fn row(&mut self, name: impl Into<String>, cells: Vec<Cell>) {
        let name = name.into();
        self.rows.push(Row { name, cells });
    }

    /// Makes a figure of it.
    #[must_use]
    pub fn drawn_as(mut self, name: &'static str, kind: FigureKind) -> Self {
        self.figure = Some(Figure { name, kind });
        self
    }

    /// Adds a line or more below the table.
    pub fn note(&mut self, words: impl Into<String>) {
        self.notes.push(words.into());
    }

    /// Prints it.
    ///
    /// # Errors
    /// Of writing.
    pub fn print(&self, out: &mut dyn Write) -> Result<()> {
        writeln!(out, "{}\n", self.title)?;
        let names = self.rows.iter().map(|row| row.name.chars().count());
        let first = names.chain([self.of.chars().count()]).max().unwrap_or(0);
        let mut above = format!("{:first$}", "");
        let mut head = format!("{:first$}", self.of);
        let mut lines: Vec<String> = self
            .rows
            .iter()
            .map(|r| format!("{:first$}", r.name))
            .collect();
        for (number, name) in self.columns.iter().enumerate() {
            let [title, parts, cells @ ..] = &self.column(number, name)[..] else {
                continue;
            };
            above.push_str(title);
            head.push_str(parts);
            lines
                .iter_mut()
                .zip(cells)
                .for_each(|(line, cell)| line.push_str(cell));
        }
        for line in [above, head].iter().chain(&lines) {
            writeln!(out, "{}", line.trim_end())?;
        }
        if !self.notes.is_empty() {
            writeln!(out)?;
        }
        for line in self.notes.iter().flat_map(|note| note.lines()) {
            wrapped(line, out)?;
        }
        Ok(())
    }

    /// Returns what is printed of a column, all as wide: its name, the names of its parts, and its cells. Parts that no
    /// cell has are left out.
    fn column(&self, number: usize, name: &str) -> Vec<String> {
        let words = |row: &Row| {
            row.cells
                .get(number)
                .map_or_else(Default::default, Cell::words)
        };
        let cells: Vec<[String; 3]> = self.rows.iter().map(words).collect();
        let mut printed = vec![String::new(); cells.len() + 1];
        for (part, title) in PARTS.iter().enumerate() {
            let words = cells
                .iter()
                .map(|cell| cell.get(part).map_or("", String::as_str));
            let longest = words.clone().map(str::len).max().unwrap_or(0);
            if longest == 0 {
                continue;
            }
            let width = longest.max(title.len()) + 1;
            let all = std::iter::once(*title).chain(words);
            for (line, word) in printed.iter_mut().zip(all) {
                line.push_str(&format!("{word:>width$}"));
            }
        }
        let width = printed.first().map_or(0, String::len).max(name.len() + 1);
        printed.insert(0, name.to_owned());
        // Two spaces between columns, besides the one before each part.
        printed
            .iter()
            .map(|line| format!("  {line:>width$}"))
            .collect()
    }
}

/// Prints a paragraph in lines of at most [`WIDTH`] characters, if its words allow it.
fn wrapped(paragraph: &str, out: &mut dyn Write) -> Result<()> {
    let mut line = String::new();
    for word in paragraph.split(' ') {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > WIDTH {
            writeln!(out, "{line}")?;
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    Ok(writeln!(out, "{line}")?)
}

/// Prints tables, with an empty line between them.
///
/// # Errors
/// Of writing.
pub fn print_all(tables: &[Table], out: &mut dyn Write) -> Result<()> {
    for (number, table) in tables.iter().enumerate() {
        if number > 0 {
            writeln!(out)?;
        }
        table.print(out)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(
            "Table 0: an example",
            "KB/s",
            &["FFS", "DosFs / FFS", "today"],
        );
        let far = Cell::claimed(5.0, 3.5);
        table.row("read", vec![Cell::new(170.0, 171.2), far, Cell::ours(9.04)]);
        table.row("write", vec![Cell::paper(0.1)]);
        table.note("! It is far.");
        table
    }

    #[test]
    fn columns_have_the_parts_that_there_are_and_far_figures_a_mark() {
        let mut out = Vec::new();
        print_all(&[table(), Table::new("None", "", &[])], &mut out).unwrap();
        let lines = [
            "Table 0: an example",
            "",
            "                       FFS          DosFs / FFS  today",
            "KB/s    paper ours ratio   paper ours ratio   ours",
            "read      170  171  1.01    5.00 3.50 0.70!   9.04",
            "write    0.10",
            "",
            "! It is far.",
            "",
            "None",
        ];
        let text = String::from_utf8(out).unwrap();
        let words = |line: &str| {
            line.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        let found: Vec<_> = text.lines().map(words).collect();
        let wanted: Vec<_> = lines.iter().map(|line| words(line)).collect();
        assert_eq!(found[..wanted.len()], wanted, "{text}");
        let end = |part: &str| text.lines().find_map(|l| Some(l.find(part)? + part.len()));
        assert_eq!(end("FFS"), end("1.01"), "{text}");
    }

    #[test]
    fn long_notes_are_broken_between_words() {
        let mut out = Vec::new();
        let words = vec!["words"; 60].join(" ");
        wrapped(&format!("{words}{}", "x".repeat(200)), &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<usize> = text.lines().map(str::len).collect();
        assert_eq!(lines, [149, 149, 53, 205]);
    }

    #[test]
    fn json_has_figures_and_ratios() {
        let json = serde_json::to_value(table()).unwrap();
        let cell = &json["rows"][0]["cells"][1];
        assert_eq!(cell["paper"], 5.0);
        assert_eq!(cell["ratio"], 0.7);
        assert!(json["rows"][1]["cells"][0]["ours"].is_null());
        assert_eq!(json["columns"][2], "today");
        assert_eq!(json["notes"][0], "! It is far.");
    }

    #[test]
    fn figures_have_three_digits_that_count() {
        let printed = [0.012, 0.25, 9.996, 17.54, 99.96, 3671.4].map(figure);
        assert_eq!(printed, ["0.012", "0.25", "10.0", "17.5", "100", "3671"]);
        assert!(!Cell::new(5.0, 1.0).is_far() && Cell::claimed(5.0, 1.0).is_far());
        assert_eq!(Cell::new(0.0, 1.0).ratio(), None);
    }
}
