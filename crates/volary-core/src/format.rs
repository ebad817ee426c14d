//! Formats: recognising, making, checking, showing and tuning volumes of one kind.

use crate::abilities::refusal;
use crate::{
    Abilities, BlockDevice, Error, Finding, Fs, Kind, OptionSpec, Options, Others, Result, Time,
    escape,
};
use std::fmt;
use std::sync::Arc;

/// A kind of volume. Each driver exports one.
///
/// A driver must give [`name`](Self::name), [`kinds`](Self::kinds), [`probe`](Self::probe) and
/// [`attach`](Self::attach). The rest is optional: a method, and its bit in
/// [`abilities`](Self::abilities). Default bodies refuse (`Unsupported`) in one line that names the
/// format.
///
/// An operation on a device needs it exclusively: an attached volume must not be checked, tuned or
/// made anew at the same time.
pub trait Format: Send + Sync {
    /// Returns the format's name: `fat`.
    fn name(&self) -> &'static str;

    /// Returns the kinds of its volumes: `fat12`, `fat16`, `fat32`.
    fn kinds(&self) -> &'static [&'static str];

    /// Returns the format's abilities besides attaching: a bit for each optional method that it
    /// has.
    fn abilities(&self) -> Abilities {
        Abilities::NONE
    }

    /// Returns the programs to name when this format refuses an operation.
    fn others(&self) -> Others {
        Others::default()
    }

    /// Tests whether the device holds a volume of this format, with as few reads as make that sure.
    /// Does not look for damage beyond these.
    ///
    /// # Errors
    /// `Io`.
    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>>;

    /// Looks for a replica of the identifying structure (such as the superblock) if the primary one
    /// makes no sense. The replica must agree with the device and with the parts of the volume that
    /// are read. Reads some tens of MiB at most. `None` if the primary is sound, if no replica
    /// fits, or if the format keeps none.
    ///
    /// # Errors
    /// `Io`.
    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        let _ = dev;
        Ok(None)
    }

    /// Returns the option of [`attach`](Self::attach) and [`check`](Self::check) that selects the
    /// replica to use, if there is one.
    fn replica_option(&self) -> Option<&'static str> {
        None
    }

    /// Returns the options that [`attach`](Self::attach) knows.
    fn attach_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Returns the options that [`make`](Self::make) knows.
    fn make_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Returns the options that [`tune`](Self::tune) knows.
    fn tune_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Returns the options that [`check`](Self::check) knows.
    fn check_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Attaches the volume on the device.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` naming the first field that is out of its range;
    /// `Unsupported` for an unknown variant.
    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs>;

    /// Attaches the volume on the device as a cache: it keeps copies of files of `remote`.
    ///
    /// # Errors
    /// As [`attach`](Self::attach). `Invalid` if the format is no cache, or if the volume was made
    /// for another remote. A remote that cannot be reached (`Io`) is no error: the cached files
    /// stay available.
    fn attach_over(&self, dev: Arc<dyn BlockDevice>, how: &Attach, remote: Remote) -> Result<Fs> {
        let _ = (dev, how);
        let words = format!(
            "option 'remote' is '{}': a {} volume keeps no files of others",
            remote.name,
            self.name()
        );
        Err(Error::note(Kind::Invalid, words))
    }

    /// Makes a new, empty volume over the whole device. The old content is lost.
    ///
    /// # Errors
    /// `Invalid` for an option, or if the device is too small or too large
    /// for the kind; nothing is written then.
    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        let _ = (dev, kind, how);
        Err(refusal(self.name(), self.others(), Abilities::MAKE))
    }

    /// Checks the volume and mends it as far as `how` allows. Calls `report` for each finding, in
    /// order; its answer decides in [`CheckMode::Ask`].
    ///
    /// After a run that mended everything, another run finds nothing and writes nothing.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` if too little is left to tell what the volume was; `Io`.
    fn check(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Check,
        report: &mut dyn FnMut(&Finding) -> Answer,
        progress: &dyn Progress,
    ) -> Result<CheckReport> {
        let _ = (dev, how, report, progress);
        Err(refusal(self.name(), self.others(), Abilities::CHECK))
    }

    /// Returns the superblock and the layout, in words. Default: what [`probe`](Self::probe) finds,
    /// and the size.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    fn info(&self, dev: Arc<dyn BlockDevice>) -> Result<Vec<Fact>> {
        let words = || format!("no {} volume", self.name());
        let probe = self.probe(&*dev)?;
        let probe = probe.ok_or_else(|| Error::note(Kind::Corrupt, words()))?;
        let label = probe
            .label
            .map(|label| escape(label.as_bytes()).to_string());
        Ok(vec![
            Fact::word("format", probe.kind),
            Fact::maybe("label", label),
            Fact::number("size", dev.geometry().size, "bytes"),
        ])
    }

    /// Returns the topics that [`dump`](Self::dump) can show: a pattern such as `cluster N`, and
    /// what it prints. A format without topics dumps nothing.
    fn dump_topics(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Prints one structure in full, as it is stored. Works on damaged volumes
    /// as far as it can.
    ///
    /// # Errors
    /// `Invalid` for an unknown topic; `NotFound`.
    fn dump(
        &self,
        dev: Arc<dyn BlockDevice>,
        what: &[String],
        out: &mut dyn fmt::Write,
    ) -> Result<()> {
        let _ = (dev, what, out);
        let words = format!("structures of {} volumes are not shown here", self.name());
        Err(Error::note(Kind::Unsupported, words))
    }

    /// Returns what lies where, in at most `cells` cells of equal length.
    ///
    /// # Errors
    /// As [`attach`](Self::attach).
    fn map(&self, dev: Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
        let _ = (dev, cells);
        Err(refusal(self.name(), self.others(), Abilities::MAP))
    }

    /// Changes a volume in place, and returns what was done. It can be interrupted at any point,
    /// also by a power cut, without harm to the volume's files.
    ///
    /// # Errors
    /// `Invalid`; `Unsupported`; `Corrupt` for a volume that needs `check` first.
    fn tune(
        &self,
        dev: Arc<dyn BlockDevice>,
        how: &Tune,
        progress: &dyn Progress,
    ) -> Result<Vec<Fact>> {
        let _ = (dev, how, progress);
        Err(refusal(self.name(), self.others(), Abilities::TUNE))
    }

    /// Marks sectors as bad, so that nothing is stored there. Their numbers count from the start of
    /// the device, in the volume's own sector size.
    ///
    /// # Errors
    /// `Invalid` for a sector outside the data area; `Busy` for one that holds a file's data.
    /// Nothing is marked then. `ReadOnly` for a volume that takes no changes until `check` has run.
    fn mark_bad(&self, dev: Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
        let _ = (dev, sectors);
        Err(refusal(self.name(), self.others(), Abilities::MARK_BAD))
    }
}

/// What a device was recognised as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The kind: `fat16`.
    pub kind: &'static str,
    /// The volume's label, if it has one.
    pub label: Option<String>,
}

impl Probe {
    /// Returns the result for a volume of this kind without a label.
    pub fn of(kind: &'static str) -> Self {
        Self { kind, label: None }
    }
}

/// A replica of the structure that identifies a volume; see [`Format::replica`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The kind of the volume: `ffs2`.
    pub kind: &'static str,
    /// The structure that it replicates: `superblock`.
    pub what: &'static str,
    /// Byte offset of the replica.
    pub at: u64,
    /// Byte offset of the primary structure.
    pub home: u64,
    /// The bytes of the primary structure, restored from the replica. A device with these bytes at
    /// `home` holds the volume.
    pub bytes: Vec<u8>,
    /// Whether other structures of the volume were found where the replica says that they are. An
    /// unconfirmed one may be left over from a former volume, so it is used only if the user names
    /// the format.
    pub is_confirmed: bool,
}

/// How to attach.
#[derive(Clone, Debug)]
pub struct Attach {
    /// Refuse changes, and write nothing at all.
    pub read_only: bool,
    /// Bound on the memory for caches, in bytes.
    pub memory: u64,
    /// The attaching user, who owns everything that has no owner of its own.
    pub uid: u32,
    /// The attaching user's group.
    pub gid: u32,
    /// The attaching user's umask.
    pub umask: u32,
    /// The format's own options.
    pub options: Options,
}

impl Attach {
    /// The default memory bound: 64 MiB.
    pub const MEMORY: u64 = 64 << 20;
}

impl Default for Attach {
    fn default() -> Self {
        Self {
            read_only: false,
            memory: Self::MEMORY,
            uid: 0,
            gid: 0,
            umask: 0o022,
            options: Options::new(),
        }
    }
}

/// Another volume, whose files an attached volume caches.
pub struct Remote {
    /// Its name, as the user gave it.
    pub name: String,
    open: Box<dyn Fn() -> Result<Fs> + Send + Sync>,
}

impl Remote {
    /// Returns a remote that `open` opens, for reading.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            open: Box::new(open),
        }
    }

    /// Opens the remote: at its first use, and again if it could not be reached then.
    ///
    /// # Errors
    /// `Io` if it cannot be reached now; other errors if it never can be.
    pub fn open(&self) -> Result<Fs> {
        (self.open)()
    }
}

impl fmt::Debug for Remote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.name).finish()
    }
}

/// How to make a volume.
#[derive(Clone, Debug, Default)]
pub struct Make {
    /// The volume's label.
    pub label: Option<String>,
    /// The time to use in time stamps.
    pub now: Time,
    /// The seed of random parts (a serial number): the same seed makes the same bytes.
    pub seed: u64,
    /// The format's own options.
    pub options: Options,
}

/// What a check may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Write nothing (`-n`).
    Look,
    /// Mend what a crash can leave, and stop at any other finding (`-p`).
    Preen,
    /// Mend everything (`-y`).
    Mend,
    /// Ask about each finding.
    Ask,
}

/// How to check.
#[derive(Clone, Debug)]
pub struct Check {
    /// What the check may do.
    pub mode: CheckMode,
    /// The time stamp of nodes that it makes (`lost+found`).
    pub now: Time,
    /// The format's own options.
    pub options: Options,
}

/// The answer to a [`Finding`] in [`CheckMode::Ask`]; ignored in other modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Mend it.
    Yes,
    /// Leave it.
    No,
}

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Number of findings, without notes.
    pub found: u64,
    /// How many of these were mended.
    pub mended: u64,
    /// Sectors written.
    pub written: u64,
    /// The volume in figures: files, directories, free space.
    pub facts: Vec<Fact>,
}

impl CheckReport {
    /// Returns how many findings were not mended.
    pub fn left(&self) -> u64 {
        self.found.saturating_sub(self.mended)
    }
}

/// A figure or a word about a volume, for a table or for JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// The name of the fact: `cluster size`.
    pub key: &'static str,
    /// The value in words for people: `4096 bytes`.
    pub value: String,
    /// The value as a number, if it is one, in the unit that `value` names.
    pub number: Option<u64>,
    /// Whether the volume has no such thing; `value` is then `none`.
    pub is_none: bool,
}

impl Fact {
    /// Returns a fact in words.
    pub fn word(key: &'static str, value: impl Into<String>) -> Self {
        Self {
            key,
            value: value.into(),
            number: None,
            is_none: false,
        }
    }
    /// Returns the fact that a volume has no such thing.
    pub fn none(key: &'static str) -> Self {
        Self {
            is_none: true,
            ..Self::word(key, "none")
        }
    }
    /// Returns a fact in words, or that the volume has no such thing.
    pub fn maybe(key: &'static str, value: Option<String>) -> Self {
        value.map_or_else(|| Self::none(key), |value| Self::word(key, value))
    }
    /// Returns a number with its unit.
    pub fn number(key: &'static str, number: u64, unit: &str) -> Self {
        let value = if unit.is_empty() {
            number.to_string()
        } else {
            format!("{number} {unit}")
        };
        Self {
            key,
            value,
            number: Some(number),
            is_none: false,
        }
    }
}

/// How to tune a volume.
#[derive(Clone, Debug, Default)]
pub struct Tune {
    /// A new label; "" removes it.
    pub label: Option<String>,
    /// Stores each file's data in one piece, at the start of the volume.
    pub compact: bool,
    /// Sets or clears the mark of a volume that was not cleanly detached.
    pub dirty: Option<bool>,
    /// The time to use in time stamps.
    pub now: Time,
    /// The format's own options.
    pub options: Options,
}

/// What lies where on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMap {
    /// Bytes that a cell stands for; the last may stand for less.
    pub cell_len: u64,
    /// The cells, in order.
    pub cells: Vec<MapCell>,
    /// Runs of file data that do not continue the file's previous run.
    pub breaks: u64,
}

/// What is in one cell, in bytes of each use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCell {
    /// The format's own structures.
    pub system: u64,
    /// Directories.
    pub dir: u64,
    /// Files that lie in one run.
    pub file: u64,
    /// Files that lie in several runs.
    pub broken: u64,
    /// Marked bad.
    pub bad: u64,
    /// Free.
    pub free: u64,
    /// In use, but not reachable by any path.
    pub lost: u64,
}

/// Takes reports of how far long work has come, and can end it.
pub trait Progress {
    /// Reports that `done` of `total` units of `what` are done; `total` is 0 while it is unknown.
    ///
    /// # Errors
    /// `Interrupted` if the user wants to stop: the work ends at the next point where that does no
    /// harm.
    fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()>;
}

/// Reports to nobody, and never ends the work.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn progress(&self, _: &'static str, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

/// Returns the `Invalid` of [`Format::make`] for an unknown kind. It lists the known ones.
pub fn unknown_kind(format: &dyn Format, kind: &str) -> Error {
    Error::note(
        Kind::Invalid,
        format!(
            "unknown kind '{kind}'; {} has: {}",
            format.name(),
            format.kinds().join(", ")
        ),
    )
}
