//! `volary info`, `volary dump`, `volary formats`, `volary layers`: what a volume is, and what
//! it can be.

mod apart;

use crate::device::DeviceArgs;
use crate::exit::{Done, Exit, Fail};
use crate::modelled;
use crate::out;
use crate::registry::registry;
use crate::volumes::{OPTIONS, Use, tell_of_replica, usage};
use serde::Serialize;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary::{
    Abilities, BlockDevice, Error, Fact, Format, Found, Kind, OptionSpec, Options, Scheme, Source,
};

/// Opens what a command that works on the device was given.
///
/// # Errors
/// In one line.
pub(crate) fn device(arg: &OsStr, read_only: bool) -> Done<(Source, Arc<dyn BlockDevice>)> {
    let source = registry()
        .source(arg.as_bytes())
        .map_err(|e| usage(arg, &e))?;
    let dev = modelled::open_source(&source, read_only);
    dev.map(|dev| (source.clone(), dev))
        .map_err(|e| Fail::opening(&source, &e))
}

/// Finds what is on a device.
///
/// # Errors
/// In one line.
pub(crate) fn found(source: &Source, dev: Arc<dyn BlockDevice>, options: &Options) -> Done<Found> {
    registry().find(dev, options).map_err(|e| match e.kind() {
        Kind::Invalid => Fail::usage(format!("type: {e}")),
        _ => Fail::opening(source, &e),
    })
}

/// Opens a device, and the volume on it: to be looked at, by a replica too, or to be changed.
///
/// # Errors
/// In one line.
pub(crate) fn recognised(
    arg: &OsStr,
    how: &DeviceArgs,
    usage: Use,
) -> Done<(Source, Arc<dyn BlockDevice>, &'static dyn Format)> {
    let (source, dev) = device(arg, usage == Use::Look)?;
    let mut options = Options::new();
    how.kind.add_to(&mut options);
    let found = found(&source, dev, &options)?;
    if let Some(replica) = &found.replica {
        tell_of_replica(&source, replica, usage)?;
    }
    Ok((source, found.device, found.format))
}

/// Returns a failure of an operation on a device, in one line.
pub(crate) fn failed(source: &Source, e: &Error) -> Fail {
    match e.kind() {
        Kind::Invalid => Fail::usage(format!("{source}: {e}")),
        _ => Fail::at(source, e),
    }
}

/// Shows what a volume is: its format, sizes, layout and state.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary info disk.img
  volary info --json disk.img")]
pub(crate) struct Info {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    #[command(flatten)]
    device: DeviceArgs,
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Info {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let facts = self.facts()?;
        let mut out = out::out();
        if self.json {
            out::json(&mut out, &FactJson::all(&facts))?;
        } else {
            out.write_all(facts_text(&facts).as_bytes())?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }

    fn facts(&self) -> Done<Vec<Fact>> {
        if let Some(facts) = apart::facts(&self.volume, &self.device)? {
            return Ok(facts);
        }
        let (source, dev, format) = recognised(&self.volume, &self.device, Use::Look)?;
        format.info(dev).map_err(|e| Fail::opening(&source, &e))
    }
}

/// A fact as JSON: a number where it is one, null where there is none.
#[derive(Serialize)]
#[serde(untagged)]
pub(crate) enum FactJson {
    Number(u64),
    Word(String),
    None,
}

impl FactJson {
    /// Facts by their keys. The values are escaped by their makers.
    pub(crate) fn all(facts: &[Fact]) -> BTreeMap<&'static str, Self> {
        let json = |fact: &Fact| match fact.number {
            Some(number) => Self::Number(number),
            None if fact.is_none => Self::None,
            None => Self::Word(fact.value.clone()),
        };
        facts.iter().map(|fact| (fact.key, json(fact))).collect()
    }
}

/// Facts as a table.
pub(crate) fn facts_text(facts: &[Fact]) -> String {
    let rows: Vec<_> = facts
        .iter()
        .map(|f| vec![format!("  {}", f.key), f.value.clone()])
        .collect();
    out::columns(&rows, &[])
}

/// Prints a structure of a volume in full, as it is stored.
///
/// Works on damaged volumes too, as far as it can. Without WHAT it lists what
/// there is to see.
#[derive(clap::Args, Debug)]
#[command(after_help = DUMP_EXAMPLES)]
#[command(after_long_help = dump_help())]
pub(crate) struct Dump {
    /// The volume
    #[arg(value_name = "VOLUME")]
    volume: OsString,
    /// Which structure, and which of them; dump --help lists them
    #[arg(value_name = "WHAT")]
    what: Vec<String>,
    #[command(flatten)]
    device: DeviceArgs,
}

/// Standard output for a driver that writes text.
struct Text {
    out: out::Out,
    is_begun: bool,
    error: Option<std::io::Error>,
}

impl std::fmt::Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.is_begun = true;
        self.out.write_all(text.as_bytes()).map_err(|e| {
            self.error = Some(e);
            std::fmt::Error
        })
    }
}

impl Dump {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let (source, dev) = device(&self.volume, true)?;
        let mut options = Options::new();
        self.device.kind.add_to(&mut options);
        let found = found(&source, Arc::clone(&dev), &options)?;
        let mut text = Text {
            out: out::out(),
            is_begun: false,
            error: None,
        };
        if self.what.is_empty() && !found.format.dump_topics().is_empty() {
            let topics = topics_text(found.format.dump_topics());
            text.out.write_all(topics.as_bytes())?;
        } else {
            let dumped = self.dump(&source, dev, &found, &mut text);
            if let Some(e) = text.error.take() {
                return Err(e.into());
            }
            dumped?;
        }
        out::end(text.out)?;
        Ok(Exit::Done)
    }

    /// What is asked for, as the device has it; what only a volume has, by the replica.
    fn dump(
        &self,
        source: &Source,
        dev: Arc<dyn BlockDevice>,
        found: &Found,
        text: &mut Text,
    ) -> Done {
        let format = found.format;
        let mut dumped = format.dump(dev, &self.what, text);
        let is_lost = matches!(&dumped, Err(e) if *e == Kind::Corrupt) && !text.is_begun;
        if let Some(replica) = found.replica.as_ref().filter(|_| is_lost) {
            tell_of_replica(source, replica, Use::Look)?;
            dumped = format.dump(Arc::clone(&found.device), &self.what, text);
        }
        dumped.map_err(|e| failed(source, &e))
    }
}

/// Options as a table; what does not fit on a line goes on below.
pub(crate) fn specs_text(specs: &[OptionSpec]) -> String {
    table(specs, '=')
}

/// Topics of a dump as a table: their values are words of their own.
fn topics_text(specs: &[OptionSpec]) -> String {
    table(specs, ' ')
}

fn table(specs: &[OptionSpec], joint: char) -> String {
    let name = |s: &OptionSpec| match s.value {
        "" => format!("  {}", s.name),
        value => format!("  {}{joint}{value}", s.name),
    };
    let widest = specs.iter().map(|s| out::cells(&name(s))).max();
    let room = LINE.saturating_sub(widest.unwrap_or(0) + 2).max(LINE / 3);
    let rows: Vec<_> = specs
        .iter()
        .flat_map(|s| {
            let names = std::iter::once(name(s)).chain(std::iter::repeat(String::new()));
            names
                .zip(lines(s.help, room))
                .map(|(name, line)| vec![name, line])
        })
        .collect();
    out::columns(&rows, &[])
}

/// Columns of a table of options.
const LINE: usize = 80;

/// Returns a text in lines of at most `room` columns, where its words are no longer.
fn lines(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.is_empty() => line.push_str(word),
            Some(line) if out::cells(line) + 1 + out::cells(word) <= room => {
                line.extend([" ", word]);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

/// Returns a table for each format that has any options of this kind.
pub(crate) fn options_help(of: impl Fn(&dyn Format) -> &'static [OptionSpec]) -> String {
    let formats = registry().formats().iter().map(|f| (f.name(), of(*f)));
    tables(formats)
}

fn tables<'a>(all: impl Iterator<Item = (&'a str, &'a [OptionSpec])>) -> String {
    all.filter(|(_, options)| !options.is_empty())
        .map(|(name, options)| format!("\nOptions of {name} (-o):\n{}", specs_text(options)))
        .collect()
}

/// Returns what can be dumped of a volume of each format.
fn dump_help() -> String {
    let formats = registry().formats().iter();
    let formats = formats.filter(|f| !f.dump_topics().is_empty());
    let of = |f: &&dyn Format| format!("\nOf {}:\n{}", f.name(), topics_text(f.dump_topics()));
    let all: String = formats.map(of).collect();
    format!("{DUMP_EXAMPLES}\n{all}")
}

const DUMP_EXAMPLES: &str = "\
Examples:
  volary dump disk.img
  volary dump disk.img boot
  volary dump disk.img dir /docs";

/// Lists the formats, and the options of each.
///
/// Beside the formats of images there are directories of the host (host:DIR), which have no
/// options of their own, and NFS exports (nfs://HOST/EXPORT).
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary formats
  volary formats --json")]
pub(crate) struct Formats {
    /// As JSON
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct FormatJson {
    name: &'static str,
    kinds: &'static [&'static str],
    abilities: Vec<&'static str>,
    mkfs_options: Vec<SpecJson>,
    tune_options: Vec<SpecJson>,
    attach_options: Vec<SpecJson>,
    fsck_options: Vec<SpecJson>,
    dump_topics: Vec<SpecJson>,
}

#[derive(Serialize)]
struct SpecJson {
    name: &'static str,
    value: &'static str,
    help: &'static str,
}

fn specs_json(specs: &[OptionSpec]) -> Vec<SpecJson> {
    specs
        .iter()
        .map(|s| SpecJson {
            name: s.name,
            value: s.value,
            help: s.help,
        })
        .collect()
}

impl Formats {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        if self.json {
            let formats = registry().formats().iter().map(|f| json(*f));
            let all = formats.chain([nfs_json()]);
            let all: Vec<_> = all.chain(registry().schemes().map(scheme_json)).collect();
            out::json(&mut out, &all)?;
        } else {
            for format in registry().formats() {
                out.write_all(text(*format).as_bytes())?;
            }
            let host = specs_text(volary::HOST_OPTIONS);
            writeln!(out, "\n{HOST} (-o):\n{host}")?;
            let nfs = specs_text(volary::nfs_client::OPTIONS);
            writeln!(
                out,
                "{NFS}\n\nTo open one (-o, or after a ? with & between them):\n{nfs}"
            )?;
            for scheme in registry().schemes() {
                out.write_all(scheme_text(scheme).as_bytes())?;
            }
            let every = specs_text(OPTIONS);
            writeln!(out, "Every volume\n\nTo open it (-o):\n{every}")?;
            let layers = layers_text();
            writeln!(out, "Layers over any of them (--layer):\n{layers}")?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }
}

/// What has no image, but options of its own.
const NFS: &str = "nfs://HOST/EXPORT";
const HOST: &str = "host:DIR";

fn json(format: &dyn Format) -> FormatJson {
    let of_every = OPTIONS.iter().filter(|every| {
        let own = format.attach_options();
        !own.iter().any(|spec| spec.name == every.name)
    });
    let every: Vec<OptionSpec> = of_every.copied().collect();
    FormatJson {
        name: format.name(),
        kinds: format.kinds(),
        abilities: can(format),
        mkfs_options: specs_json(format.make_options()),
        tune_options: specs_json(format.tune_options()),
        attach_options: specs_json(&[format.attach_options(), &every].concat()),
        fsck_options: specs_json(format.check_options()),
        dump_topics: specs_json(format.dump_topics()),
    }
}

fn nfs_json() -> FormatJson {
    source_json(NFS, volary::nfs_client::OPTIONS)
}

fn scheme_json(scheme: &Scheme) -> FormatJson {
    source_json(scheme.name(), scheme.own_options())
}

/// Returns a source that has no format.
fn source_json(name: &'static str, options: &[OptionSpec]) -> FormatJson {
    FormatJson {
        name,
        kinds: &[],
        abilities: Vec::new(),
        mkfs_options: Vec::new(),
        tune_options: Vec::new(),
        attach_options: specs_json(&[options, OPTIONS].concat()),
        fsck_options: Vec::new(),
        dump_topics: Vec::new(),
    }
}

fn text(format: &dyn Format) -> String {
    let mut text = format!("{}: {}\n\n", format.name(), format.kinds().join(", "));
    for (head, options) in [
        ("To make one (mkfs -o)", format.make_options()),
        ("To change one (tune -o)", format.tune_options()),
        ("To open one (-o)", format.attach_options()),
        ("To check one (fsck -o)", format.check_options()),
    ] {
        if !options.is_empty() {
            text += &format!("{head}:\n{}\n", specs_text(options));
        }
    }
    if !format.dump_topics().is_empty() {
        text += &format!(
            "To look at (dump):\n{}\n",
            topics_text(format.dump_topics())
        );
    }
    text += &can_text(format);
    text
}

/// Returns, of a format that does not do all that formats can, what it does.
fn can_text(format: &dyn Format) -> String {
    let can = can(format);
    match can.len() == Abilities::WORDS.len() {
        true => String::new(),
        false => format!(
            "Its volumes: {}\n\n",
            [&["open"], &can[..]].concat().join(", ")
        ),
    }
}

/// Returns what a format does beside opening its volumes, in words.
fn can(format: &dyn Format) -> Vec<&'static str> {
    let all = Abilities::WORDS.iter();
    let its = all.filter(|(what, _)| format.abilities().has(*what));
    its.map(|(_, word)| *word).collect()
}

/// Returns what `-o` of commands that open a volume takes, for help.
pub(crate) fn attach_help() -> String {
    let formats = registry().formats().iter();
    let of_formats = formats.map(|f| (f.name(), f.attach_options()));
    let all = of_formats
        .chain([(HOST, volary::HOST_OPTIONS)])
        .chain([(NFS, volary::nfs_client::OPTIONS)])
        .chain(
            registry()
                .schemes()
                .map(|scheme| (scheme.name(), scheme.own_options())),
        );
    tables([("every volume", OPTIONS)].into_iter().chain(all))
}

/// Returns the layers as a table.
pub(crate) fn layers_text() -> String {
    let layers: Vec<OptionSpec> = registry().layers().copied().collect();
    specs_text(&layers)
}

/// Returns sources of schemes as a table: what stands behind the colon, and what that is.
pub(crate) fn schemes_text(schemes: &[OptionSpec]) -> String {
    table(schemes, ':')
}

/// Returns a scheme and its options.
fn scheme_text(scheme: &Scheme) -> String {
    let mut text = format!("{}\n", schemes_text(&[scheme.spec()]));
    if !scheme.own_options().is_empty() {
        text += &format!("To open one (-o):\n{}\n", specs_text(scheme.own_options()));
    }
    text
}

/// Lists the layers that can be put over a volume, and what each is told.
///
/// A layer is put over a volume with --layer NAME or --layer NAME=ARGUMENT, by every command
/// that opens volumes, mount and serve among them; several make a stack, the first lowest.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary layers
  volary layers --json
  volary ls --layer subtree=/docs --layer readonly disk.img")]
pub(crate) struct Layers {
    /// As JSON
    #[arg(long)]
    json: bool,
}

impl Layers {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        let mut out = out::out();
        if self.json {
            let layers: Vec<OptionSpec> = registry().layers().copied().collect();
            out::json(&mut out, &specs_json(&layers))?;
        } else {
            out.write_all(layers_text().as_bytes())?;
        }
        out::end(out)?;
        Ok(Exit::Done)
    }
}
