//! Formats: what makes, checks, shows and tunes volumes of one kind.

use crate::abilities::refusal;
use crate::{
    Abilities, BlockDevice, Error, Finding, Fs, Kind, OptionSpec, Options, Others, Result, Time,
    escape,
};
use std::fmt;
use std::sync::Arc;

/// A kind of volume. Each driver exports one.
///
/// A driver gives [`name`](Self::name), [`kinds`](Self::kinds), [`probe`](Self::probe) and
/// [`attach`](Self::attach). All else is for those that can: a method, and its bit in
/// [`abilities`](Self::abilities). Default bodies refuse (`Unsupported`) in one line that names the format.
///
/// The operations on a device need it for themselves: a volume that is
/// attached must not be checked, tuned or made anew at the same time.
pub trait Format: Send + Sync {
    /// Returns the format's name: `fat`.
    fn name(&self) -> &'static str;

    /// Returns the kinds of its volumes: `fat12`, `fat16`, `fat32`.
    fn kinds(&self) -> &'static [&'static str];

    /// Returns what the format does beside attaching: a bit for each optional method that it has.
    fn abilities(&self) -> Abilities {
        Abilities::NONE
    }

    /// Returns the programs that do what it does not, for the line in which it refuses.
    fn others(&self) -> Others {
        Others::default()
    }

    /// Looks whether the device holds a volume of this format, by as little
    /// as tells it for sure. Damage past that is not looked for.
    ///
    /// # Errors
    /// `Io`.
    fn probe(&self, dev: &dyn BlockDevice) -> Result<Option<Probe>>;

    /// Looks for a replica of the structure that the volume is told by, where the first one makes
    /// no sense. It fits the device, and as much of the volume as is looked at. Reads some tens of
    /// MiB at most. `None` where the first makes sense, where there is no such replica, and
    /// of a format that keeps none.
    ///
    /// # Errors
    /// `Io`.
    fn replica(&self, dev: &dyn BlockDevice) -> Result<Option<Replica>> {
        let _ = dev;
        Ok(None)
    }

    /// Returns the option of [`attach`](Self::attach) and [`check`](Self::check) that names the replica to
    /// go by, if there is one.
    fn replica_option(&self) -> Option<&'static str> {
        None
    }

    /// Options that [`attach`](Self::attach) knows.
    fn attach_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Options that [`make`](Self::make) knows.
    fn make_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Options that [`tune`](Self::tune) knows.
    fn tune_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Options that [`check`](Self::check) knows.
    fn check_options(&self) -> &'static [OptionSpec] {
        &[]
    }

    /// Attaches the volume on the device.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` naming the first field that is out
    /// of its range; `Unsupported` for a variant that is not known.
    fn attach(&self, dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Fs>;

    /// Attaches the volume on the device, which keeps copies of files of `remote`.
    ///
    /// # Errors
    /// As [`attach`](Self::attach); `Invalid` of a format that keeps none, and for
    /// another remote than the volume was made for. A remote that cannot be reached
    /// (`Io`) is none: what is here of it is there.
    fn attach_over(&self, dev: Arc<dyn BlockDevice>, how: &Attach, remote: Remote) -> Result<Fs> {
        let _ = (dev, how);
        let words = format!(
            "option 'remote' is '{}': a {} volume keeps no files of others",
            remote.name,
            self.name()
        );
        Err(Error::note(Kind::Invalid, words))
    }

    /// Makes a new, empty volume over the whole device. What was there is lost.
    ///
    /// # Errors
    /// `Invalid` for an option, or if the device is too small or too large
    /// for the kind; nothing is written then.
    fn make(&self, dev: Arc<dyn BlockDevice>, kind: &str, how: &Make) -> Result<Vec<Fact>> {
        let _ = (dev, kind, how);
        Err(refusal(self.name(), self.others(), Abilities::MAKE))
    }

    /// Checks the volume and mends it as far as `how` allows. `report` is told
    /// of each finding, in order, and decides in [`CheckMode::Ask`].
    ///
    /// After a run that left nothing, another finds nothing and writes nothing.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` if there is too little left to say what the
    /// volume was; `Io`.
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

    /// Returns the superblock and the layout, in words. Default: what [`probe`](Self::probe) tells, and the size.
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

    /// Returns what [`dump`](Self::dump) can show: a pattern such as `cluster N`, and
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

    /// Changes a volume in place, and says what was done. It may be stopped at
    /// any point, by a power cut too, without harm to what the volume holds.
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

    /// Marks sectors (numbers counted from the start of the device, in the
    /// volume's own sector size) so that nothing is put there.
    ///
    /// # Errors
    /// `Invalid` for a sector outside of the data area; `Busy` for one that
    /// holds a file's data; nothing is marked then. `ReadOnly` for a volume that
    /// takes no changes until `check` has seen it.
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
    /// Returns what is found of a volume of this kind without a label.
    pub fn of(kind: &'static str) -> Self {
        Self { kind, label: None }
    }
}

/// A replica of the structure that a volume is told by; see [`Format::replica`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replica {
    /// The kind of the volume: `ffs2`.
    pub kind: &'static str,
    /// What it replicates: `superblock`.
    pub what: &'static str,
    /// Where it stands, in bytes.
    pub at: u64,
    /// Where the first one belongs, in bytes.
    pub home: u64,
    /// The first one, as the replica has it: a device that reads so at `home` holds the volume.
    pub bytes: Vec<u8>,
    /// Whether other structures of the volume were found where the replica says that they are.
    /// One that is not confirmed may be left of a volume that has gone: only a user who names
    /// the format goes by it.
    pub is_confirmed: bool,
}

/// How to attach.
#[derive(Clone, Debug)]
pub struct Attach {
    /// Refuse changes, and write nothing at all.
    pub read_only: bool,
    /// Bound on the memory for caches, in bytes.
    pub memory: u64,
    /// User of the one who attaches: owns what has no owner of its own.
    pub uid: u32,
    /// Their group.
    pub gid: u32,
    /// Their umask.
    pub umask: u32,
    /// The format's own options.
    pub options: Options,
}

impl Attach {
    /// The memory bound unless the user sets another: 64 MiB.
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

/// Another volume, of which one that is attached keeps files.
pub struct Remote {
    /// As the user names it.
    pub name: String,
    open: Box<dyn Fn() -> Result<Fs> + Send + Sync>,
}

impl Remote {
    /// Returns a volume that `open` opens, for reading.
    pub fn new(
        name: impl Into<String>,
        open: impl Fn() -> Result<Fs> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name: name.into(),
            open: Box::new(open),
        }
    }

    /// Opens it: at the first use, and again if it could not be reached then.
    ///
    /// # Errors
    /// `Io` if it cannot be reached; others if it never will.
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
    /// The time for its time stamps.
    pub now: Time,
    /// What random parts (a serial number) are made from: same seed, same bytes.
    pub seed: u64,
    /// The format's own options.
    pub options: Options,
}

/// What a check may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CheckMode {
    /// Write nothing (`-n`).
    Look,
    /// Mend what a crash can leave, and stop at anything else (`-p`).
    Preen,
    /// Mend everything (`-y`).
    Mend,
    /// Ask for each finding.
    Ask,
}

/// How to check.
#[derive(Clone, Debug)]
pub struct Check {
    /// What it may do.
    pub mode: CheckMode,
    /// The time for time stamps of what it makes (`lost+found`).
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

/// How a check went.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Findings but notes.
    pub found: u64,
    /// Of these, mended.
    pub mended: u64,
    /// Sectors written.
    pub written: u64,
    /// In figures: files, directories, free space.
    pub facts: Vec<Fact>,
}

impl CheckReport {
    /// Findings that are still there.
    pub fn left(&self) -> u64 {
        self.found.saturating_sub(self.mended)
    }
}

/// A figure or a word about a volume, for a table or for JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What: `cluster size`.
    pub key: &'static str,
    /// In words for people: `4096 bytes`.
    pub value: String,
    /// As a number, where it is one, in the unit that `value` names.
    pub number: Option<u64>,
    /// Whether there is no such thing: `value` is `none`.
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
    /// Returns a fact that the volume has none of.
    pub fn none(key: &'static str) -> Self {
        Self {
            is_none: true,
            ..Self::word(key, "none")
        }
    }
    /// In words, or none.
    pub fn maybe(key: &'static str, value: Option<String>) -> Self {
        value.map_or_else(|| Self::none(key), |value| Self::word(key, value))
    }
    /// Returns a figure and its unit.
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

/// How to tune.
#[derive(Clone, Debug, Default)]
pub struct Tune {
    /// A new label; "" takes it away.
    pub label: Option<String>,
    /// Put each file's data in one piece, at the start of the volume.
    pub compact: bool,
    /// Sets or clears the mark of a volume that was not cleanly left.
    pub dirty: Option<bool>,
    /// The time for time stamps.
    pub now: Time,
    /// The format's own options.
    pub options: Options,
}

/// What lies where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VolumeMap {
    /// Bytes that a cell stands for; the last may stand for fewer.
    pub cell_len: u64,
    /// The cells, in order.
    pub cells: Vec<MapCell>,
    /// Runs of file data that do not follow on the one before in the file.
    pub breaks: u64,
}

/// What is in one cell: bytes of each use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MapCell {
    /// The format's own structures.
    pub system: u64,
    /// Directories.
    pub dir: u64,
    /// Files that lie in one piece.
    pub file: u64,
    /// Files that lie in several.
    pub broken: u64,
    /// Marked bad.
    pub bad: u64,
    /// Free.
    pub free: u64,
    /// Taken, but by nothing that a path leads to.
    pub lost: u64,
}

/// Is told how far long work has come, and can end it.
pub trait Progress {
    /// `done` of `total` units of `what`; `total` is 0 while it is not known.
    ///
    /// # Errors
    /// `Interrupted` when the user has had enough: the work stops at the next
    /// point where it leaves no harm.
    fn progress(&self, what: &'static str, done: u64, total: u64) -> Result<()>;
}

/// Tells nobody, goes on to the end.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn progress(&self, _: &'static str, _: u64, _: u64) -> Result<()> {
        Ok(())
    }
}

/// `Invalid` with the kinds that there are, for [`Format::make`].
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
