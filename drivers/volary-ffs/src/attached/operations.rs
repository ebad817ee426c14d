//! An attached volume: everything that an operation works on.

mod opens;

use crate::attached::commit::{self, Commit};
use crate::attached::head::Head;
use crate::change::edit::{Edit, Step, Stop};
use crate::change::epoch::Epoch;
use crate::change::files::Files;
use crate::change::room::Room;
use crate::directory::index::Indexes;
use crate::directory::lookup::Lookup;
use crate::disk::cache::cache;
use crate::disk::hash::check_superblock;
use crate::disk::ondisk::UFS_ROOTINO;
use crate::disk::superblock::Found;
use crate::disk::volume::Volume;
use crate::groups::alloc::Alloc;
use crate::groups::policy::Policy;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::{Nodes, Open, Opens};
use crate::parameters::tune::Changes;
use crate::quota::{Charges, Quotas};
use crate::tree::names::Tree;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use volary_block::{Cache, Stage};
use volary_core::{
    Attach, BlockDevice, Ctx, Error, FileKind, Finding, Kind, NodeId, OpenId, OptionSpec, Result,
    Time,
};
use volary_ondisk::retry::with_commits;

/// Options for attaching.
pub(crate) const OPTIONS: &[OptionSpec] = &[
    SUPERBLOCK,
    OptionSpec {
        name: "sync",
        value: "",
        help: "each change of names and attributes is on the disk when it is done, as on 4.3BSD \
               (default: together with others, in the same order)",
    },
    OptionSpec {
        name: "noquota",
        value: "",
        help: "neither bounds nor counts what users and groups take; fsck counts anew (default: \
               as quota.user, quota.group and quotas in the root directory say)",
    },
];

/// Options for a check.
pub(crate) const CHECK_OPTIONS: &[OptionSpec] = &[SUPERBLOCK];

pub(crate) const SUPERBLOCK: OptionSpec = OptionSpec {
    name: "superblock",
    value: "SECTOR",
    help: "goes by the replica of the superblock at this sector of 512 bytes (default: by the \
           first superblock, or by the first replica that is found)",
};

/// The reason of a volume whose user, or device, wants no changes.
const FOR_READING: &str = "the volume is attached for reading";

pub(crate) struct Attached {
    pub(crate) volume: Volume,
    pub(crate) root: NodeId,
    /// Why the volume takes no changes, if so.
    read_only: Option<&'static str>,
    cache: Cache,
    state: RwLock<State>,
    pub(crate) indexes: Mutex<Indexes>,
    /// Bytes of ordered writes that make a commit due.
    held_max: u64,
    /// Each change is committed at once.
    is_synchronous: bool,
    /// There are quota warnings that nobody has fetched.
    has_warnings: Arc<AtomicBool>,
}

/// What changes during an attachment.
pub(crate) struct State {
    pub(crate) nodes: Nodes,
    /// The allocator, on a volume that takes changes.
    pub(crate) alloc: Option<Alloc>,
    pub(crate) quotas: Quotas,
    epoch: Epoch,
    head: Head,
    opens: Opens,
    phase: Phase,
    /// The disk says that the volume is in use.
    is_marked: bool,
}

/// The state of an attachment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Attached,
    /// A write failed, so the volume takes no more changes.
    Failed,
    Detached,
}

impl State {
    /// Checks that the volume is still attached.
    ///
    /// # Errors
    /// `Stale` once it is detached.
    fn alive(&self) -> Result<()> {
        match self.phase {
            Phase::Detached => Err(Kind::Stale.into()),
            _ => Ok(()),
        }
    }

    /// Returns the open with this id.
    ///
    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Open> {
        self.opens.get(open).copied()
    }
}

impl Attached {
    /// Attaches a volume.
    ///
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for an invalid superblock or root directory; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        Self::attach(dev, how, false)
    }

    /// Attaches a volume for repair by a check, whether it was cleanly left or not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn to_mend(dev: Arc<dyn BlockDevice>) -> Result<Self> {
        Self::attach(dev, &Attach::default(), true)
    }

    fn attach(dev: Arc<dyn BlockDevice>, how: &Attach, mends: bool) -> Result<Self> {
        how.options.check_known(OPTIONS)?;
        let sector = how.options.number("superblock")?;
        let is_synchronous = how.options.flag("sync", false)?;
        let has_quotas = !how.options.flag("noquota", false)?;
        let found = Found::choose(&*dev, sector)?;
        let geometry = dev.geometry();
        let volume = Volume::new(found, geometry.size)?;
        check_superblock(&volume.found)?;
        let asked = how.read_only || geometry.read_only;
        let why = asked.then_some(FOR_READING);
        let why = why.or_else(|| {
            let is_clean = mends || volume.found.raw.fs_clean & 1 != 0;
            why_not(&volume, geometry.sector, is_clean, sector, how.memory)
        });
        let cache = cache(dev, how.memory);
        let reader = Reader {
            cache: &cache,
            volume: &volume,
        };
        let alloc = match why {
            None => Some(Alloc::new(&reader, how.memory)?),
            Some(_) => None,
        };
        let root = root(&reader)?.id()?;
        let quotas = match has_quotas {
            true => Quotas::find(&reader)?,
            false => Quotas::default(),
        };
        Ok(Self {
            root,
            read_only: why,
            held_max: how.memory / 4,
            is_synchronous,
            has_warnings: quotas.warnings.untold.any(),
            indexes: Mutex::new(Indexes::new(how.memory / 16)),
            state: RwLock::new(State {
                nodes: Nodes::default(),
                alloc,
                quotas,
                epoch: Epoch::default(),
                head: Head::new(&volume),
                opens: Opens::default(),
                phase: Phase::Attached,
                is_marked: false,
            }),
            volume,
            cache,
        })
    }

    /// Takes the warnings about users and groups that have passed a soft limit.
    pub(crate) fn warnings(&self) -> Vec<Finding> {
        match self.has_warnings.load(Ordering::Acquire) {
            true => self.state.write().quotas.warnings.untold.take(),
            false => Vec::new(),
        }
    }

    /// Returns whether the volume was attached to take changes.
    pub(crate) fn takes_changes(&self) -> bool {
        self.read_only.is_none()
    }

    /// Returns why the volume takes no changes, unless nobody wanted any.
    pub(crate) fn why_read_only(&self) -> Option<&str> {
        self.read_only.filter(|why| *why != FOR_READING)
    }

    /// Checks that the volume takes changes.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`, with the reason.
    fn writable(&self, state: &State) -> Result<()> {
        state.alive()?;
        if let Some(why) = self.read_only {
            return Err(Error::note(Kind::ReadOnly, why));
        }
        if state.phase == Phase::Failed {
            let words =
                "the volume takes no changes since a write to it failed; detach and check it";
            return Err(Error::note(Kind::ReadOnly, words));
        }
        Ok(())
    }

    /// Returns an open, for a change of its node.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`.
    pub(crate) fn to_change(&self, open: OpenId) -> Result<Open> {
        let state = self.state.read();
        self.writable(&state)?;
        state.opened(open)
    }

    pub(crate) fn as_reader(&self) -> Reader<'_> {
        Reader {
            cache: &self.cache,
            volume: &self.volume,
        }
    }

    /// Calls `look` on the volume, while it is attached.
    ///
    /// # Errors
    /// `Stale`; those of `look`.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State, Reader<'_>) -> Result<R>) -> Result<R> {
        let state = self.state.read();
        state.alive()?;
        look(&state, self.as_reader())
    }

    /// Changes the volume atomically: all that `act` does takes effect, or nothing. If `act` asks
    /// for a commit, or a commit may free enough room, `act` runs again after one.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; those of `act`.
    pub(crate) fn change<R>(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        self.with_changes(|state| {
            let answer = self.change_state(state, cx, act)?;
            if self.is_synchronous {
                self.commit_state(state, cx.now)?;
            }
            Ok(answer)
        })
    }

    /// Changes the content of a file as `change` does. Content is delayed even on a volume that
    /// commits all other changes at once.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_content<R>(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        self.with_changes(|state| self.change_state(state, cx, act))
    }

    /// Runs `work`, which changes the volume, with exclusive access.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; those of `work`.
    pub(crate) fn with_changes<R>(&self, work: impl FnOnce(&mut State) -> Result<R>) -> Result<R> {
        let mut guard = self.state.write();
        self.writable(&guard)?;
        self.mark(&mut guard)?;
        work(&mut guard)
    }

    /// Changes the volume as [`change`](Self::change) does, within `work` of
    /// [`with_changes`](Self::with_changes).
    ///
    /// # Errors
    /// Those of `act`.
    pub(crate) fn change_state<R>(
        &self,
        state: &mut State,
        cx: &Ctx<'_>,
        mut act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        with_commits(
            state,
            |state| self.attempt(state, cx, &mut act),
            |state| self.commit_state(state, cx.now),
        )
    }

    /// Runs a change, or takes all of it back if it fails.
    fn attempt<R>(
        &self,
        state: &mut State,
        cx: &Ctx<'_>,
        act: &mut impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Step<R> {
        if self.is_due(state) {
            self.commit_state(state, cx.now)?;
        }
        let mut tree = self
            .tree(state, cx.now, cx.cred.is_root())
            .ok_or(Kind::ReadOnly)?;
        let acted = act(&mut tree).and_then(|answer| tree.charge().map(|()| answer));
        match acted {
            Ok(answer) => {
                let done = tree.done();
                state.epoch.is_dirty = true;
                self.or_fail(state, done)?;
                Ok(answer)
            }
            Err(stop) => {
                let back = tree.take_back();
                self.or_fail(state, back)?;
                let gives_room = || state.alloc.as_ref().is_some_and(Alloc::has_pending);
                Err(stop.or_commit(gives_room))
            }
        }
    }

    /// Returns the tree for a change at time `now`. `is_root` says whether root makes it.
    fn tree<'a>(&'a self, state: &'a mut State, now: Time, is_root: bool) -> Option<Tree<'a>> {
        let reader = self.as_reader();
        let (alloc, opens) = (state.alloc.as_mut()?, &state.opens);
        let files = Files {
            edit: Edit::new(reader, &mut state.nodes, now),
            room: Room::new(reader, alloc, opens, is_root),
            epoch: &mut state.epoch,
        };
        let indexes = &self.indexes;
        Some(Tree {
            files,
            lookup: Lookup { reader, indexes },
            charges: Charges::new(&mut state.quotas),
            opens,
        })
    }

    fn is_due(&self, state: &State) -> bool {
        let due = |alloc| commit::is_due(&self.as_reader(), &state.nodes, alloc, self.held_max);
        state.alloc.as_ref().is_some_and(due)
    }

    /// Passes `result` on. After an error, memory and disk differ, so the volume takes no more
    /// changes.
    fn or_fail<R>(&self, state: &mut State, result: Result<R>) -> Result<R> {
        result.inspect_err(|_| state.phase = Phase::Failed)
    }

    /// Marks the volume on the disk as not cleanly left, before the first change.
    fn mark(&self, state: &mut State) -> Result<()> {
        if state.is_marked {
            return Ok(());
        }
        state.head.set_clean(&self.volume, false);
        self.put_head(state)?;
        state.is_marked = true;
        Ok(())
    }

    fn put_head(&self, state: &mut State) -> Result<()> {
        let head = &mut state.head;
        let at = head.at;
        self.cache
            .write(at, head.sealed(&self.volume), Stage::DATA)?;
        self.cache.write_stage(Stage::DATA)?;
        self.cache.flush_written()
    }

    /// Commits the epoch to the disk.
    ///
    /// # Errors
    /// `Corrupt`; `Io`. After either, the volume takes no more changes.
    pub(crate) fn commit_state(&self, state: &mut State, now: Time) -> Result<()> {
        let moved = self.realloc(state, now);
        self.or_fail(state, moved)?;
        let Some(alloc) = &mut state.alloc else {
            return Ok(());
        };
        let commit = Commit {
            reader: self.as_reader(),
            nodes: &mut state.nodes,
            alloc,
            epoch: &mut state.epoch,
            quotas: &mut state.quotas,
            opens: &state.opens,
            head: &mut state.head,
        };
        let result = commit.run(now);
        self.or_fail(state, result)
    }

    /// Moves blocks that have never been written into clusters.
    fn realloc(&self, state: &mut State, now: Time) -> Result<()> {
        for (ino, lbn) in std::mem::take(&mut state.epoch.scattered) {
            let Some(mut tree) = self.tree(state, now, true) else {
                return Ok(());
            };
            match tree.files.file(ino).clusters().realloc(lbn) {
                Ok(()) => tree.done()?,
                Err(Stop::Commit) => tree.take_back()?,
                Err(Stop::Error(e)) => return tree.take_back().and(Err(e)),
            }
        }
        Ok(())
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly` after a failure; `Io`.
    pub(crate) fn sync(&self, now: Time) -> Result<()> {
        let mut state = self.state.write();
        state.alive()?;
        if self.read_only.is_some() {
            return Ok(());
        }
        self.writable(&state)?;
        self.commit_state(&mut state, now)
    }

    /// Sets other parameters. When it returns, they are in the superblock and its replicas.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; `Corrupt`; `Io`.
    pub(crate) fn tune(&self, changes: &Changes, now: Time) -> Result<()> {
        self.with_changes(|state| {
            changes.put_replicas(&self.cache, &self.volume)?;
            let raw = state.head.change(&self.volume, changes);
            if let Some(alloc) = &mut state.alloc {
                alloc.go_by(Policy::new(&self.volume, &raw));
            }
            state.epoch.is_dirty = true;
            self.commit_state(state, now)
        })
    }

    /// Ends the attachment. Nodes that are open but have no name are freed.
    ///
    /// # Errors
    /// `ReadOnly` after a failure; `Corrupt`; `Io`.
    pub(crate) fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        let mut guard = self.state.write();
        let state = &mut *guard;
        if state.phase == Phase::Detached {
            return Ok(());
        }
        let result = match state.is_marked {
            true => self.leave(state, cx),
            false => Ok(()),
        };
        state.phase = Phase::Detached;
        state.opens.clear();
        result
    }

    fn leave(&self, state: &mut State, cx: &Ctx<'_>) -> Result<()> {
        self.writable(state)?;
        for ino in state.nodes.orphans() {
            if let Some(mut tree) = self.tree(state, cx.now, cx.cred.is_root()) {
                match tree.release(ino).and_then(|()| tree.charge()) {
                    Ok(()) => tree.done()?,
                    Err(Stop::Error(e)) => return Err(e),
                    Err(Stop::Commit) => {}
                }
                state.epoch.is_dirty = true;
            }
        }
        self.commit_state(state, cx.now)?;
        state.head.set_clean(&self.volume, true);
        self.put_head(state)
    }
}

/// Returns why a volume cannot take changes, or `None` if it can.
fn why_not(
    volume: &Volume,
    sector_len: u32,
    is_clean: bool,
    replica: Option<u64>,
    memory: u64,
) -> Option<&'static str> {
    let raw = &volume.found.raw;
    let has_snapshots = volume.found.is_ufs2 && raw.fs_snapinum.iter().any(|&ino| ino != 0);
    [
        (
            replica.is_some(),
            "it goes by a replica of the superblock: fsck -y first",
        ),
        (!is_clean, "the volume was not cleanly left: fsck -p first"),
        (
            has_snapshots,
            "the volume has snapshots, which changes would spoil",
        ),
        (
            sector_len > 512,
            "the device's sectors are longer than 512 bytes",
        ),
        (
            Alloc::cost(volume) > memory / 2,
            "the volume has more cylinder groups than there is memory for",
        ),
    ]
    .into_iter()
    .find_map(|(is_so, why)| is_so.then_some(why))
}

/// Returns the root directory.
///
/// # Errors
/// `Corrupt` if it is not a directory; `Io`.
pub(crate) fn root(reader: &Reader<'_>) -> Result<Inode> {
    let inode = reader.inode_as_it_is(UFS_ROOTINO.into())?;
    if inode.kind() != Some(FileKind::Dir) {
        let found = format!("{:#o} (inode 2, the root)", inode.mode);
        return Err(Error::corrupt("di_mode", inode.at, found, "a directory's"));
    }
    inode.check(reader.volume)
}
