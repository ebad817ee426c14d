//! The argument of a case: a fresh volume, and short methods for common operations.

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
/// The methods are the operations of [`FileSystem`](volary_core::FileSystem), called as root at the
/// time [`now`](Self::now). Those that return a `Result` return the volume's answer. The others
/// panic if the volume refuses.
pub struct Case {
    fs: RwLock<Fs>,
    caps: Caps,
    cred: Cred,
    cancel: Cancel,
    now: AtomicI64,
    own_clock: bool,
    reattach: Option<Attacher>,
    read_only: Option<Attacher>,
    /// The device of the volume, if [`Fresh::device`] is set.
    pub(crate) device: Option<Arc<dyn BlockDevice>>,
    keep: Vec<Kept>,
    record: Arc<Record>,
    skipped: Mutex<Option<String>>,
    manifest: Option<Arc<Manifest>>,
}

/// An entry that `readdir` returned.
#[derive(Clone, Debug)]
pub struct Item {
    /// The name, in lower case if the volume does not keep case.
    pub name: Vec<u8>,
    /// The node of the name.
    pub node: NodeId,
    /// The kind of the node.
    pub kind: FileKind,
    /// The cookie of the position after the entry.
    pub next: Cookie,
    /// Attributes, if the volume returned them.
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

    /// Records why the case, or the rest of it, cannot run on this volume.
    pub fn skip(&self, why: impl Into<String>) {
        *self.skipped.lock() = Some(why.into());
    }

    /// Returns the expected content of a volume that is only read.
    ///
    /// # Panics
    /// In cases of the suite for volumes that allow changes.
    pub(crate) fn manifest(&self) -> &Manifest {
        self.manifest.as_deref().expect("a manifest")
    }

    /// Detaches the volume, and only then drops the device and whatever else the volume needs.
    /// Returns the reason if the case could not run to its end.
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

    /// Returns the file system of the volume.
    pub fn fs(&self) -> Fs {
        self.fs.read().clone()
    }

    /// Returns the caps of the volume.
    pub fn caps(&self) -> Caps {
        self.caps
    }

    /// Returns `name`, or only its end if it is too long for the volume.
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

    /// Returns whether the volume takes timestamps from the time of the calls.
    pub fn takes_our_time(&self) -> bool {
        !self.own_clock
    }

    /// Returns the time that is passed to calls.
    pub fn now(&self) -> Time {
        Time::from_secs(self.now.load(Ordering::Relaxed))
    }

    /// Advances the time that is passed to calls.
    pub fn pass(&self, secs: i64) {
        self.now.fetch_add(secs, Ordering::Relaxed);
    }

    /// Returns a context for calls as root at [`now`](Self::now).
    pub fn cx(&self) -> Ctx<'_> {
        Ctx {
            cred: &self.cred,
            now: self.now(),
            cancel: &self.cancel,
        }
    }

    /// Detaches the volume and attaches it again. If [`Fresh::reattach`] is not set, records that
    /// and returns `false`.
    pub fn reattach(&self) -> bool {
        let Some(attach) = &self.reattach else {
            self.skip("the rest needs the volume attached again (Fresh::reattach)");
            return false;
        };
        self.again(attach);
        true
    }

    /// Like [`reattach`](Self::reattach), but attaches the volume for reading
    /// ([`Fresh::read_only`]).
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

    /// Returns the node of a name.
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

    /// Creates a file with the attributes `set`.
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

    /// Creates a file with this content.
    #[track_caller]
    pub fn file(&self, dir: NodeId, name: impl AsRef<[u8]>, content: &[u8]) -> NodeId {
        let (entry, open) = self.create(dir, name, Create::New).expect("create");
        self.write(open, 0, content).expect("write");
        self.close(open);
        entry.node
    }

    /// Creates an empty file.
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

    /// Creates a directory.
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

    /// See [`rename`](volary_core::FileSystem::rename). Replaces an existing target.
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

    /// Returns the attributes of an existing node.
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

    /// Opens a file or a directory for reading.
    #[track_caller]
    pub fn open_to_read(&self, node: NodeId) -> OpenId {
        self.try_open(node, Mode::Read).expect("open for reading")
    }

    /// Closes an open.
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

    /// Appends to the file.
    pub fn append(&self, open: OpenId, data: &[u8]) -> Result<u64> {
        self.fs().write(&self.cx(), open, None, data)
    }

    /// Returns the content of a file.
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

    /// Returns entries from the cookie `from` on, and whether they were the last. The buffer holds
    /// `entries_max` entries, with `names_max` bytes of names. Names are in lower case if the
    /// volume does not keep case.
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

    /// Returns all entries from `from` on, in as many calls as needed.
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

    /// Reads the whole volume as one value.
    #[track_caller]
    pub fn tree(&self) -> Tree {
        Tree::read(&self.fs(), &self.cx()).expect("reading the whole tree")
    }

    /// Asserts that `act` is refused with `kind`, and changes nothing.
    #[track_caller]
    pub fn refuses<T: Debug>(&self, kind: Kind, act: impl FnOnce() -> Result<T>) {
        self.refuses_with(&[kind], act);
    }

    /// Asserts that `act` is refused with one of `kinds`, and changes nothing.
    #[track_caller]
    pub fn refuses_with<T: Debug>(&self, kinds: &[Kind], act: impl FnOnce() -> Result<T>) {
        let before = self.tree();
        match act() {
            Ok(got) => panic!("expected {kinds:?}, but it was done: {got:?}"),
            Err(e) => assert!(kinds.contains(&e.kind()), "expected {kinds:?}, got {e:?}"),
        }
        before.assert_same(&self.tree());
    }

    /// Returns attributes for a new node: `mode` with root as owner, or none if the volume lacks
    /// `MODES`.
    pub fn usual(&self, mode: u32) -> SetAttr {
        if self.caps.has(Caps::MODES) {
            SetAttr::owned(mode, 0, 0)
        } else {
            SetAttr::default()
        }
    }
}

/// A listing with more entries is taken to be endless.
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

/// Returns a name as a volume with these caps lists it.
pub(crate) fn as_kept(caps: Caps, name: &[u8]) -> Vec<u8> {
    match caps.has(Caps::CASE_KEEPING) {
        true => name.to_vec(),
        false => String::from_utf8_lossy(name).to_lowercase().into_bytes(),
    }
}
