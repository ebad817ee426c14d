//! `volary tune`, `volary label`, `volary badsect`: changes of a volume in
//! place.

mod mounted;

use crate::clock;
use crate::device::DeviceArgs;
use crate::exit::{Done, Exit, Fail};
use crate::modelled;
use crate::out;
use crate::progress::Bar;
use crate::verbs::info::{FactJson, facts_text, failed, options_help, recognised};
use crate::volumes::Use;
use std::ffi::OsString;
use std::io::Write;
use std::path::Path;
use volary::{Fact, Options, Tune as How};

/// Changes a volume in place.
///
/// It can be stopped at any point, by a power cut too, without harm to what
/// the volume holds. Of an FFS volume that is mounted, root sets the format's
/// own options by the directory that it is mounted on; it goes by them at once.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = long_help())]
pub(crate) struct Tune {
    /// The volume, or the directory that it is mounted on
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    #[command(flatten)]
    device: DeviceArgs,
    /// A new label; an empty one takes it away
    #[arg(long, short = 'L', value_name = "LABEL")]
    label: Option<String>,
    /// Puts each file in one piece, at the beginning of the volume
    #[arg(long)]
    compact: bool,
    /// Marks the volume as not cleanly left
    #[arg(long, conflicts_with = "clean")]
    dirty: bool,
    /// Takes that mark away
    #[arg(long)]
    clean: bool,
    /// The format's own options, with commas between them; tune --help lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "\
Examples:
  volary tune --label STICK disk.img
  volary tune --compact disk.img
  volary mkfs -t ffs2 --size 16M ffs.img && volary tune -o minfree=5,optim=space ffs.img";

/// Returns the examples, and the options of each format that has any.
fn long_help() -> String {
    format!(
        "{EXAMPLES}\n{}",
        options_help(|format| format.tune_options())
    )
}

impl Tune {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut options = Options::new();
        self.options.iter().for_each(|text| options.add(text));
        let asks = self.label.is_some() || self.compact || self.dirty || self.clean;
        if !asks && options.is_empty() {
            return Err(Fail::usage("nothing to change; see volary tune --help"));
        }
        if Path::new(&self.volume).is_dir() {
            if modelled::is_on() {
                return Err(Fail::usage("sim does not change volumes that are mounted"));
            }
            if asks {
                return Err(Fail::usage(
                    "of a mounted volume only options (-o) can be changed",
                ));
            }
            let facts = mounted::tune(Path::new(&self.volume), &self.options)?;
            return tell(&facts, self.json);
        }
        let how = How {
            label: self.label.clone(),
            compact: self.compact,
            dirty: (self.dirty || self.clean).then_some(self.dirty),
            now: clock::now(),
            options,
        };
        crate::interrupt::catch();
        let (source, dev, format) = recognised(&self.volume, &self.device, Use::Change)?;
        let bar = Bar::new("moved");
        let facts = format
            .tune(dev, &how, &bar)
            .map_err(|e| failed(&source, &e))?;
        drop(bar);
        tell(&facts, self.json)
    }
}

fn tell(facts: &[Fact], json: bool) -> Done<Exit> {
    let mut out = out::out();
    if json {
        out::json(&mut out, &FactJson::all(facts))?;
    } else {
        out.write_all(facts_text(facts).as_bytes())?;
    }
    out::end(out)?;
    Ok(Exit::Done)
}

/// Shows a volume's label, or gives it another.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary label disk.img
  volary label disk.img STICK")]
pub(crate) struct Label {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    #[command(flatten)]
    device: DeviceArgs,
    /// The new label; an empty one takes it away
    #[arg(value_name = "LABEL")]
    label: Option<String>,
}

impl Label {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let usage = match self.label {
            None => Use::Look,
            Some(_) => Use::Change,
        };
        let (source, dev, format) = recognised(&self.volume, &self.device, usage)?;
        let fail = |e: volary::Error| failed(&source, &e);
        if self.label.is_some() {
            let how = How {
                label: self.label.clone(),
                now: clock::now(),
                ..How::default()
            };
            format.tune(dev, &how, &volary::Quiet).map_err(fail)?;
            return Ok(Exit::Done);
        }
        let label = format
            .probe(&*dev)
            .map_err(fail)?
            .and_then(|probe| probe.label);
        let mut out = out::out();
        writeln!(
            out,
            "{}",
            volary::escape(label.unwrap_or_default().as_bytes())
        )?;
        out::end(out)?;
        Ok(Exit::Done)
    }
}

/// Marks sectors as bad, so that nothing is put there.
///
/// On a FAT volume their clusters are marked in the FAT. On an FFS volume,
/// whose sectors have 512 bytes here, each becomes a file in the directory BAD,
/// as 4.2BSD's badsect leaves it after fsck; to remove the file gives the
/// sector back. Sectors of files and of the format's own structures are refused.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Example:
  volary badsect disk.img 100000 0x186a1")]
pub(crate) struct Badsect {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    #[command(flatten)]
    device: DeviceArgs,
    /// Sectors, counted from the start of the volume
    #[arg(required = true, value_name = "SECTOR", value_parser = super::mkfs::number)]
    sectors: Vec<u64>,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Badsect {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let (source, dev, format) = recognised(&self.volume, &self.device, Use::Change)?;
        let facts = format
            .mark_bad(dev, &self.sectors)
            .map_err(|e| failed(&source, &e))?;
        tell(&facts, self.json)
    }
}
