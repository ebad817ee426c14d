//! Volumes of a format as subjects, one row for each. May use `disks`, `explorer` and `script`.

mod enduring;
mod kill;

pub use enduring::Endured;
pub use kill::Progress;

use crate::disks::cow::Cow;
use crate::disks::disk::Disk;
use crate::disks::trace::{Moment, Traced};
use crate::explorer::explore::Depth;
use crate::explorer::subject::{Recovered, Subject};
use crate::script::history::{History, Promise};
use crate::script::op::{Op, Ops};
use crate::script::tree::{self, Node, Tree, apply, content, split};
use std::ops::Range;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, Create, Cred, Ctx, Format, Fs, Kind,
    Make, Mode, Name, NodeId, Options, Quiet, RenameFlags, Result, SetAttr, Time,
};

/// The content of free space before a volume is made, which must never be seen.
const STALE: u8 = 0xdb;

/// How a volume is recovered after a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// By `fsck -p`, which must leave nothing unrepaired; then the volume is attached.
    Preen,
    /// By attaching it; then `fsck -n` must find nothing.
    Attach,
}

/// Returns a layer between a driver and the device: a planted mistake.
pub type Between = fn(Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice>;

/// Returns the sectors of the log of a new volume.
pub type Aside = fn(&dyn BlockDevice) -> Result<Range<u64>>;

/// A kind of volume to be tortured, and its promises.
#[derive(Clone, Copy)]
pub struct Volume {
    /// The name in commands.
    pub name: &'static str,
    /// The format.
    pub format: &'static dyn Format,
    /// The kind for [`Format::make`].
    pub kind: &'static str,
    /// The size of the device in bytes; small, so that little is read in vain.
    pub size: u64,
    /// Options of `make`.
    pub make: &'static str,
    /// Options of `attach`.
    pub attach: &'static str,
    /// Files that `make` creates, with any content.
    pub own: &'static [&'static str],
    /// A script in words that is run before the others.
    pub preset: &'static str,
    /// Longest name that the volume keeps, in bytes: longer names in scripts are cut to their ends.
    pub names: usize,
    /// If not 0, random scripts let files grow in turns, in units of this many bytes; otherwise
    /// they use all kinds of operations.
    pub turns: u64,
    /// How the volume is recovered.
    pub recovery: Recovery,
    /// What is promised after that.
    pub promise: Promise,
    /// The code of the finding that a volume was not cleanly detached. A check that repairs
    /// anything must report it too.
    pub dirty: Option<&'static str>,
    /// Whether each operation, except a write, makes itself and all earlier ones durable.
    pub synchronous: bool,
    /// Whether the device claims to keep written data in memory.
    pub keeping: bool,
    /// Whether the volume survives garbage in sectors in flight, except in files that were
    /// overwritten in place.
    pub garbage: bool,
    /// A layer between the driver and the device.
    pub between: Option<Between>,
    /// Returns the sectors that are unused once a second recovery had nothing to do
    /// ([`Subject::aside`]).
    pub aside: Option<Aside>,
}

/// Returns whether an operation makes all earlier ones durable, on any volume.
fn is_durable(op: &Op) -> bool {
    matches!(op, Op::Sync | Op::Fsync(_) | Op::Detach)
}

/// Runs `work` as root, at a time that depends on `step`.
fn with_ctx<R>(step: usize, work: impl FnOnce(&Ctx<'_>) -> R) -> R {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    work(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000 + step as i64),
        cancel: &cancel,
    })
}

fn walk(fs: &Fs, cx: &Ctx<'_>, path: &str) -> Result<NodeId> {
    let names = path.split('/').filter(|name| !name.is_empty());
    names.into_iter().try_fold(fs.root(), |dir, name| {
        Ok(fs.lookup(cx, dir, Name::new(name.as_bytes())?)?.node)
    })
}

/// Opens a node for the duration of `work`.
fn opened<R>(
    fs: &Fs,
    cx: &Ctx<'_>,
    node: NodeId,
    mode: Mode,
    work: impl FnOnce(volary_core::OpenId) -> Result<R>,
) -> Result<R> {
    let open = fs.open(cx, node, mode)?;
    let result = work(open);
    let closed = fs.close(cx, open);
    let answer = result?;
    closed.map(|()| answer)
}

/// Performs an operation that is possible; `tag` is that of the file it writes to.
///
/// # Errors
/// Those of the file system.
pub fn perform(fs: &Fs, cx: &Ctx<'_>, op: &Op, tag: u32) -> Result<()> {
    let place = |path: &str| {
        let (dir, name) = split(path);
        walk(fs, cx, dir).map(|dir| (dir, name.to_owned()))
    };
    match op {
        Op::Create(path) => {
            let (dir, name) = place(path)?;
            let name = Name::new(name.as_bytes())?;
            let (_, open) = fs.create(cx, dir, name, Create::New, &SetAttr::default())?;
            fs.close(cx, open)
        }
        Op::Mkdir(path) => {
            let (dir, name) = place(path)?;
            let name = Name::new(name.as_bytes())?;
            fs.mkdir(cx, dir, name, &SetAttr::default()).map(|_| ())
        }
        Op::Unlink(path) => {
            let (dir, name) = place(path)?;
            fs.unlink(cx, dir, Name::new(name.as_bytes())?)
        }
        Op::Rmdir(path) => {
            let (dir, name) = place(path)?;
            fs.rmdir(cx, dir, Name::new(name.as_bytes())?)
        }
        Op::Rename(from, to) => {
            let ((dir, name), (to, new)) = (place(from)?, place(to)?);
            let (name, new) = (Name::new(name.as_bytes())?, Name::new(new.as_bytes())?);
            fs.rename(cx, dir, name, to, new, RenameFlags::REPLACE)
        }
        Op::Write(path, at, len) => opened(fs, cx, walk(fs, cx, path)?, Mode::Write, |open| {
            let bytes = content(tag, *len);
            fs.write(cx, open, Some(*at), &bytes).map(|_| ())
        }),
        Op::Truncate(path, len) => fs
            .setattr(cx, walk(fs, cx, path)?, &SetAttr::size(*len))
            .map(|_| ()),
        Op::Fsync(path) => opened(fs, cx, walk(fs, cx, path)?, Mode::Read, |open| {
            fs.fsync(cx, open, false)
        }),
        Op::Sync => fs.sync(cx),
        Op::Detach => fs.detach(cx),
    }
}

/// Returns a function that performs operations on a file system, each at its own time.
fn on(fs: &Fs) -> impl FnMut(usize, &Op, u32) -> Result<()> {
    |i, op, tag| with_ctx(i, |cx| perform(fs, cx, op, tag))
}

/// Returns the history of a tree under operations. `act` performs each one: it gets the tag of the
/// file, or `None` if the tree does not allow the operation, and returns whether it was done.
fn told(
    volume: &Volume,
    ops: &[Op],
    mut tree: Tree,
    tag: impl Fn(usize) -> u32,
    mut act: impl FnMut(usize, &Op, Option<u32>) -> std::result::Result<bool, String>,
) -> std::result::Result<History, String> {
    let mut history = History {
        before: tree.clone(),
        after: Vec::with_capacity(ops.len()),
        durable: Vec::with_capacity(ops.len()),
        detached: ops.iter().position(|op| *op == Op::Detach),
    };
    for (i, op) in ops.iter().enumerate() {
        let op = &op.with_names(volume.names);
        let mut then = tree.clone();
        let new = tag(i);
        let can = apply(&mut then, op, new);
        let about = can.then(|| tag_of(&then, op).unwrap_or(new));
        let done = act(i, op, about)? && can;
        if done {
            tree = then;
        }
        history.after.push(tree.clone());
        history.durable.push(done && volume.is_durable(op));
    }
    Ok(history)
}

/// The progress of a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// An operation, by its number, began.
    Began(usize),
    /// It ended; the flag says whether it was done.
    Ended(usize, bool),
}

impl Volume {
    /// Returns whether an operation makes all earlier ones durable on this volume.
    fn is_durable(&self, op: &Op) -> bool {
        is_durable(op) || self.synchronous && !matches!(op, Op::Write(..))
    }

    fn attach_on(&self, dev: Arc<dyn BlockDevice>, read_only: bool) -> Result<Fs> {
        let how = Attach {
            read_only,
            options: Options::parse(self.attach),
            ..Attach::default()
        };
        self.format.attach(dev, &how)
    }

    /// Checks a volume. Returns the findings, and how many are left.
    fn check(&self, dev: Arc<dyn BlockDevice>, mode: CheckMode) -> Result<(Vec<Said>, u64)> {
        let how = Check {
            mode,
            now: Time::from_secs(1_700_000_000),
            options: Options::new(),
        };
        let mut said = Vec::new();
        let mut tell = |f: &volary_core::Finding| {
            said.push((f.code, f.message.clone()));
            Answer::Yes
        };
        let report = self.format.check(dev, &how, &mut tell, &Quiet)?;
        Ok((said, report.left()))
    }

    fn checked(&self, dev: Arc<dyn BlockDevice>, mode: CheckMode) -> Findings {
        let (said, left) = self.check(dev, mode).map_err(|e| format!("fsck: {e}"))?;
        if left > 0 {
            return Err(format!("fsck leaves {left}: {said:?}"));
        }
        Ok(said.into_iter().map(|(code, _)| code).collect())
    }

    /// Performs operations by `act`, with tags from `tag`. `tell` is called when each begins and
    /// has ended.
    fn perform_all(
        &self,
        mut act: impl FnMut(usize, &Op, u32) -> Result<()>,
        ops: &[Op],
        tree: Tree,
        tag: impl Fn(usize) -> u32,
        tell: &mut dyn FnMut(Step),
    ) -> std::result::Result<History, String> {
        told(self, ops, tree, tag, |i, op, tag| {
            tell(Step::Began(i));
            let done = match tag {
                None => false,
                Some(tag) => match act(i, op, tag) {
                    Ok(()) => true,
                    // The operation has had no effect.
                    Err(e) if e == Kind::NoSpace => false,
                    Err(e) => return Err(format!("{op}: {e}")),
                },
            };
            tell(Step::Ended(i, done));
            Ok(done)
        })
    }

    /// Returns the tree that the preset makes.
    ///
    /// # Errors
    /// A description, if the preset is impossible.
    pub fn preset_tree(&self) -> std::result::Result<Tree, String> {
        let ops: Ops = self.preset.parse()?;
        let mut tree = Tree::new();
        for (i, op) in ops.0.iter().enumerate() {
            if !apply(&mut tree, &op.with_names(self.names), of_preset(i)) {
                return Err(format!("{op}: cannot be done"));
            }
        }
        Ok(tree)
    }
}

impl Depth {
    /// Returns this depth, extended by what the volume survives in addition.
    #[must_use]
    pub fn on(mut self, volume: &Volume) -> Self {
        self.bounds.garbage |= volume.garbage;
        self.nested_bounds.garbage |= volume.garbage;
        self
    }
}

type Said = (&'static str, String);
type Findings = std::result::Result<Vec<&'static str>, String>;

/// Returns four non-zero bytes for a file that operation `i` makes.
fn tag_bytes(script: bool, i: usize) -> u32 {
    let number = i as u32 + 1;
    let (low, high) = (number & 0x7f | 0x80, number >> 7 & 0x7f | 0x80);
    low << 8 | high << 16 | 0x55 | if script { 0x0100_0000 } else { 0x0200_0000 }
}

/// Returns the tag of a node that operation `i` of a script makes.
fn of_script(i: usize) -> u32 {
    tag_bytes(true, i)
}

/// Returns the tag of a node that operation `i` of the preset makes.
fn of_preset(i: usize) -> u32 {
    tag_bytes(false, i)
}

/// Returns the tag of the file that an operation writes to.
fn tag_of(tree: &Tree, op: &Op) -> Option<u32> {
    match op {
        Op::Write(path, ..) => match tree.get(path) {
            Some(Node::File(tag, _)) => Some(*tag),
            _ => None,
        },
        _ => None,
    }
}

impl Subject for Volume {
    type Script = Ops;
    type History = History;
    type Found = Tree;

    fn name(&self) -> &str {
        self.name
    }

    fn make(&self) -> std::result::Result<Disk, String> {
        let size = usize::try_from(self.size).map_err(|e| e.to_string())?;
        let dev = Arc::new(Cow::new(Disk::new(vec![STALE; size])));
        let how = Make {
            options: Options::parse(self.make),
            ..Make::default()
        };
        let words = |e: volary_core::Error| e.to_string();
        self.format
            .make(dev.clone(), self.kind, &how)
            .map_err(words)?;
        let fs = self.attach_on(dev.clone(), false).map_err(words)?;
        let ops: Ops = self.preset.parse()?;
        self.perform_all(on(&fs), &ops.0, Tree::new(), of_preset, &mut |_| ())?;
        with_ctx(0, |cx| fs.detach(cx)).map_err(words)?;
        Ok(dev.disk().rebased())
    }

    fn play(&self, script: &Ops, dev: &Arc<Traced>) -> std::result::Result<History, String> {
        let mut tell = |step| match step {
            Step::Began(i) => dev.begin(i),
            Step::Ended(i, _) => dev.end(i),
        };
        let below: Arc<dyn BlockDevice> = dev.clone();
        let below = match self.between {
            Some(between) => between(below),
            None => below,
        };
        let fs = self.attach_on(below, false).map_err(|e| e.to_string())?;
        self.perform_all(
            on(&fs),
            &script.0,
            self.preset_tree()?,
            of_script,
            &mut tell,
        )
    }

    fn keeping(&self) -> bool {
        self.keeping
    }

    fn recover(&self, dev: Arc<dyn BlockDevice>) -> Findings {
        match self.recovery {
            Recovery::Preen => self.checked(dev, CheckMode::Preen),
            Recovery::Attach => {
                let fs = self.attach_on(dev, false);
                let fs = fs.map_err(|e| format!("attach: {e}"))?;
                let detached = with_ctx(0, |cx| fs.detach(cx));
                detached.map_err(|e| format!("detach: {e}"))?;
                Ok(Vec::new())
            }
        }
    }

    fn aside(&self, disk: &Disk) -> Range<u64> {
        let found = self.aside.map(|aside| aside(&Cow::new(disk.clone())));
        found.and_then(Result::ok).unwrap_or(0..0)
    }

    fn look(&self, dev: Arc<dyn BlockDevice>) -> std::result::Result<Tree, String> {
        if self.recovery == Recovery::Attach {
            let found = self.checked(dev.clone(), CheckMode::Look)?;
            if !found.is_empty() {
                return Err(format!("fsck -n finds {found:?}"));
            }
        }
        let fs = self.attach_on(dev, true);
        let fs = fs.map_err(|e| format!("attach: {e}"))?;
        let mut tree = with_ctx(0, |cx| tree::read(&fs, cx))?;
        // They were there when the volume was made, and must still be.
        for path in self.own {
            if tree.remove(*path).is_none() {
                return Err(format!("{path} is gone"));
            }
        }
        Ok(tree)
    }

    fn judge(
        &self,
        found: &Recovered<Tree>,
        history: &History,
        at: Moment,
    ) -> std::result::Result<(), String> {
        let mended = &found.mended;
        if history.is_detached(at) && !mended.is_empty() {
            return Err(format!("cleanly left, but fsck finds {mended:?}"));
        }
        if let Some(dirty) = self.dirty
            && !mended.is_empty()
            && !mended.contains(&dirty)
        {
            return Err(format!("not marked as {dirty}, but fsck finds {mended:?}"));
        }
        history.judge(&found.found, self.promise, at)
    }
}
