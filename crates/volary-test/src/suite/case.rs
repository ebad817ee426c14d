//! What a case is given: a fresh volume, and short words for what cases do.

use super::fresh::{Attacher, Fresh, Kept};
use super::record::{Record, Recorder};
use crate::manifest::Manifest;
use crate::tree::Tree;
use parking_lot::{Mutex, RwLock};
use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use volary_core::{
    Attr, BlockDevice, Cancel, Caps, Cookie, Create, Cred, Ctx, DirBuf, Entry, FileKind, Fs, Kind,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, Time,
};

/// A fresh volume, made for one case.
///
/// The words are the operations of [`FileSystem`](volary_core::FileSystem),
/// asked for by root at [`now`](Self::now). Those that give a `Result` pass on
/// the volume's answer; the others end the case if the volume refuses.
pub struct Case {
    fs: RwLock<Fs>,
    caps: Caps,
    cred: Cred,
    cancel: Cancel,
    now: AtomicI64,
    own_clock: bool,
    reattach: Option<Attacher>,
    read_only: Option<Attacher>,
    /// What it lies on, if the factory tells it.
    pub(crate) device: Option<Arc<dyn BlockDevice>>,
    keep: Vec<Kept>,
    record: Arc<Record>,
    skipped: Mutex<Option<String>>,
    manifest: Option<Arc<Manifest>>,
}

/// An entry as `readdir` gave it.
#[derive(Clone, Debug)]
pub struct Item {
    /// Its name.
    pub name: Vec<u8>,
    /// The node it leads to.
    pub node: NodeId,
    /// What that is.
    pub kind: FileKind,
    /// The place after it.
    pub next: Cookie,
    /// Attributes, if they were given.
    pub attr: Option<Attr>,
}

impl Case {
    pub(super) fn new(
        fresh: Fresh,
        own_clock: bool,
        record: &Arc<Record>,
        manifest: Option<Arc<Manifest>>,
    ) -> Self {
        Self {
            caps: fresh.fs.caps(),
            fs: RwLock::new(Recorder::over(fresh.fs, record)),
            cred: Cred::root(),
            cancel: Cancel::new(),
            // An even second in 2023, which every format can keep.
            now: AtomicI64::new(1_700_000_000),
            own_clock,
            reattach: fresh.reattach,
            read_only: fresh.read_only,
            device: fresh.device,
            keep: fresh.keep,
            record: Arc::clone(record),
            skipped: Mutex::new(None),
            manifest,
        }
    }

    /// Says that the case, or the rest of it, cannot run on this volume.
    pub fn skip(&self, why: impl Into<String>) {
        *self.skipped.lock() = Some(why.into());
    }

    /// Returns what a volume that is only read holds.
    ///
    /// # Panics
    /// In cases of the suite for volumes that take changes.
    pub(crate) fn manifest(&self) -> &Manifest {
        self.manifest.as_deref().expect("a manifest")
    }

    /// Detaches, and only then lets go of what the volume lies on. Returns why the case could not
    /// run to its end.
    pub(super) fn end(self) -> Option<String> {
        let ended = self.fs().detach(&self.cx());
        drop(self.fs);
        drop(self.reattach);
        drop(self.read_only);
        drop(self.device);
        drop(self.keep);
        ended.expect("detach at the end of the case");
        self.skipped.into_inner()
    }

    /// Returns the volume.
    pub fn fs(&self) -> Fs {
        self.fs.read().clone()
    }

    /// Returns what it claims.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Returns a name as it is, or its end where the volume keeps no names of that length.
    pub fn fitting(&self, name: impl Into<String>) -> String {
        let name = name.into();
        let over = name.len().saturating_sub(self.caps.name_max.into());
        let from = (over..name.len()).find(|&at| name.is_char_boundary(at));
        name[from.unwrap_or(name.len())..].to_owned()
    }

    /// Returns the root directory.
    pub fn root(&self) -> NodeId {
        self.fs.read().root()
    }

    /// Returns whether the volume's time stamps come from the calls.
    pub fn takes_our_time(&self) -> bool {
        !self.own_clock
    }

    /// Returns the time of the calls.
    pub fn now(&self) -> Time {
        Time::from_secs(self.now.load(Ordering::Relaxed))
    }

    /// Lets time pass.
    pub fn pass(&self, secs: i64) {
        self.now.fetch_add(secs, Ordering::Relaxed);
    }

    /// Root, now.
    pub fn cx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: self.now(),
            cancel: &self.cancel,
        }
    }

    /// Detaches and attaches again; false if the factory cannot.
    pub fn reattach(&self) -> bool {
        let Some(attach) = &self.reattach else {
            self.skip("the rest needs the volume attached again (Fresh::reattach)");
            return false;
        };
        self.again(attach);
        true
    }

    /// Detaches and attaches again for reading; false if the factory cannot.
    pub fn reattach_read_only(&self) -> bool {
        let Some(attach) = &self.read_only else {
            self.skip("the rest needs the volume attached for reading (Fresh::read_only)");
            return false;
        };
        self.again(attach);
        true
    }

    fn again(&self, attach: &Attacher) {
        self.fs().detach(&self.cx()).expect("detach");
        *self.fs.write() = Recorder::over(attach(), &self.record);
    }

    // ---- Names ----

    /// See [`lookup`](volary_core::FileSystem::lookup).
    pub fn lookup(&self, dir: NodeId, name: impl AsRef<[u8]>) -> Result<Entry> {
        self.fs().lookup(&self.cx(), dir, check(name.as_ref())?)
    }

    /// Returns the node that a name leads to.
    #[track_caller]
    pub fn find(&self, dir: NodeId, name: impl AsRef<[u8]>) -> NodeId {
        let name = name.as_ref();
        match self.lookup(dir, name) {
            Ok(entry) => entry.node,
            Err(e) => panic!("lookup of '{}': {e}", volary_core::escape(name)),
        }
    }

    /// See [`create`](volary_core::FileSystem::create).
    pub fn create(
        &self,
        dir: NodeId,
        name: impl AsRef<[u8]>,
        how: Create,
    ) -> Result<(Entry, OpenId)> {
        self.create_as(dir, name, how, &self.usual(0o644))
    }

    /// Creates a file with attributes.
    pub fn create_as(
        &self,
        dir: NodeId,
        name: impl AsRef<[u8]>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let name = check(name.as_ref())?;
        self.fs().create(&self.cx(), dir, name, how, set)
    }

    /// Makes a file with this content.
    #[track_caller]
    pub fn file(&self, dir: NodeId, name: impl AsRef<[u8]>, content: &[u8]) -> NodeId {
        let (entry, open) = self.create(dir, name, Create::New).expect("create");
        self.write(open, 0, content).expect("write");
        self.close(open);
        entry.node
    }

    /// Makes an empty file.
    #[track_caller]
    pub fn touch(&self, dir: NodeId, name: impl AsRef<[u8]>) -> NodeId {
        let (entry, open) = self.create(dir, name, Create::New).expect("create");
        self.close(open);
        entry.node
    }

    /// See [`mkdir`](volary_core::FileSystem::mkdir).
    pub fn mkdir(&self, dir: NodeId, name: impl AsRef<[u8]>) -> Result<Entry> {
        let set = self.usual(0o755);
        self.fs()
            .mkdir(&self.cx(), dir, check(name.as_ref())?, &set)
    }

    /// Makes a directory.
    #[track_caller]
    pub fn dir(&self, dir: NodeId, name: impl AsRef<[u8]>) -> NodeId {
        self.mkdir(dir, name).expect("mkdir").node
    }

    /// See [`mknod`](volary_core::FileSystem::mknod).
    pub fn mknod(&self, dir: NodeId, name: &str, kind: FileKind, rdev: u64) -> Result<Entry> {
        let name = check(name.as_bytes())?;
        let set = self.usual(0o600);
        self.fs().mknod(&self.cx(), dir, name, kind, rdev, &set)
    }

    /// See [`symlink`](volary_core::FileSystem::symlink).
    pub fn symlink(&self, dir: NodeId, name: impl AsRef<[u8]>, target: &[u8]) -> Result<Entry> {
        let name = check(name.as_ref())?;
        let set = self.usual(0o777);
        self.fs().symlink(&self.cx(), dir, name, target, &set)
    }

    /// See [`link`](volary_core::FileSystem::link).
    pub fn link(&self, node: NodeId, dir: NodeId, name: &str) -> Result<Entry> {
        let name = check(name.as_bytes())?;
        self.fs().link(&self.cx(), node, dir, name)
    }

    /// See [`unlink`](volary_core::FileSystem::unlink).
    pub fn unlink(&self, dir: NodeId, name: impl AsRef<[u8]>) -> Result<()> {
        self.fs().unlink(&self.cx(), dir, check(name.as_ref())?)
    }

    /// See [`rmdir`](volary_core::FileSystem::rmdir).
    pub fn rmdir(&self, dir: NodeId, name: impl AsRef<[u8]>) -> Result<()> {
        self.fs().rmdir(&self.cx(), dir, check(name.as_ref())?)
    }

    /// See [`rename`](volary_core::FileSystem::rename); replaces.
    pub fn rename(
        &self,
        from: NodeId,
        name: impl AsRef<[u8]>,
        to: NodeId,
        new: impl AsRef<[u8]>,
    ) -> Result<()> {
        self.rename_with(from, name, to, new, RenameFlags::REPLACE)
    }

    /// The same, with flags.
    pub fn rename_with(
        &self,
        from: NodeId,
        name: impl AsRef<[u8]>,
        to: NodeId,
        new: impl AsRef<[u8]>,
        flags: RenameFlags,
    ) -> Result<()> {
        let (name, new) = (check(name.as_ref())?, check(new.as_ref())?);
        self.fs().rename(&self.cx(), from, name, to, new, flags)
    }

    // ---- Nodes ----

    /// See [`getattr`](volary_core::FileSystem::getattr).
    pub fn getattr(&self, node: NodeId) -> Result<Attr> {
        self.fs().getattr(&self.cx(), node)
    }

    /// Returns the attributes of a node that is there.
    #[track_caller]
    pub fn attr(&self, node: NodeId) -> Attr {
        self.getattr(node).expect("getattr")
    }

    /// See [`setattr`](volary_core::FileSystem::setattr).
    pub fn setattr(&self, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.fs().setattr(&self.cx(), node, set)
    }

    /// Sets the size.
    #[track_caller]
    pub fn resize(&self, node: NodeId, size: u64) {
        self.setattr(node, &SetAttr::size(size))
            .expect("setattr of the size");
    }

    // ---- Opens ----

    /// See [`open`](volary_core::FileSystem::open).
    pub fn try_open(&self, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.fs().open(&self.cx(), node, mode)
    }

    /// Opens for reading and writing.
    #[track_caller]
    pub fn open(&self, node: NodeId) -> OpenId {
        self.try_open(node, Mode::ReadWrite).expect("open")
    }

    /// Opens for reading: a file or a directory.
    #[track_caller]
    pub fn open_to_read(&self, node: NodeId) -> OpenId {
        self.try_open(node, Mode::Read).expect("open for reading")
    }

    /// Ends an open.
    #[track_caller]
    pub fn close(&self, open: OpenId) {
        self.fs().close(&self.cx(), open).expect("close");
    }

    /// See [`read`](volary_core::FileSystem::read).
    pub fn read(&self, open: OpenId, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut buf = vec![0xee; len];
        let n = self.fs().read(&self.cx(), open, offset, &mut buf)?;
        assert!(n <= len, "read of {len} bytes gave {n}");
        buf.truncate(n);
        Ok(buf)
    }

    /// See [`write`](volary_core::FileSystem::write).
    pub fn write(&self, open: OpenId, offset: u64, data: &[u8]) -> Result<u64> {
        self.fs().write(&self.cx(), open, Some(offset), data)
    }

    /// Writes at the end.
    pub fn append(&self, open: OpenId, data: &[u8]) -> Result<u64> {
        self.fs().write(&self.cx(), open, None, data)
    }

    /// Returns what a file holds.
    #[track_caller]
    pub fn content(&self, node: NodeId) -> Vec<u8> {
        let open = self.open_to_read(node);
        let mut all = Vec::new();
        loop {
            let part = self.read(open, all.len() as u64, 1 << 16).expect("read");
            if part.is_empty() {
                break;
            }
            all.extend(part);
        }
        self.close(open);
        all
    }

    /// Some entries from `from` on, in a buffer of that room, and whether
    /// these were the last. Names are in lower case if the volume does not
    /// keep the case.
    pub fn readdir(
        &self,
        open: OpenId,
        from: Cookie,
        entries_max: usize,
        names_max: usize,
    ) -> Result<(Vec<Item>, bool)> {
        let mut buf = DirBuf::new(entries_max, names_max, true);
        let end = self.fs().readdir(&self.cx(), open, from, &mut buf)?;
        let items = buf.iter().map(|e| Item {
            name: as_kept(self.caps, e.name),
            node: e.node,
            kind: e.kind,
            next: e.next,
            attr: e.attr,
        });
        Ok((items.collect(), end))
    }

    /// Returns all entries from `from` on, in as many calls as it takes.
    #[track_caller]
    pub fn list_from(&self, open: OpenId, from: Cookie, entries_max: usize) -> Vec<Item> {
        let (mut all, mut at) = (Vec::new(), from);
        loop {
            let (items, end) = self
                .readdir(open, at, entries_max, 1 << 16)
                .expect("readdir");
            assert!(end || !items.is_empty(), "readdir gave nothing, but no end");
            at = items.last().map_or(at, |i| i.next);
            all.extend(items);
            assert!(all.len() <= LISTED_MAX, "readdir comes to no end");
            if end {
                return all;
            }
        }
    }

    /// Returns all entries of a directory.
    #[track_caller]
    pub fn list(&self, dir: NodeId) -> Vec<Item> {
        let open = self.open_to_read(dir);
        let all = self.list_from(open, Cookie::START, 100);
        self.close(open);
        all
    }

    /// Returns the names in a directory, sorted.
    #[track_caller]
    pub fn names(&self, dir: NodeId) -> Vec<String> {
        sorted_names(&self.list(dir))
    }

    // ---- Claims ----

    /// Whole volume, as one value.
    #[track_caller]
    pub fn tree(&self) -> Tree {
        Tree::read(&self.fs(), &self.cx()).expect("reading the whole tree")
    }

    /// Asserts that `act` is refused with `kind`, and changes nothing.
    #[track_caller]
    pub fn refuses<T: Debug>(&self, kind: Kind, act: impl FnOnce() -> Result<T>) {
        self.refuses_with(&[kind], act);
    }

    /// Holds if `act` is refused with one of `kinds` and nothing has changed after.
    #[track_caller]
    pub fn refuses_with<T: Debug>(&self, kinds: &[Kind], act: impl FnOnce() -> Result<T>) {
        let before = self.tree();
        match act() {
            Ok(got) => panic!("expected {kinds:?}, but it was done: {got:?}"),
            Err(e) => assert!(kinds.contains(&e.kind()), "expected {kinds:?}, got {e:?}"),
        }
        before.assert_same(&self.tree());
    }

    /// Attributes for a new node: with MODES, this mode and root as owner.
    pub fn usual(&self, mode: u32) -> SetAttr {
        if self.caps.has(Caps::MODES) {
            SetAttr::owned(mode, 0, 0)
        } else {
            SetAttr::default()
        }
    }
}

/// Entries of a listing that comes to an end.
const LISTED_MAX: usize = 1_000_000;

/// Returns the names of a listing, sorted.
pub(crate) fn sorted_names(items: &[Item]) -> Vec<String> {
    let mut names: Vec<String> = items
        .iter()
        .map(|i| volary_core::escape(&i.name).to_string())
        .collect();
    names.sort();
    names
}

fn check(name: &[u8]) -> Result<Name<'_>> {
    Ok(Name::new(name)?)
}

/// Returns a name as listings of a volume with these claims give it.
pub(crate) fn as_kept(caps: Caps, name: &[u8]) -> Vec<u8> {
    match caps.has(Caps::CASE_KEEPING) {
        true => name.to_vec(),
        false => String::from_utf8_lossy(name).to_lowercase().into_bytes(),
    }
}
