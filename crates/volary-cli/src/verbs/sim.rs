//! `volary sim`: what a command would cost on a disk.

use super::Verb;
use super::mkfs::size;
use crate::exit::{Done, Exit, Fail};
use crate::modelled;
use crate::out;
use crate::written;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use svg::Document;
use svg::node::element::Rectangle;
use volary_bench::draw::{Point, line, text};
use volary_sim::{Doings, PRESETS, Preset};

/// Runs a command on images as if they were on another disk, and says what that took.
///
/// The command runs as always, and its requests take the time of the model, not of the clock. Images
/// stay as they are: what the command writes to them is kept in memory, and lost at its end. Time of the
/// processor is not counted.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary sim --disk hdd -- ls -lR disk.img:/
  volary sim --disk sd -- cp -r tree disk.img:/
  volary sim --disk hdd --svg path.svg -- bulk disk.img
The report is on standard error, behind what the command prints; its exit code is that of sim.")]
pub(crate) struct Sim {
    #[arg(long, value_name = "NAME", help = disks_help())]
    disk: String,
    /// Draws where the disk was at which time
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// The report as JSON
    #[arg(long)]
    json: bool,
    /// Bound on the memory for changes
    #[arg(long, value_name = "SIZE", default_value = "1G", value_parser = size)]
    memory: u64,
    /// The command and its arguments
    #[arg(last = true, required = true, value_name = "VERB")]
    words: Vec<OsString>,
}

fn disks_help() -> String {
    let mut help = String::from("The disk:");
    for preset in PRESETS {
        // Writing to a string cannot fail.
        let _ = write!(help, "\n{:<11} {}", preset.name, preset.what);
    }
    help
}

/// What a disk took, as JSON has it.
#[derive(Serialize)]
struct Told<'a> {
    disk: &'a str,
    seconds: f64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    written_bytes: u64,
    seeks: u64,
}

impl Sim {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let preset = modelled::named(&self.disk)?;
        let verb = self.verb()?;
        if let Some(path) = &self.svg {
            written::check_text(path).map_err(|e| Fail::host(path.display(), e))?;
        }
        let modelled = modelled::begin(preset, self.memory);
        let done = verb.run();
        let doings = modelled.doings();
        for (number, doings) in (1..).zip(&doings) {
            self.tell(preset, number, doings)?;
        }
        if doings.is_empty() && done.is_ok() {
            crate::log::say("no image was opened\n");
        }
        done
    }

    /// Parses the command.
    ///
    /// # Errors
    /// Of the command line, and for a command that does not end or uses no image.
    fn verb(&self) -> Done<Verb> {
        let mut words = vec![OsString::from("volary")];
        words.extend(self.words.iter().cloned());
        let verb = match Verb::parse_alone(&words) {
            Some(verb) => verb.map_err(|e| Fail::usage(first_line(&e.to_string())))?,
            None => {
                let word = self.words.first().cloned().unwrap_or_default();
                return Err(Fail::usage(format!("{}: no such command", word.display())));
            }
        };
        match verb {
            Verb::Serve(_) | Verb::Mount(_) | Verb::Torture(_) | Verb::Bench(_) | Verb::Sim(_) => {
                let words = "sim runs commands that end, on images: not serve, mount, torture, bench or sim";
                Err(Fail::usage(words))
            }
            verb => Ok(verb),
        }
    }

    fn tell(&self, preset: &Preset, number: usize, doings: &Doings) -> Done {
        let seconds = doings.time / 1e6;
        let report = match self.json {
            true => json(&Told {
                disk: preset.name,
                seconds,
                reads: doings.reads,
                read_bytes: doings.read_bytes,
                writes: doings.writes,
                written_bytes: doings.write_bytes,
                seeks: doings.seeks,
            })?,
            false => format!(
                "disk      {} ({})\ntime      {seconds:.6} s\nreads     {}, {}\nwrites    {}, {}\nseeks     {}",
                preset.name,
                preset.what,
                doings.reads,
                out::human(doings.read_bytes),
                doings.writes,
                out::human(doings.write_bytes),
                doings.seeks,
            ),
        };
        crate::log::say(&format!("{report}\n"));
        match &self.svg {
            Some(path) if number == 1 => save(path, &picture(preset, doings)),
            Some(path) => save(&numbered(path, number), &picture(preset, doings)),
            None => Ok(()),
        }
    }
}

/// Returns what clap says, without the usage that it adds.
fn first_line(words: &str) -> String {
    let line = words.lines().next().unwrap_or_default();
    line.trim_start_matches("error: ").to_owned()
}

fn json(told: &Told<'_>) -> Done<String> {
    serde_json::to_string(told).map_err(|e| Fail::new(Exit::Failed, e.to_string()))
}

fn save(path: &Path, drawn: &Document) -> Done {
    written::replace_picture(path, drawn).map_err(|e| Fail::host(path.display(), e))
}

/// Returns the name of the picture of a further disk: `path-2.svg`.
fn numbered(path: &Path, number: usize) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{stem}-{number}.{extension}"))
}

const WIDTH: f64 = 960.0;
const HEIGHT: f64 = 480.0;
/// Space around the field, in which words are.
const EDGE: f64 = 28.0;

/// Draws the disk's path: time from left to right, the disk from top to bottom, reads blue, writes red.
fn picture(preset: &Preset, doings: &Doings) -> Document {
    let time = doings.time.max(1e-9);
    let top = doings
        .path
        .iter()
        .map(|served| served.bytes.1)
        .max()
        .unwrap_or(1);
    let x = |micros: f64| EDGE + micros / time * WIDTH;
    let y = |byte: u64| EDGE + byte as f64 / top as f64 * HEIGHT;
    let mut document = Document::new()
        .set("viewBox", (0, 0, WIDTH + 2.0 * EDGE, HEIGHT + 2.0 * EDGE))
        .set("font-family", "sans-serif")
        .set("font-size", 12)
        .add(field())
        .add(text(
            &format!("{}: byte 0", preset.name),
            Point::new(EDGE, EDGE - 8.0),
            "start",
        ))
        .add(text(
            &format!(
                "byte {top}; {:.3} s from left to right; reads blue, writes red",
                time / 1e6
            ),
            Point::new(EDGE, EDGE + HEIGHT + 16.0),
            "start",
        ));
    let mut last: Option<Point> = None;
    for served in &doings.path {
        let from = Point::new(x(served.time.0), y(served.bytes.0));
        let to = Point::new(x(served.time.1), y(served.bytes.1));
        if let Some(last) = last {
            document = document.add(line(last, from, "#cccccc", 0.3));
        }
        let colour = if served.is_write {
            "#c03030"
        } else {
            "#3060c0"
        };
        document = document.add(line(from, to, colour, 1.0));
        last = Some(to);
    }
    document
}

fn field() -> Rectangle {
    Rectangle::new()
        .set("x", EDGE)
        .set("y", EDGE)
        .set("width", WIDTH)
        .set("height", HEIGHT)
        .set("fill", "none")
        .set("stroke", "#999999")
}
