//! `volary map`: a picture of what lies where.

use crate::device::DeviceArgs;
use crate::exit::{Done, Exit, Fail};
use crate::out;
use crate::verbs::info::recognised;
use crate::volumes::Use;
use crate::written;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use svg::Document;
use svg::node::element::{Group, Rectangle, Text, Title};
use volary::{MapCell, VolumeMap};

/// Draws what lies where on a volume: in the terminal, or as SVG.
///
/// On a terminal it is coloured, unless NO_COLOR is set; with CLICOLOR_FORCE=1 it is so anywhere.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary map disk.img
  volary map --svg map.svg disk.img
  volary map --json disk.img")]
pub(crate) struct Map {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    #[command(flatten)]
    device: DeviceArgs,
    /// Draws into this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Into so many parts the volume is divided (default: what fits)
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    cells: Option<u32>,
    /// As JSON
    #[arg(long, conflicts_with = "svg")]
    json: bool,
}

/// What a part can hold: the field of [`MapCell`], its name, letter, colour on
/// a terminal and in SVG. Of several in one part the first counts that holds
/// the most.
struct Look {
    bytes: fn(&MapCell) -> u64,
    name: &'static str,
    letter: char,
    colour: u8,
    fill: &'static str,
}

const LOOKS: [Look; 7] = [
    Look {
        bytes: |c| c.bad,
        name: "bad",
        letter: 'X',
        colour: 41,
        fill: "#d62728",
    },
    Look {
        bytes: |c| c.lost,
        name: "lost",
        letter: '?',
        colour: 45,
        fill: "#9467bd",
    },
    Look {
        bytes: |c| c.system,
        name: "system",
        letter: 'S',
        colour: 44,
        fill: "#1f77b4",
    },
    Look {
        bytes: |c| c.dir,
        name: "directories",
        letter: 'D',
        colour: 46,
        fill: "#17becf",
    },
    Look {
        bytes: |c| c.broken,
        name: "files in pieces",
        letter: 'f',
        colour: 43,
        fill: "#ff9f1c",
    },
    Look {
        bytes: |c| c.file,
        name: "files",
        letter: 'F',
        colour: 42,
        fill: "#2ca02c",
    },
    Look {
        bytes: |c| c.free,
        name: "free",
        letter: '.',
        colour: 100,
        fill: "#dddddd",
    },
];

/// Returns what fills a part for the most; free only if nothing else is in it.
fn look(cell: &MapCell) -> &'static Look {
    let [taken @ .., free] = &LOOKS;
    let most = taken.iter().rev().max_by_key(|look| (look.bytes)(cell));
    most.filter(|look| (look.bytes)(cell) > 0).unwrap_or(free)
}

/// Rows of the picture in a terminal and in SVG.
const ROWS: usize = 16;
/// Columns of the picture in SVG.
const SVG_COLUMNS: usize = 128;
/// Width and height of a part in SVG, in pixels.
const SVG_CELL: usize = 8;

#[derive(Serialize)]
struct MapJson {
    cell_bytes: u64,
    breaks: u64,
    cells: Vec<CellJson>,
}

#[derive(Serialize)]
struct CellJson {
    system: u64,
    directories: u64,
    files: u64,
    files_in_pieces: u64,
    bad: u64,
    lost: u64,
    free: u64,
}

impl Map {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let (source, dev, format) = recognised(&self.volume, &self.device, Use::Look)?;
        let columns = if self.svg.is_some() {
            SVG_COLUMNS
        } else {
            out::width().max(20)
        };
        let rows = if self.svg.is_some() { ROWS * 4 } else { ROWS };
        let cells = self.cells.map_or(columns * rows, |n| n as usize);
        // Open until the end, the image is locked: it cannot be written over.
        let map = format
            .map(Arc::clone(&dev), cells)
            .map_err(|e| Fail::opening(&source, &e))?;
        if let Some(path) = &self.svg {
            let drawn = picture(&map, &source.to_string());
            let saved = written::replace_picture(path, &drawn);
            saved.map_err(|e| Fail::host(path.display(), e))?;
            return Ok(Exit::Done);
        }
        let mut out = out::out();
        if self.json {
            out::json(&mut out, &json(&map))?;
        } else {
            out.write_all(text(&map, columns, out::is_coloured()).as_bytes())?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }
}

fn json(map: &VolumeMap) -> MapJson {
    let cell = |c: &MapCell| CellJson {
        system: c.system,
        directories: c.dir,
        files: c.file,
        files_in_pieces: c.broken,
        bad: c.bad,
        lost: c.lost,
        free: c.free,
    };
    MapJson {
        cell_bytes: map.cell_len,
        breaks: map.breaks,
        cells: map.cells.iter().map(cell).collect(),
    }
}

/// Letters, on coloured ground if wanted.
fn text(map: &VolumeMap, columns: usize, colours: bool) -> String {
    let mut text = String::new();
    for row in map.cells.chunks(columns) {
        let mut ground = 0;
        for cell in row {
            let look = look(cell);
            if colours && look.colour != ground {
                ground = look.colour;
                // Writing to a string does not fail.
                let _ = write!(text, "\x1b[{ground}m");
            }
            text.push(look.letter);
        }
        text.push_str(if colours { "\x1b[0m\n" } else { "\n" });
    }
    text.push_str(&legend(map));
    text
}

fn legend(map: &VolumeMap) -> String {
    let mut rows = Vec::new();
    for look in LOOKS.iter().rev() {
        let sum: u64 = map.cells.iter().map(look.bytes).sum();
        if sum > 0 {
            rows.push(vec![
                look.letter.to_string(),
                look.name.into(),
                out::human(sum),
            ]);
        }
    }
    let table = out::columns(&rows, &[false, false, true]);
    format!(
        "\n{table}\n1 letter: {}; files go on elsewhere {} times\n",
        out::human(map.cell_len),
        map.breaks
    )
}

fn picture(map: &VolumeMap, title: &str) -> Document {
    let rows = map.cells.len().div_ceil(SVG_COLUMNS);
    let (width, top) = (SVG_COLUMNS * SVG_CELL, 24);
    let bottom = top + rows * SVG_CELL;
    let mut document = Document::new()
        .set("viewBox", (0, 0, width, bottom + 32))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(Text::new(title).set("x", 4).set("y", 16));
    for (i, cell) in map.cells.iter().enumerate() {
        let look = look(cell);
        let from = i as u64 * map.cell_len;
        let words = format!("{}, bytes {from} to {}", look.name, from + map.cell_len);
        let square = Rectangle::new()
            .set("x", i % SVG_COLUMNS * SVG_CELL)
            .set("y", top + i / SVG_COLUMNS * SVG_CELL)
            .set("width", SVG_CELL - 1)
            .set("height", SVG_CELL - 1)
            .set("fill", look.fill)
            .add(Title::new(words));
        document = document.add(square);
    }
    document.add(svg_legend(map, bottom + 20))
}

fn svg_legend(map: &VolumeMap, y: usize) -> Group {
    let mut group = Group::new();
    let mut x = 4;
    for look in LOOKS.iter().rev() {
        let sum: u64 = map.cells.iter().map(look.bytes).sum();
        if sum == 0 {
            continue;
        }
        let words = format!("{} {}", look.name, out::human(sum));
        let width = 24 + 7 * words.chars().count();
        let square = Rectangle::new()
            .set("x", x)
            .set("y", y - 10)
            .set("width", 10)
            .set("height", 10)
            .set("fill", look.fill);
        group = group
            .add(square)
            .add(Text::new(words).set("x", x + 14).set("y", y));
        x += width;
    }
    group
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_shows_what_fills_it_and_free_only_if_nothing_does() {
        let free = MapCell {
            free: 100,
            ..MapCell::default()
        };
        assert_eq!(look(&free).letter, '.');
        assert_eq!(
            look(&MapCell {
                file: 1,
                free: 99,
                ..free
            })
            .letter,
            'F'
        );
        assert_eq!(
            look(&MapCell {
                file: 10,
                dir: 20,
                ..free
            })
            .letter,
            'D'
        );
        assert_eq!(look(&MapCell::default()).letter, '.');
    }

    #[test]
    fn the_picture_has_a_square_for_each_part_and_escapes_its_title() {
        let cells = vec![
            MapCell {
                file: 512,
                ..MapCell::default()
            };
            200
        ];
        let map = VolumeMap {
            cell_len: 512,
            cells,
            breaks: 3,
        };
        let svg = picture(&map, "<a>").to_string();
        assert_eq!(svg.matches("<rect").count(), 201);
        assert!(svg.contains("&lt;a&gt;"), "{}", &svg[..300]);
        let lines = text(&map, 80, false);
        assert!(lines.starts_with(&"F".repeat(80)) && lines.contains("elsewhere 3 times"));
    }
}
