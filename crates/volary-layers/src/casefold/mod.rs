//! Finds names in any case.

mod names;

use names::Names;
use parking_lot::{Mutex, RwLock};
use std::sync::Arc;
use volary_core::{
    Caps, Change, ChangeSink, Create, Ctx, Entry, Error, FileKind, Fs, Kind, Layer, Name, NodeId,
    OpenId, RenameFlags, Result, SetAttr, Watch,
};

/// Makes a case-sensitive volume case-insensitive and case-preserving, as DOS, Windows and SMB
/// clients expect.
///
/// A name that matches exactly has precedence. Otherwise the name refers to the entry whose name is
/// the same after [`fold`](volary_core::fold). If there are several (made without this layer), the
/// first in byte order counts. Making an entry fails or replaces as if a name that differs only in
/// case were the same. A rename that changes only the case gives the entry its new spelling. One
/// that replaces an entry of another spelling corrects the spelling in a second step: a crash in
/// between leaves the old spelling.
///
/// Takes away [`Caps::CASE_SENSITIVE`]. Names of directories that were searched are cached, at most
/// about [`NAMES_MAX`] bytes. Calls through the layer update the cache, and change reports from the
/// volume ([`Caps::WATCH`]) clear it. If a volume without such reports is changed by others, the
/// change is not noticed before the directory leaves the cache. Making, removing and renaming run
/// one at a time. Best near the top: layers below it see names as the volume has them.
pub struct CaseFold {
    below: Fs,
    /// Held for reading while a name is looked up, for writing while one changes.
    changing: RwLock<()>,
    names: Arc<Mutex<Names>>,
    _watch: Option<Watch>,
}

/// Roughly the memory that cached names of directories may take, in bytes.
pub const NAMES_MAX: usize = 16 << 20;

impl CaseFold {
    /// Puts the layer over `below`.
    ///
    /// # Errors
    /// `Invalid` over a volume that is case-insensitive, or does not preserve the case.
    pub fn new(below: Fs) -> Result<Self> {
        let caps = below.caps();
        if !caps.has(Caps::CASE_SENSITIVE | Caps::CASE_KEEPING) {
            let words = "layer casefold: the volume finds names in any case as it is";
            return Err(Error::note(Kind::Invalid, words));
        }
        let names = Arc::new(Mutex::new(Names::new(NAMES_MAX)));
        let watch = if caps.has(Caps::WATCH) {
            Some(below.watch(Arc::new(News(names.clone())))?)
        } else {
            None
        };
        Ok(Self {
            below,
            changing: RwLock::default(),
            names,
            _watch: watch,
        })
    }

    /// Returns the name of an entry as the volume spells it; `None` if there is no entry.
    fn spelled(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Option<Vec<u8>>> {
        if let Some(known) = self.names.lock().find(dir, name) {
            return Ok(known);
        }
        names::load(&self.below, &self.names, cx, dir, name)
    }

    /// Returns the name of an existing entry as the volume spells it, or else the name that was
    /// asked for.
    fn to_make(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Vec<u8>> {
        let found = self.spelled(cx, dir, name)?;
        Ok(found.unwrap_or_else(|| name.as_bytes().to_vec()))
    }

    /// # Errors
    /// `NotFound`.
    fn to_find(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Vec<u8>> {
        let found = self.spelled(cx, dir, name)?;
        found.ok_or_else(|| Kind::NotFound.into())
    }

    /// Makes an entry, under the existing spelling if there is one.
    fn make<T>(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        call: impl FnOnce(Name<'_>) -> Result<T>,
    ) -> Result<T> {
        let _changing = self.changing.write();
        let spelled = self.to_make(cx, dir, name)?;
        let made = call(Name::new(&spelled)?)?;
        self.names.lock().add(dir, &spelled);
        Ok(made)
    }

    fn remove(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        call: impl FnOnce(Name<'_>) -> Result<()>,
    ) -> Result<()> {
        let _changing = self.changing.write();
        let spelled = self.to_find(cx, dir, name)?;
        call(Name::new(&spelled)?)?;
        self.names.lock().remove(dir, &spelled);
        Ok(())
    }

    /// Renames an entry below, and updates the cached names.
    fn move_entry(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: &[u8],
        to: NodeId,
        new_name: &[u8],
        flags: RenameFlags,
    ) -> Result<()> {
        let (old, new) = (Name::new(name)?, Name::new(new_name)?);
        self.below.rename(cx, from, old, to, new, flags)?;
        let mut names = self.names.lock();
        if flags != RenameFlags::SWAP {
            names.remove(from, name);
            names.add(to, new_name);
        }
        Ok(())
    }

    /// Replaces an entry whose name is spelled `taken`, not `new_name`.
    fn replace(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: &[u8],
        to: NodeId,
        taken: &[u8],
        new_name: &[u8],
    ) -> Result<()> {
        let moved = self.below.lookup(cx, from, Name::new(name)?)?.node;
        let there = self.below.lookup(cx, to, Name::new(taken)?)?.node;
        if moved == there {
            return Ok(());
        }
        self.move_entry(cx, from, name, to, taken, RenameFlags::REPLACE)?;
        if taken == new_name {
            return Ok(());
        }
        // The replacement is done; only the spelling can still fail.
        let respelled = self.move_entry(cx, to, taken, to, new_name, RenameFlags::KEEP);
        respelled.or(Ok(()))
    }
}

impl Layer for CaseFold {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        self.below.caps().without(Caps::CASE_SENSITIVE)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let _looking = self.changing.read();
        match self.below.lookup(cx, dir, name) {
            Err(e) if e == Kind::NotFound => {}
            found => return found,
        }
        let spelled = self.to_find(cx, dir, name)?;
        self.below.lookup(cx, dir, Name::new(&spelled)?)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.make(cx, dir, name, |name| {
            self.below.create(cx, dir, name, how, set)
        })
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.make(cx, dir, name, |name| self.below.mkdir(cx, dir, name, set))
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(cx, dir, name, |name| {
            self.below.mknod(cx, dir, name, kind, rdev, set)
        })
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.make(cx, dir, name, |name| {
            self.below.symlink(cx, dir, name, target, set)
        })
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.make(cx, dir, name, |name| self.below.link(cx, node, dir, name))
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(cx, dir, name, |name| self.below.unlink(cx, dir, name))
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.remove(cx, dir, name, |name| self.below.rmdir(cx, dir, name))
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let _changing = self.changing.write();
        if flags == RenameFlags::SWAP && !self.caps().has(Caps::SWAP) {
            return Err(Kind::Unsupported.into());
        }
        let old = self.to_find(cx, from, name)?;
        let wanted = new_name.as_bytes();
        let Some(taken) = self.spelled(cx, to, new_name)? else {
            return self.move_entry(cx, from, &old, to, wanted, flags);
        };
        let same_entry = from == to && old == taken;
        match flags {
            RenameFlags::SWAP => self.move_entry(cx, from, &old, to, &taken, flags),
            // The name is taken: the volume decides which error comes first.
            RenameFlags::KEEP if !same_entry || name == new_name => {
                self.move_entry(cx, from, &old, to, &taken, flags)
            }
            _ if same_entry && taken == wanted => Ok(()),
            _ if same_entry => self.move_entry(cx, from, &old, to, wanted, RenameFlags::REPLACE),
            _ => self.replace(cx, from, &old, to, &taken, wanted),
        }
    }
}

/// Clears cached names that the volume reports as changed.
struct News(Arc<Mutex<Names>>);

impl ChangeSink for News {
    fn changed(&self, change: Change) {
        match change {
            Change::Data(_) | Change::Attr(_) => {}
            Change::Entries(dir) | Change::Gone(dir) => self.0.lock().forget(dir),
            Change::Everything => self.0.lock().forget_all(),
        }
    }
}
