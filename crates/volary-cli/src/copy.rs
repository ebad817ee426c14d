//! `volary cp`: trees from the host into volumes, out of them, and between them. The library copies; this says what is to
//! be copied, and what came of it.

use crate::clock;
use crate::exit::{Done, Exit, Fail, words};
use crate::log::warn;
use crate::progress::Bar;
use crate::verbs::attrs::Owner;
use crate::verbs::change::{gid, uid};
use crate::verbs::mkfs::size;
use crate::volumes::{self, AttachArgs, Use, Volumes};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use volary::copy::{
    Copies, CopyOptions, Damage, Failure, Lost, Observer, Origin, Summary, Target, Told,
    VolumePlace, Why, image_id,
};
use volary::{Place, Source};

/// Copies files and trees: into a volume, out of it, and between volumes.
///
/// What has the form VOLUME:/path is in a volume, all else is on the host;
/// `-` is standard input or output. Times and modes are kept as far as the
/// target can keep them; files of a volume without modes get 0666, directories
/// 0777, less the umask. Symlinks are copied as symlinks with -r. Holes stay holes
/// where the target has any, and are filled with zeros elsewhere.
///
/// With -a, what the target cannot keep has a line for each kind, and the exit
/// code is 1. Who owns a file on the host is set by root alone; others keep what
/// they copy, without its set-uid and set-gid bits.
///
/// What cannot be read of a damaged file is zeros in the copy, and has its line
/// with the bytes that are missing; a file of which nothing can be read is left
/// out. Either way the rest is copied, and the exit code is 1.
#[derive(clap::Args, Debug)]
#[command(after_help = "\
Examples:
  volary cp tree/a.txt disk.img:/
  volary cp -r tree disk.img:/
  volary cp -r tree/. disk.img:/new
  volary cp -r disk.img:/docs out
  volary cp -r disk.img:/docs unix.img:/
  volary cp -a --max-size 1G unix.img:/docs saved
  echo hello | volary cp - disk.img:/hello.txt")]
pub(crate) struct Cp {
    /// What to copy, and last where to
    #[arg(required = true, num_args = 2.., value_name = "PLACE")]
    places: Vec<OsString>,
    /// Directories too, with all that is below
    #[arg(short, long, visible_short_alias = 'R')]
    recursive: bool,
    /// Owners and exact modes too, and with -r, for root, devices
    #[arg(short, long)]
    preserve: bool,
    /// Everything: as -rp, and hard links, extended attributes and DOS attributes
    #[arg(short, long)]
    archive: bool,
    /// Stops before the file with which more than SIZE bytes would be copied, holes not counted
    #[arg(long, value_name = "SIZE", value_parser = size)]
    max_size: Option<u64>,
    /// Leaves what is there
    #[arg(short, long)]
    no_clobber: bool,
    /// Replaces only what is older
    #[arg(short, long)]
    update: bool,
    /// Copies what symlinks of the host lead to
    #[arg(short = 'L', long)]
    dereference: bool,
    /// The owner in the volume: USER:GROUP, by name or number (default: you)
    #[arg(long, value_name = "OWNER")]
    owner: Option<Owner>,
    #[command(flatten)]
    attach: AttachArgs,
}

/// Something to copy, or where to.
enum Spot {
    /// Standard input or output.
    Standard,
    Host(PathBuf),
    Volume(VolumePlace),
}

/// A copy that is one of several: what it remembers between them.
pub(crate) struct Trip(Copies);

impl Trip {
    /// For `mv`: hard links between what is moved stay, and what would be lost is told.
    pub(crate) fn moving(max_size: Option<u64>) -> Self {
        Self(Copies::new(Told::Content, max_size))
    }
}

impl Cp {
    /// Runs it.
    pub(crate) fn run(&self) -> Done<Exit> {
        crate::interrupt::catch();
        let told = match (self.archive, self.preserve) {
            (true, _) => Told::All,
            (false, true) => Told::Attributes,
            (false, false) => Told::None,
        };
        let mut trip = Trip(Copies::new(told, self.max_size));
        Volumes::run(&self.attach, |volumes| self.within(volumes, &mut trip))
    }

    /// One place to another with all that is in it, as `mv` wants it: nothing
    /// is left out and nothing is followed.
    pub(crate) fn moving(from: OsString, into: OsString) -> Self {
        Self {
            places: vec![from, into],
            recursive: true,
            preserve: true,
            archive: true,
            max_size: None,
            no_clobber: false,
            update: false,
            dereference: false,
            owner: None,
            attach: AttachArgs::default(),
        }
    }

    /// Runs it on volumes that are open, or are opened.
    pub(crate) fn within(&self, volumes: &mut Volumes, trip: &mut Trip) -> Done<Exit> {
        let (last, firsts) = self
            .places
            .split_last()
            .ok_or_else(|| Fail::usage("nothing to copy"))?;
        // The target first: it is opened to be changed.
        let into = Spot::open(volumes, last, Use::Change)?;
        let from: Vec<Spot> = firsts
            .iter()
            .map(|arg| Spot::open(volumes, arg, Use::Look))
            .collect::<Done<_>>()?;
        if matches!(into, Spot::Host(_)) && from.iter().any(|f| matches!(f, Spot::Host(_))) {
            let line = "both are places of the host: use cp; a place in a volume is \
                        VOLUME:/path";
            return Err(Fail::usage(line));
        }
        trip.0.spare(volumes.images());
        let origins = from.into_iter().map(Origin::from).collect();
        let mut output = crate::out::Raw;
        let target = match into {
            Spot::Standard => Target::Output {
                to: &mut output,
                place: "standard output",
            },
            Spot::Host(path) => Target::Host(path),
            Spot::Volume(place) => Target::Volume(place),
        };
        let teller = Teller::new();
        let copied = trip.0.copy(origins, target, &self.how()?, &teller);
        drop(teller);
        match copied {
            Ok(summary) => Ok(exit(&summary)),
            Err(failure) => {
                let fail = Fail::from(&failure);
                Err(match fail.exit {
                    // The sink is full or cannot go on: a failure, not the user's wish.
                    Exit::Stopped if !crate::interrupt::is_set() => {
                        Fail::new(Exit::Failed, fail.line)
                    }
                    _ => fail,
                })
            }
        }
    }

    fn how(&self) -> Done<CopyOptions> {
        let options = self.attach.attach(Use::Look)?.options;
        let masks = ["umask", "fmask", "dmask"];
        let owner = self.owner;
        let (uid, gid) = (uid(), gid());
        Ok(CopyOptions {
            recursive: self.recursive || self.archive,
            dereference: self.dereference,
            preserve: self.preserve || self.archive,
            everything: self.archive,
            no_clobber: self.no_clobber,
            update: self.update,
            owner_is_given: owner.is_some(),
            shown_modes: masks.iter().any(|mask| options.get(mask).is_some()),
            ..CopyOptions::new(
                owner.and_then(|o| o.uid).unwrap_or(uid),
                owner.and_then(|o| o.gid).unwrap_or(gid),
                clock::now(),
            )
        })
    }
}

impl Spot {
    fn open(volumes: &mut Volumes, arg: &OsStr, usage: Use) -> Done<Self> {
        if arg == "-" {
            return Ok(Self::Standard);
        }
        match volumes::place(arg)? {
            Place::Host(path) => Ok(Self::Host(path)),
            Place::Volume { source, path } => {
                let session = volumes.session(&source, usage)?;
                let device = match usage {
                    Use::Look => volumes.device(&source),
                    Use::Change => None,
                };
                let (mut image, mut host_dir) = (None, None);
                match source {
                    Source::Image { path, .. } => image = image_id(&path),
                    Source::Host { path } => host_dir = Some(path),
                    _ => {}
                }
                Ok(Self::Volume(VolumePlace {
                    session,
                    path,
                    device,
                    image,
                    host_dir,
                }))
            }
        }
    }
}

impl From<Spot> for Origin<'_> {
    fn from(spot: Spot) -> Self {
        match spot {
            Spot::Standard => Self::Input {
                from: Box::new(crate::interrupt::Stdin),
                place: "standard input",
            },
            Spot::Host(path) => Self::Host(path),
            Spot::Volume(place) => Self::Volume(place),
        }
    }
}

/// Returns what the command ends with.
fn exit(summary: &Summary) -> Exit {
    match &summary.unwritten {
        _ if summary.is_lossy || summary.is_incomplete => Exit::Failed,
        Some(failure) => Fail::from(failure).exit,
        None => Exit::Done,
    }
}

/// Says what could not be copied or kept, shows how far it has come, and asks whether the user wants more.
struct Teller(Mutex<Copied>);

/// What was copied so far.
struct Copied {
    bar: Bar,
    files: u64,
    bytes: u64,
}

impl Teller {
    fn new() -> Self {
        Self(Mutex::new(Copied {
            bar: Bar::new("copied"),
            files: 0,
            bytes: 0,
        }))
    }
}

impl Observer for Teller {
    fn failed(&self, failure: &Failure) {
        Fail::from(failure).report();
    }

    fn damaged(&self, damage: &Damage) {
        warn(&damage.to_string());
    }

    fn lost(&self, lost: &Lost) {
        warn(&lost.to_string());
    }

    fn copied(&self, files: u64, bytes: u64) {
        // Figures are whole whoever panicked.
        let mut copied = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        copied.files += files;
        copied.bytes += bytes;
        copied.bar.copied(copied.files, copied.bytes);
    }

    fn is_stopped(&self) -> bool {
        crate::interrupt::is_set()
    }
}

impl From<&Failure> for Fail {
    fn from(failure: &Failure) -> Self {
        let place = failure.place();
        let mut fail = match failure.why() {
            Why::Volume(e) => Self::at(place, e),
            Why::Output(e) if e.kind() == io::ErrorKind::BrokenPipe => Self::new(Exit::Done, ""),
            Why::Host(e) | Why::Output(e) => {
                Self::new(Exit::Failed, format!("{place}: {}", words(e)))
            }
            Why::Twice(volume) => {
                let line = format!("{failure}: volary fsck -n {volume}");
                Self::new(Exit::Damaged, line)
            }
            Why::NoDirectory | Why::IntoItself => Self::usage(failure.to_string()),
            Why::NoName => Self::usage(format!("{place} has no name; write VOLUME:/path/name")),
            Why::Told => Self::new(Exit::Stopped, ""),
            why => Self::new(Exit::Failed, format!("{failure}{}", advice(why))),
        };
        if failure.stops() && fail.exit == Exit::Failed {
            fail.exit = Exit::Stopped;
        }
        if let (Some(and), Why::Volume(_) | Why::Host(_)) = (failure.more(), failure.why()) {
            fail.line = format!("{}; {}", fail.line, and.words());
        }
        fail
    }
}

/// Returns what to do about it, or by which option it came.
fn advice(why: &Why) -> &'static str {
    match why {
        Why::Directory => "; use cp -r",
        Why::Full(_) => "; delete something, or make a larger volume",
        Why::Symlink => " (cp -L copies what it leads to)",
        Why::Device => " (cp -a makes it, if root runs it)",
        Why::TooMuch(_) => " (--max-size)",
        _ => "",
    }
}
