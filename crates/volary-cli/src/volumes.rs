//! The volumes that a command works on: opened once each, and detached at the
//! end whatever happens.

use crate::clock;
use crate::exit::{Done, Exit, Fail};
pub(crate) use crate::kind::{KindArg, kind};
use crate::log::warn;
use crate::modelled;
use crate::plugins::PluginArgs;
use crate::registry::registry;
use crate::stack::{Report, stack};
pub(crate) use crate::tally::Tally;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary::copy::{HostId, image_id};
use volary::{
    Abilities, Attach, BlockDevice, Commit, Cred, Entry, Error, Follow, Format, Kind, NodeId,
    OptionSpec, Options, Place, Raw, Replica, Session, Source, TYPE_OPTION, Volume, VolumeOptions,
};

/// Options of every command that opens a volume.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct AttachArgs {
    #[command(flatten)]
    pub(crate) options: OptionArgs,
    #[command(flatten)]
    pub(crate) kind: KindArg,
}

/// Those that have no other meaning for any command.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct OptionArgs {
    /// How to open the volume: options of every volume and of its format, with commas
    /// between them; volary formats lists them
    #[arg(short = 'o', long = "options", value_name = "OPTIONS")]
    pub(crate) options: Vec<String>,
    /// Puts a layer over each volume, the first lowest; volary layers lists them
    #[arg(long = "layer", value_name = "LAYER[=ARGUMENT]")]
    pub(crate) layers: Vec<String>,
    #[command(flatten)]
    pub(crate) plugins: PluginArgs,
}

impl From<OptionArgs> for AttachArgs {
    fn from(options: OptionArgs) -> Self {
        Self {
            options,
            kind: KindArg::default(),
        }
    }
}

impl AttachArgs {
    /// Returns whether nothing was said about the volume.
    pub(crate) fn is_empty(&self) -> bool {
        let OptionArgs {
            options,
            layers,
            plugins,
        } = &self.options;
        let is_open_as_usual = options.is_empty() && layers.is_empty() && plugins.is_empty();
        is_open_as_usual && self.kind.is_none()
    }

    /// Has all volumes of this process know the plug-ins that were named.
    pub(crate) fn install_plugins(&self) {
        self.options.plugins.install(None);
    }

    /// As the driver wants it.
    ///
    /// # Errors
    /// Of a memory bound that is none.
    pub(crate) fn attach(&self, usage: Use) -> Done<Attach> {
        let mut options = Options::new();
        for text in &self.options.options {
            options.add(text);
        }
        self.kind.add_to(&mut options);
        attach_with(options, usage)
    }
}

/// Takes what is volary's own (`ro`, `rw`, `memory`) out of `options`, and has the others'
/// errors name it.
///
/// # Errors
/// Of a memory bound or a type that is none.
pub(crate) fn attach_with(mut options: Options, usage: Use) -> Done<Attach> {
    if let Some(kind) = options.get(TYPE_OPTION) {
        registry()
            .format_of(kind)
            .map_err(|e| Fail::usage(format!("type: {e}")))?;
    }
    let memory = options
        .number("memory")
        .map_err(|e| Fail::usage(e.to_string()))?;
    options.also_known(OPTIONS);
    let asked_read_only = options.take("ro").is_some();
    // What is fetched for a look is kept.
    let keeps = options.get("remote").is_some();
    options.take("rw");
    options.take("memory");
    Ok(Attach {
        read_only: asked_read_only || usage == Use::Look && !keeps,
        memory: memory.unwrap_or(Attach::MEMORY),
        uid: rustix::process::geteuid().as_raw(),
        gid: rustix::process::getegid().as_raw(),
        umask: umask(),
        options,
    })
}

/// Returns the user's mask: it can be read only by setting it, which is done once.
pub(crate) fn umask() -> u32 {
    static MASK: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *MASK.get_or_init(|| {
        let mask = rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
        rustix::process::umask(mask);
        mask.as_raw_mode()
    })
}

/// Options of every volume.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "ro",
        value: "",
        help: "refuse changes, and write nothing at all",
    },
    OptionSpec {
        name: "rw",
        value: "",
        help: "allow changes (the default)",
    },
    OptionSpec {
        name: "memory",
        value: "SIZE",
        help: "bound on the memory for caches (default 64M)",
    },
    OptionSpec {
        name: "commit",
        value: "SECONDS",
        help: "how old changes get on mounts and servers before they are made durable, as 5 or 0.5 \
               (default 5; of Cedar 0.5)",
    },
    OptionSpec {
        name: "sync",
        value: "",
        help: "the same as commit=0",
    },
];

/// When a volume that is shared makes changes durable.
///
/// # Errors
/// Of a time that is none.
pub(crate) fn commit_of(options: &Options) -> Done<Commit> {
    let within = options.seconds("commit");
    let within = within.map_err(|e| Fail::usage(format!("-o: {e}")))?;
    Ok(within.map_or(Commit::AsVolume, Commit::Within))
}

/// What a volume is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Nothing is written, not even that it was opened; but copies of a remote's files.
    Look,
    /// To change it.
    Change,
}

/// A place in a volume, as the user named it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// The volume.
    pub(crate) source: Source,
    /// The path in it: begins with `/`.
    pub(crate) path: Vec<u8>,
}

impl At {
    /// From an argument of a command that knows no places of the host; a name
    /// without a path is the volume's root.
    ///
    /// # Errors
    /// Of the command line.
    pub(crate) fn parse(arg: &OsStr) -> Done<Self> {
        let (source, path) = registry()
            .place_in_volume(arg.as_bytes())
            .map_err(|e| usage(arg, &e))?;
        check_slash(arg)?;
        Ok(Self { source, path })
    }

    /// Returns all of the arguments.
    ///
    /// # Errors
    /// Of the first that makes no sense.
    pub(crate) fn parse_all(args: &[OsString]) -> Done<Vec<Self>> {
        args.iter().map(|arg| Self::parse(arg)).collect()
    }

    /// Returns another path on the volume.
    pub(crate) fn with_path(&self, path: Vec<u8>) -> Self {
        Self {
            source: self.source.clone(),
            path,
        }
    }

    /// Returns the place named `name` in this one.
    pub(crate) fn join(&self, name: &[u8]) -> Self {
        let slash: &[u8] = if self.path.ends_with(b"/") { b"" } else { b"/" };
        self.with_path([&self.path, slash, name].concat())
    }

    /// Goes to the place named `name` in this one. Gives the length of the
    /// path before: cut to that, it is the same place again.
    pub(crate) fn enter(&mut self, name: &[u8]) -> usize {
        let before = self.path.len();
        if self.path.last() != Some(&b'/') {
            self.path.push(b'/');
        }
        self.path.extend_from_slice(name);
        before
    }

    /// Returns the last part of the path; empty for the root.
    pub(crate) fn name(&self) -> &[u8] {
        let mut parts = self.path.split(|&b| b == b'/');
        parts.rfind(|p| !p.is_empty()).unwrap_or_default()
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let source = self.source.to_string();
        // The colon of `mem:` is that of its paths, too: `mem:/docs`.
        let source = if source == "mem:" { "mem" } else { &source };
        write!(f, "{source}:{}", volary::escape(&self.path))
    }
}

/// Returns a place on the host or in a volume, from an argument.
///
/// # Errors
/// Of the command line.
pub(crate) fn place(arg: &OsStr) -> Done<Place> {
    let place = registry()
        .place(arg.as_bytes())
        .map_err(|e| usage(arg, &e))?;
    check_slash(arg)?;
    Ok(place)
}

/// Refuses `IMAGE:path` where there is such an image, and no file of that name.
///
/// # Errors
/// Of the command line, with how it is written.
fn check_slash(arg: &OsStr) -> Done {
    let Some((image, place)) = registry().without_slash(arg.as_bytes()) else {
        return Ok(());
    };
    if !image.is_file() || std::path::Path::new(arg).symlink_metadata().is_ok() {
        return Ok(());
    }
    Err(Fail::usage(format!(
        "{}: a place in an image has a slash: {}; a backslash before the colon makes it a file \
         of the host",
        volary::escape(arg.as_bytes()),
        volary::escape(&place)
    )))
}

/// Returns an argument that makes no sense, in one line.
pub(crate) fn usage(arg: &OsStr, error: &Error) -> Fail {
    Fail::usage(format!("{}: {error}", volary::escape(arg.as_bytes())))
}

/// The volumes that are open.
pub(crate) struct Volumes {
    args: AttachArgs,
    open: Vec<Open>,
    reports: Vec<Report>,
}

/// One of them.
struct Open {
    source: Source,
    usage: Use,
    session: Session,
    /// What it is on, if its extents name places there.
    device: Option<Arc<dyn BlockDevice>>,
}

impl Volumes {
    /// Runs `work` and detaches every volume that it opened, whatever it
    /// answered: what was done is kept.
    ///
    /// # Errors
    /// Of `work`, or, if that has none, of detaching.
    pub(crate) fn run<T>(args: &AttachArgs, work: impl FnOnce(&mut Self) -> Done<T>) -> Done<T> {
        args.install_plugins();
        let mut volumes = Self {
            args: args.clone(),
            open: Vec::new(),
            reports: Vec::new(),
        };
        let done = work(&mut volumes);
        let closed = volumes.close();
        let answer = done?;
        closed.map(|()| answer)
    }

    /// Returns a session on a volume, which is opened at its first use. What is to be
    /// changed must be asked for first.
    ///
    /// # Errors
    /// In one line why it cannot be opened.
    pub(crate) fn session(&mut self, source: &Source, usage: Use) -> Done<Session> {
        self.open(source, usage).map(|open| open.session.clone())
    }

    /// Returns the device of a volume that is open, on which the places are that its extents name. None under
    /// layers: these see each read, and may make something else of it.
    pub(crate) fn device(&self, source: &Source) -> Option<Arc<dyn BlockDevice>> {
        let has_layers = !self.args.options.layers.is_empty();
        let mut held = self.open.iter().filter(|_| !has_layers);
        let open = held.find(|held| is_same_source(&held.source, source))?;
        open.device.clone()
    }

    /// Returns device and inode of the images that are open.
    pub(crate) fn images(&self) -> Vec<HostId> {
        let of = |open: &Open| match &open.source {
            Source::Image { path, .. } => image_id(path),
            _ => None,
        };
        self.open.iter().filter_map(of).collect()
    }

    /// Returns a volume as the bulk engine reads it: from the device it is on where that can be, and, of what
    /// others may change meanwhile, with a look whether they have.
    ///
    /// # Errors
    /// In one line why it cannot be opened.
    pub(crate) fn bulk_source(&mut self, source: &Source) -> Done<volary::bulk::Source> {
        let is_host = matches!(source, Source::Host { .. });
        let mut raw = Raw::Auto;
        if is_host {
            self.open_with(source, Use::Look, |options| {
                match options.choice("raw", &Raw::WORDS) {
                    Ok(Some(wanted)) => raw = wanted,
                    Ok(None) => options.set("raw", "auto"),
                    // Opening refuses it.
                    Err(_) => {}
                }
            })?;
        }
        let open = self.open(source, Use::Look)?;
        let read = volary::bulk::Source::new(open.session.clone());
        // Where nothing moves, the file system is as fast, and takes less processor time.
        let is_wanted = |device: &dyn BlockDevice| {
            !is_host || raw == Raw::Always || volary::bulk::moves(device, &modelled::stopwatch())
        };
        let read = match &open.device {
            Some(device) if is_wanted(&**device) => read.on(device.clone()),
            _ => read,
        };
        Ok(match source {
            Source::Host { .. } | Source::Nfs(_) | Source::Scheme { .. } => read.live(),
            Source::Image { .. } | Source::Memory { .. } => read,
        })
    }

    fn open(&mut self, source: &Source, usage: Use) -> Done<&Open> {
        self.open_with(source, usage, |_| {})
    }

    /// Opens a volume as `open` does, with options besides those that were given.
    fn open_with(
        &mut self,
        source: &Source,
        usage: Use,
        add: impl FnOnce(&mut Options),
    ) -> Done<&Open> {
        let is_same = |held: &Open| is_same_source(&held.source, source);
        let at = match self.open.iter().position(is_same) {
            Some(at) => at,
            None => {
                let mut attach = self.args.attach(usage)?;
                add(&mut attach.options);
                let opened = open(source, &attach, usage, &self.args.options.layers)?;
                self.reports.extend(opened.reports);
                self.open.push(Open {
                    source: source.clone(),
                    usage,
                    session: opened.volume.session(Cred::root()),
                    device: opened.device,
                });
                self.open.len() - 1
            }
        };
        let busy = || Fail::opening(source, &Kind::Busy.into());
        let open = self.open.get(at).ok_or_else(busy)?;
        match usage == Use::Look || open.usage == Use::Change {
            true => Ok(open),
            false => Err(busy()),
        }
    }

    fn close(self) -> Done {
        let mut first = Ok(());
        for Open {
            source, session, ..
        } in self.open
        {
            let closed = session.volume().detach();
            // The process ends soon: what the volume has in memory goes with
            // it at once, and not piece by piece.
            std::mem::forget(session);
            first = first.and(closed.map_err(|e| Fail::at(source, &e)));
        }
        for report in self.reports {
            crate::log::say(&report());
        }
        first
    }
}

fn is_same_source(a: &Source, b: &Source) -> bool {
    let (
        Source::Image {
            path: x,
            partition: m,
        },
        Source::Image {
            path: y,
            partition: n,
        },
    ) = (a, b)
    else {
        return a == b;
    };
    let same_file = || matches!((x.canonicalize(), y.canonicalize()), (Ok(x), Ok(y)) if x == y);
    m == n && (x == y || same_file())
}

/// A volume that was opened, under layers.
struct Stacked {
    volume: Arc<Volume>,
    reports: Vec<Report>,
    device: Option<Arc<dyn BlockDevice>>,
}

/// Opens a volume, under layers.
///
/// # Errors
/// In one line why it cannot be opened.
fn open(source: &Source, attach: &Attach, usage: Use, layers: &[String]) -> Done<Stacked> {
    let fail = |e: Error| Fail::volume(source, &e);
    crate::registry::prepare(source, &attach.options)?;
    let opened = modelled::open_volume(source, attach).map_err(fail)?;
    if let Some(replica) = &opened.replica {
        tell_of_replica(source, replica, usage)?;
    }
    let fs = opened.fs;
    let options = VolumeOptions {
        // The user has the image: the volume's modes keep nothing from them.
        trust: true,
        // The same command makes the same bytes, however long it takes.
        commit: Commit::WhenAsked,
        ..VolumeOptions::new(source.to_string(), clock::now)
    };
    match stack(fs.clone(), layers, source) {
        Ok((over, mut reports)) => {
            let name = source.to_string();
            reports.push(Box::new(move || crate::alarm::found(&fs, &name)));
            Ok(Stacked {
                volume: Volume::new(over, options),
                reports,
                device: opened.device,
            })
        }
        Err(e) => {
            // It was not used; the layer's own error is the one to tell.
            let _ = Volume::new(fs, options).detach();
            Err(e)
        }
    }
}

/// Warns that a structure of a volume makes no sense, so that its replica is read.
///
/// # Errors
/// If the volume is to be changed, and `fsck` can write the structure anew first.
pub(crate) fn tell_of_replica(source: &Source, replica: &Replica, usage: Use) -> Done {
    let Replica { what, home, at, .. } = replica;
    let why = format!("{source}: the {what} at byte {home} makes no sense");
    let mends = |format: &dyn Format| format.abilities().has(Abilities::MEND);
    let is_mended = registry().format_of(replica.kind).is_ok_and(mends);
    let mends = match is_mended {
        true => format!("; volary fsck -y {source} writes it anew"),
        false => String::new(),
    };
    match (usage, is_mended) {
        (Use::Change, true) => {
            let line = format!("{why}, nothing is changed{mends} from its replica at byte {at}");
            Err(Fail::new(Exit::Damaged, line))
        }
        // A format that is only read refuses the change itself, with a line of its own.
        (Use::Change, false) => Ok(()),
        _ => {
            warn(&format!("{why}, read by its replica at byte {at}{mends}"));
            Ok(())
        }
    }
}

/// Does `work` for each place. All are parsed and their volumes opened before
/// anything is done; what fails has its line, and the rest is done all the same.
///
/// # Errors
/// Of the command line, and of opening; the exit code tells of the rest.
pub(crate) fn for_each(
    args: &[OsString],
    attach: &AttachArgs,
    usage: Use,
    mut work: impl FnMut(&Session, &At) -> Done,
) -> Done<Exit> {
    let places = At::parse_all(args)?;
    if usage == Use::Change {
        crate::interrupt::catch();
    }
    Volumes::run(attach, |volumes| {
        let mut all = Vec::with_capacity(places.len());
        for at in places {
            all.push((volumes.session(&at.source, usage)?, at));
        }
        let mut tally = Tally::default();
        for (session, at) in &all {
            crate::interrupt::check()?;
            tally.take(work(session, at))?;
        }
        Ok(tally.exit())
    })
}

/// Returns the node at a place; a symlink at its end is followed.
///
/// # Errors
/// In one line.
pub(crate) fn find(session: &Session, at: &At) -> Done<Entry> {
    session
        .walk(&at.path, Follow::Yes)
        .map_err(|e| Fail::at(at, &e))
}

/// Returns the node at a place; a symlink at its end is the node.
///
/// # Errors
/// In one line.
pub(crate) fn find_itself(session: &Session, at: &At) -> Done<Entry> {
    session
        .walk(&at.path, Follow::No)
        .map_err(|e| Fail::at(at, &e))
}

/// Returns the directory that a place is in, and its name there.
///
/// # Errors
/// In one line; the root is in no directory.
pub(crate) fn find_parent(session: &Session, at: &At) -> Done<(NodeId, Vec<u8>)> {
    if at.name().is_empty() {
        return Err(Fail::new(
            Exit::Failed,
            format!("{at}: this is the volume's root"),
        ));
    }
    session.walk_parent(&at.path).map_err(|e| Fail::at(at, &e))
}

/// Returns the directory that a new node goes into, and its name there. A slash at the end is only
/// for directories.
///
/// # Errors
/// In one line; the root is in no directory.
pub(crate) fn find_new(session: &Session, at: &At, is_dir: bool) -> Done<(NodeId, Vec<u8>)> {
    let found = find_parent(session, at)?;
    match at.path.ends_with(b"/") && !is_dir {
        true => Err(Fail::at(at, &Kind::NotDir.into())),
        false => Ok(found),
    }
}
