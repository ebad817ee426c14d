//! An attached volume: everything that an operation works on.

mod opens;

use crate::attached::commit;
use crate::change::alloc::Alloc;
use crate::change::edit::{Edit, Step, Stop};
use crate::change::epoch::Epoch;
use crate::change::files::Files;
use crate::change::node::{Nodes, Open, Opens};
use crate::change::room::Room;
use crate::disk::blocks::Reader;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{Order, ROOT_INO, SUPER_AT};
use crate::disk::volume::Volume;
use crate::options;
use crate::tree::names::Tree;
use parking_lot::RwLock;
use std::sync::Arc;
use volary_block::{Cache, CacheOptions, Stage};
use volary_core::{Attach, BlockDevice, Ctx, Error, FileKind, Kind, NodeId, OpenId, Result, Time};
use volary_ondisk::retry::with_commits;

/// Memory for looking at a volume, in bytes.
pub(crate) const LOOK_MEMORY: u64 = 16 << 20;

/// The reason of a volume whose user, or device, wants no changes.
const FOR_READING: &str = "the volume is attached for reading";

pub(crate) struct Attached {
    pub(crate) volume: Volume,
    pub(crate) root: NodeId,
    /// Why it takes no changes.
    read_only: Option<String>,
    pub(crate) cache: Cache,
    state: RwLock<State>,
    /// Bytes of ordered writes that make a commit.
    held_max: u64,
    /// Each change is brought to the disk at once.
    is_synchronous: bool,
}

/// What changes.
pub(crate) struct State {
    pub(crate) nodes: Nodes,
    /// What is free; none where the list makes no sense.
    pub(crate) alloc: Option<Alloc>,
    epoch: Epoch,
    /// The superblock.
    head: Vec<u8>,
    opens: Opens,
    phase: Phase,
    /// The disk says that the volume is in use.
    is_marked: bool,
}

/// How far an attachment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Attached,
    /// A write failed: it takes no more changes.
    Failed,
    Detached,
}

impl State {
    /// # Errors
    /// `Stale` once it is detached.
    fn alive(&self) -> Result<()> {
        match self.phase {
            Phase::Detached => Err(Kind::Stale.into()),
            _ => Ok(()),
        }
    }

    /// # Errors
    /// `Stale`.
    pub(crate) fn opened(&self, open: OpenId) -> Result<Open> {
        self.opens.get(open).copied()
    }
}

impl Attached {
    /// # Errors
    /// `Invalid` for an option; `Corrupt` for a superblock or root that makes no sense; `Io`.
    pub(crate) fn new(dev: Arc<dyn BlockDevice>, how: &Attach) -> Result<Self> {
        Self::attach(dev, how, false)
    }

    /// Attaches a volume that a check mends, whether it was cleanly left or not.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(crate) fn to_mend(dev: Arc<dyn BlockDevice>, order: Option<Order>) -> Result<Self> {
        let mut how = Attach::default();
        if let Some(order) = order {
            how.options.set("order", order.word());
        }
        Self::attach(dev, &how, true)
    }

    fn attach(dev: Arc<dyn BlockDevice>, how: &Attach, mends: bool) -> Result<Self> {
        how.options.check_known(options::ATTACH)?;
        let order = options::order(&how.options)?;
        let is_synchronous = how.options.flag("sync", false)?;
        let geometry = dev.geometry();
        let volume = Volume::new(&*dev, order)?;
        let asked = how.read_only || geometry.read_only;
        let cache = cache(dev, how.memory);
        let reader = Reader {
            cache: &cache,
            volume: &volume,
        };
        let root = root(&reader)?.id()?;
        let alloc = Alloc::new(&reader);
        let read_only = match asked {
            true => Some(FOR_READING.into()),
            false => why_not(geometry.sector, mends || volume.is_clean(), &alloc),
        };
        let alloc = match alloc {
            Err(e) if e != Kind::Corrupt => return Err(e),
            alloc => alloc.ok(),
        };
        Ok(Self {
            root,
            read_only,
            held_max: how.memory / 4,
            is_synchronous,
            state: RwLock::new(State {
                nodes: Nodes::default(),
                alloc,
                epoch: Epoch::default(),
                head: volume.head.clone(),
                opens: Opens::default(),
                phase: Phase::Attached,
                is_marked: false,
            }),
            volume,
            cache,
        })
    }

    /// Refuses a volume that takes no changes.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`, with why.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.writable(&self.state.read())
    }

    /// Returns whether it was attached to take changes.
    pub(crate) fn takes_changes(&self) -> bool {
        self.read_only.is_none()
    }

    /// Returns why it takes no changes, unless nobody wanted any.
    pub(crate) fn why_read_only(&self) -> Option<&str> {
        let why = self.read_only.as_deref();
        why.filter(|why| *why != FOR_READING)
    }

    /// # Errors
    /// `Stale`; `ReadOnly`, with why.
    fn writable(&self, state: &State) -> Result<()> {
        state.alive()?;
        if let Some(why) = &self.read_only {
            return Err(Error::note(Kind::ReadOnly, why.as_str()));
        }
        if state.phase == Phase::Failed {
            let words =
                "the volume takes no changes since a write to it failed; detach and check it";
            return Err(Error::note(Kind::ReadOnly, words));
        }
        Ok(())
    }

    /// Returns an open, to change what it is of.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; `Invalid` for one that only reads.
    pub(crate) fn to_change(&self, open: OpenId) -> Result<Open> {
        let state = self.state.read();
        self.writable(&state)?;
        let open = state.opened(open)?;
        match open.mode {
            volary_core::Mode::Read => Err(Kind::Invalid.into()),
            _ => Ok(open),
        }
    }

    pub(crate) fn as_reader(&self) -> Reader<'_> {
        Reader {
            cache: &self.cache,
            volume: &self.volume,
        }
    }

    /// Looks at the volume, while it is attached.
    ///
    /// # Errors
    /// `Stale`; of `look`.
    pub(crate) fn look<R>(&self, look: impl FnOnce(&State, Reader<'_>) -> Result<R>) -> Result<R> {
        let state = self.state.read();
        state.alive()?;
        look(&state, self.as_reader())
    }

    /// Changes the volume: all that `act` does takes effect, or nothing. It is begun anew
    /// after a commit that it asks for, or that may give it room.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; of `act`.
    pub(crate) fn change<R>(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        self.with_changes(cx, |state| {
            let answer = self.change_state(state, cx, act)?;
            self.commit_if_synchronous(state)?;
            Ok(answer)
        })
    }

    /// Changes the content of a file as `change` does. It is delayed even where all other
    /// changes are not.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_content<R>(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        self.with_changes(cx, |state| self.change_state(state, cx, act))
    }

    /// Does `work`, which changes the volume, while nobody else does anything.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; of `work`.
    fn with_changes<R>(
        &self,
        cx: &Ctx<'_>,
        work: impl FnOnce(&mut State) -> Result<R>,
    ) -> Result<R> {
        let mut guard = self.state.write();
        self.writable(&guard)?;
        self.mark(&mut guard, cx.now)?;
        work(&mut guard)
    }

    fn change_state<R>(
        &self,
        state: &mut State,
        cx: &Ctx<'_>,
        mut act: impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Result<R> {
        with_commits(
            state,
            |state| self.attempt(state, cx, &mut act),
            |state| self.commit_state(state),
        )
    }

    /// Does a change, or takes all of it back.
    fn attempt<R>(
        &self,
        state: &mut State,
        cx: &Ctx<'_>,
        act: &mut impl FnMut(&mut Tree<'_>) -> Step<R>,
    ) -> Step<R> {
        if self.is_due(state) {
            self.commit_state(state)?;
        }
        let mut tree = self.tree(state, cx.now).ok_or(Kind::ReadOnly)?;
        match act(&mut tree) {
            Ok(answer) => {
                let done = tree.files.done();
                state.epoch.is_dirty = true;
                or_fail(state, done)?;
                Ok(answer)
            }
            Err(stop) => {
                let back = tree.files.take_back();
                or_fail(state, back)?;
                let gives_room = || state.alloc.as_ref().is_some_and(Alloc::has_pending);
                Err(stop.or_commit(gives_room))
            }
        }
    }

    /// Returns the tree, for a change at a time.
    fn tree<'a>(&'a self, state: &'a mut State, now: Time) -> Option<Tree<'a>> {
        let reader = self.as_reader();
        let alloc = state.alloc.as_mut()?;
        let files = Files {
            edit: Edit::new(reader, &mut state.nodes, now),
            room: Room::new(reader, alloc),
            epoch: &mut state.epoch,
        };
        let opens = &state.opens;
        Some(Tree { files, opens })
    }

    fn is_due(&self, state: &State) -> bool {
        let due = |alloc| commit::is_due(&self.as_reader(), &state.nodes, alloc, self.held_max);
        state.alloc.as_ref().is_some_and(due)
    }

    /// Before the first change: the disk must say that the volume was not cleanly left.
    fn mark(&self, state: &mut State, now: Time) -> Result<()> {
        if state.is_marked {
            return Ok(());
        }
        self.put_head(state, false, now)?;
        state.is_marked = true;
        Ok(())
    }

    fn put_head(&self, state: &mut State, is_clean: bool, now: Time) -> Result<()> {
        commit::mark(&self.volume, &mut state.head, is_clean, now);
        self.cache.write(SUPER_AT, &state.head, Stage::DATA)?;
        self.cache.write_stage(Stage::DATA)?;
        self.cache.flush_written()
    }

    fn commit_if_synchronous(&self, state: &mut State) -> Result<()> {
        match self.is_synchronous {
            true => self.commit_state(state),
            false => Ok(()),
        }
    }

    /// Brings the epoch to the disk.
    ///
    /// # Errors
    /// `Corrupt`; `Io`: the volume takes no more changes then.
    fn commit_state(&self, state: &mut State) -> Result<()> {
        let Some(alloc) = &mut state.alloc else {
            return Ok(());
        };
        let nodes = &mut state.nodes;
        let (epoch, opens) = (&mut state.epoch, &state.opens);
        let head = &mut state.head;
        let result = commit::commit(&self.as_reader(), nodes, alloc, epoch, opens, head);
        or_fail(state, result)
    }

    /// Makes all changes durable.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly` after a failure; `Io`.
    pub(crate) fn sync(&self) -> Result<()> {
        let mut state = self.state.write();
        state.alive()?;
        if self.read_only.is_some() {
            return Ok(());
        }
        self.writable(&state)?;
        self.commit_state(&mut state)
    }

    /// Ends the attachment. What is open without a name goes.
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
            if let Some(mut tree) = self.tree(state, cx.now) {
                match tree.files.release(ino) {
                    Ok(()) => tree.files.done()?,
                    Err(Stop::Error(e)) => return Err(e),
                    Err(Stop::Commit) => {}
                }
                state.epoch.is_dirty = true;
            }
        }
        self.commit_state(state)?;
        self.put_head(state, true, cx.now)
    }
}

/// After a failure that leaves memory and disk apart, the volume takes no more changes.
fn or_fail<R>(state: &mut State, result: Result<R>) -> Result<R> {
    result.inspect_err(|_| state.phase = Phase::Failed)
}

/// Why a volume takes no changes, if it cannot.
fn why_not(sector: u32, is_clean: bool, alloc: &Result<Alloc>) -> Option<String> {
    if sector > 512 {
        return Some("the device's sectors are longer than 512 bytes".into());
    }
    if !is_clean {
        return Some("the volume was not cleanly left: fsck -p first".into());
    }
    let why = |e: &Error| format!("the free list is damaged ({e}): fsck -y first");
    alloc.as_ref().err().map(why)
}

/// Returns the root directory.
///
/// # Errors
/// `Corrupt` if it is none; `Io`.
pub(crate) fn root(reader: &Reader<'_>) -> Result<Inode> {
    let inode = reader.inode_as_it_is(ROOT_INO.into())?;
    if inode.kind() != Some(FileKind::Dir) {
        let found = format!("{:#o} (inode 2, the root)", inode.mode);
        return Err(Error::corrupt("di_mode", inode.at, found, "a directory's"));
    }
    inode.check(reader.volume)
}

/// Returns a cache for reading: requests of up to 1 MiB where memory allows.
pub(crate) fn cache(dev: Arc<dyn BlockDevice>, memory: u64) -> Cache {
    let io_size = (memory / 16).clamp(64 << 10, 1 << 20);
    let io_size = u32::try_from(io_size).map_or(64 << 10, u32::next_power_of_two);
    Cache::new(dev, CacheOptions { memory, io_size })
}
