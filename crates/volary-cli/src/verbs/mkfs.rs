//! `volary mkfs`.

mod owner;

use crate::clock;
use crate::exit::{Done, Exit, Fail};
use crate::modelled;
use crate::out;
use crate::registry::registry;
use crate::verbs::attrs::Owner;
use crate::verbs::info::{self, FactJson, facts_text};
use crate::volumes::usage;
use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volary::{BlockDevice, Fact, Identity, ImageFormat, Make, Options, Source};

/// Makes a volume on an image, a partition or a block device.
///
/// An image that is not there is made, of the size that --size says, and takes
/// only as much of the disk as is written. What holds something already is
/// left alone unless --force is given. The root directory belongs to who runs this,
/// on volumes that keep owners, unless --owner says otherwise.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(after_long_help = long_help())]
pub(crate) struct Mkfs {
    /// IMAGE, IMAGE#2 or a block device
    #[arg(value_name = "IMAGE")]
    image: OsString,
    /// The kind of volume: fat12, fat16, fat32, ffs1, ffs2, cedar, v7, sysv (default: a FAT by the size)
    #[arg(short = 't', long = "type", value_name = "KIND")]
    kind: Option<String>,
    /// The size of an image that is not there: 64M, 0x1000
    #[arg(long, value_name = "SIZE", value_parser = image_size)]
    size: Option<u64>,
    /// What an image that is not there becomes
    /// [default: qcow2 if its name ends so, else raw]
    #[arg(long, value_name = "raw|qcow2", value_parser = image_format)]
    format: Option<ImageFormat>,
    /// The volume's label
    #[arg(long, short = 'L', value_name = "LABEL")]
    label: Option<String>,
    /// Room for UNIX modes, owners, symlinks and devices
    #[arg(long)]
    unix: bool,
    /// Options of the format, with commas between them; mkfs --help lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    options: Vec<String>,
    /// What the serial number is made from: the same gives the same volume
    /// (default: the time)
    #[arg(long, value_name = "NUMBER", value_parser = number)]
    seed: Option<u64>,
    /// Who owns the root directory, on a volume that keeps owners (default: who runs this)
    #[arg(long, value_name = "USER:GROUP")]
    owner: Option<Owner>,
    /// Even over something that is there: all of it is lost
    #[arg(short, long)]
    force: bool,
    /// Prints nothing
    #[arg(short, long)]
    quiet: bool,
    /// As JSON
    #[arg(long)]
    json: bool,
}

/// Returns the image format that `--format` names.
fn image_format(text: &str) -> Result<ImageFormat, String> {
    match text {
        "raw" => Ok(ImageFormat::Raw),
        "qcow2" => Ok(ImageFormat::Qcow2),
        _ => Err("write raw or qcow2".into()),
    }
}

/// Returns a size on the command line.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    Options::parse_size(text).ok_or_else(|| format!("'{text}' is no size; write 64M or 0x1000"))
}

/// Returns the size of an image.
fn image_size(text: &str) -> Result<u64, String> {
    match size(text)? {
        0 => Err("an image of 0 bytes holds no volume; write 64M".into()),
        size => Ok(size),
    }
}

/// Returns a number on the command line that is no size.
pub(crate) fn number(text: &str) -> Result<u64, String> {
    Options::parse_size(text).ok_or_else(|| format!("'{text}' is no number; write 7 or 0x1000"))
}

const EXAMPLES: &str = "\
Examples:
  volary mkfs --size 64M new.img
  volary mkfs -t fat32 --unix --label STICK --size 1G stick.img
  volary mkfs -t fat12 --size 1440k -o floppy=1440k floppy.img
  volary mkfs -t cedar --size 64M -o log=3M log.img
  volary mkfs -t ffs2 --size 64M --owner 1000:1000 theirs.img
  volary mkfs -t v7 --label usr --size 2M -o order=pdp pack.img
  volary mkfs -t sysv --size 8M -o block=1024 s5.img
  volary mkfs --force blank.img";

/// Returns the examples, and the options of each format.
fn long_help() -> String {
    let options = info::options_help(|format| format.make_options());
    format!("{EXAMPLES}\n{options}")
}

impl Mkfs {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let source = registry()
            .source(self.image.as_bytes())
            .map_err(|e| usage(&self.image, &e))?;
        let fresh = self.fresh_image(&source)?;
        let made = self.make(&source, fresh.is_some());
        match made {
            Ok(facts) => self.tell(&source, &facts),
            Err(fail) => {
                if let Some(path) = fresh {
                    // It was made just now and holds nothing.
                    let _ = std::fs::remove_file(path);
                }
                Err(fail)
            }
        }
    }

    /// Makes the image if it is not there.
    fn fresh_image(&self, source: &Source) -> Done<Option<PathBuf>> {
        let Source::Image { path, partition } = source else {
            return Ok(None);
        };
        if self.size.is_some() && modelled::is_on() {
            let line =
                format!("{source}: sim makes no image; give it one that is there, without --size");
            return Err(Fail::usage(line));
        }
        if path.exists() || path.is_symlink() {
            return match (self.size, partition) {
                (Some(size), None) => self.resize(source, path, size).map(|()| None),
                (Some(_), Some(_)) => Err(Fail::usage(format!(
                    "{source}: a partition has its size; leave out --size"
                ))),
                (None, _) => Ok(None),
            };
        }
        if partition.is_some() {
            return Err(Fail::new(
                Exit::NotOpened,
                format!("{source}: no such image"),
            ));
        }
        let Some(size) = self.size else {
            let line = format!("{source}: no such image; say how large it is to be: --size 64M");
            return Err(Fail::new(Exit::NotOpened, line));
        };
        self.create(source, path, size).map(|()| Some(path.clone()))
    }

    fn create(&self, source: &Source, path: &Path, size: u64) -> Done {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
        if let Some(dir) = dir.filter(|dir| !dir.exists()) {
            let dir = volary::escape(dir.as_os_str().as_bytes());
            let line = format!("{source}: there is no directory {dir}; make it first");
            return Err(Fail::new(Exit::NotOpened, line));
        }
        let made = self.format_of(path)?.make(path, size);
        made.map_err(|e| Fail::new(Exit::NotOpened, format!("{source}: {e}")))
    }

    /// Returns the format that is asked for, or what people expect of a file of this name.
    fn format_of(&self, path: &Path) -> Done<ImageFormat> {
        let of_name = |e: volary::Error| {
            let name = volary::escape(path.as_os_str().as_bytes());
            Fail::usage(format!(
                "{name}: {e}; --format raw or qcow2 makes one of that name"
            ))
        };
        let format = self.format.map_or_else(|| ImageFormat::of(path), Ok);
        format.map_err(of_name)
    }

    /// An image that is there keeps its size, unless it is empty or --force
    /// is given.
    fn resize(&self, source: &Source, path: &Path, size: u64) -> Done {
        let fail = |e: std::io::Error| Fail {
            exit: Exit::NotOpened,
            ..Fail::host(source, e)
        };
        let stat = std::fs::metadata(path).map_err(fail)?;
        let opening = |e: volary::Error| Fail::opening(source, &e);
        let within = volary::block::Qcow2::size_of(path).map_err(opening)?;
        if !stat.is_file() || within.unwrap_or(stat.len()) == size {
            return Ok(());
        }
        if let Some(len) = within {
            let line = format!(
                "{source}: is there, a qcow2 image of {len} bytes; leave out --size, or remove it"
            );
            return Err(Fail::new(Exit::Failed, line));
        }
        if stat.len() == 0 && self.format_of(path)? == ImageFormat::Qcow2 {
            return self.create(source, path, size);
        }
        if stat.len() > 0 && !self.force {
            let line = format!(
                "{source}: is there, with {} bytes; leave out --size, or add --force",
                stat.len()
            );
            return Err(Fail::new(Exit::Failed, line));
        }
        if stat.len() > 0 {
            // What is in use is not cut.
            modelled::open_source(source, false).map_err(opening)?;
        }
        let file = OpenOptions::new().write(true).open(path).map_err(fail)?;
        file.set_len(size).map_err(fail)
    }

    fn make(&self, source: &Source, is_fresh: bool) -> Done<Vec<Fact>> {
        let opening = |e: volary::Error| Fail::opening(source, &e);
        let dev = modelled::open_source(source, false).map_err(opening)?;
        if !is_fresh && !self.force {
            refuse_to_overwrite(source, &*dev)?;
        }
        let kind = self.kind.as_deref().unwrap_or("fat");
        let kind = registry().kind_of(kind, dev.geometry().size);
        let (format, kind) = kind.map_err(|e| Fail::usage(format!("-t: {e}")))?;
        let mut how = self.how();
        let owner = owner::of(self.owner, format, kind, &mut how.options)?;
        let made = format.make(Arc::clone(&dev), kind, &how);
        let mut facts = made.map_err(|e| info::failed(source, &e))?;
        if let Some(owner) = owner {
            facts.extend(owner::give(owner, source, dev, format)?);
        }
        Ok(facts)
    }

    fn how(&self) -> Make {
        let mut options = Options::new();
        for text in &self.options {
            options.add(text);
        }
        if self.unix {
            options.set("unix", "");
        }
        let now = clock::now();
        let seed = now.secs.unsigned_abs().wrapping_mul(1_000_000_007) ^ u64::from(now.nanos);
        Make {
            label: self.label.clone(),
            now,
            seed: self.seed.unwrap_or(seed),
            options,
        }
    }

    fn tell(&self, source: &Source, facts: &[Fact]) -> Done<Exit> {
        let mut out = out::out();
        if self.json {
            out::json(&mut out, &FactJson::all(facts))?;
        } else if !self.quiet {
            writeln!(out, "{source}:")?;
            out.write_all(facts_text(facts).as_bytes())?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }
}

/// # Errors
/// In one line what would be lost.
fn refuse_to_overwrite(source: &Source, dev: &dyn BlockDevice) -> Done {
    let held = registry()
        .identify(dev)
        .map_err(|e| Fail::opening(source, &e))?;
    if matches!(held, Identity::Blank(_)) {
        return Ok(());
    }
    let line = match held {
        Identity::Unknown => "holds something; with --force it is lost".to_string(),
        Identity::Partitions(words) => {
            format!("holds {words}; name a partition: {source}#1; with --force it is lost")
        }
        held => format!("holds {}; with --force it is lost", held.words()),
    };
    Err(Fail::new(Exit::Failed, format!("{source}: {line}")))
}
