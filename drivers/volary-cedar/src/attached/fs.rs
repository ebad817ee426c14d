//! The file system: each operation in a few words, the work is elsewhere.

use crate::attached::operations::Attached;
use crate::change::names::Make;
use crate::change::names::Names;
use crate::change::nodes::node_id;
use crate::commit::core::Takes;
use crate::name_table::entry::ROOT_UID;
use parking_lot::{Mutex, MutexGuard};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use volary_core::{
    Attr, Caps, Cookie, Create, Ctx, DirBuf, Entry, Extent, FileKind, FileSystem, Finding, Kind,
    Mode, Name, NodeId, OpenId, RenameFlags, Result, SetAttr, StatFs,
};

/// Longest target of a symlink, in bytes, where the pages hold it.
const TARGET_MAX: usize = 4095;

/// A Cedar volume as a file system.
pub(crate) struct CedarFs {
    caps: Caps,
    root: NodeId,
    commit_time: Duration,
    /// Whether there is something to tell.
    found: Arc<AtomicBool>,
    state: Mutex<Attached>,
}

/// Returns an attached volume as a file system, without its remote.
///
/// # Errors
/// None but a defect.
pub(crate) fn local(attached: Attached) -> Result<CedarFs> {
    let mut bits = Caps::MODES
        | Caps::SYMLINKS
        | Caps::HARD_LINKS
        | Caps::DEVICES
        | Caps::XATTRS
        | Caps::CASE_SENSITIVE
        | Caps::CASE_KEEPING
        | Caps::STABLE_IDS
        | Caps::STABLE_COOKIES
        | Caps::CRASH_SAFE
        | Caps::EXTENTS
        | Caps::SWAP
        | Caps::ANY_NAME;
    if attached.files.core.takes != Takes::Nothing {
        bits |= Caps::WRITE;
    }
    let caps = Caps {
        bits,
        name_max: attached.files.core.layout.name_max() as u16,
        size_max: attached.files.core.layout.size_max(),
        time_step: 1,
    };
    Ok(CedarFs {
        caps,
        commit_time: attached.files.core.commit_time,
        root: node_id(ROOT_UID)?,
        found: attached.files.found.untold.any(),
        state: Mutex::new(attached),
    })
}

impl CedarFs {
    fn lock(&self) -> MutexGuard<'_, Attached> {
        let mut state = self.state.lock();
        state.files.core.end_what_was_cut_off();
        state
    }

    /// # Errors
    /// `Stale` once detached.
    pub(crate) fn state(&self) -> Result<MutexGuard<'_, Attached>> {
        let state = self.lock();
        match state.is_detached() {
            true => Err(Kind::Stale.into()),
            false => Ok(state),
        }
    }

    /// # Errors
    /// `Stale` once detached; `ReadOnly`.
    pub(crate) fn to_change(&self) -> Result<MutexGuard<'_, Attached>> {
        let state = self.state()?;
        state.files.core.writable()?;
        Ok(state)
    }
}

impl FileSystem for CedarFs {
    fn caps(&self) -> Caps {
        self.caps
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn statfs(&self, _cx: &Ctx<'_>) -> Result<StatFs> {
        Ok(self.state()?.stat())
    }

    fn sync(&self, cx: &Ctx<'_>) -> Result<()> {
        self.state()?.sync(cx)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        self.lock().detach(cx)
    }

    fn commit_time(&self) -> Duration {
        self.commit_time
    }

    fn findings(&self) -> Vec<Finding> {
        match self.found.load(Ordering::Acquire) {
            true => self.lock().files.found.untold.take(),
            false => Vec::new(),
        }
    }

    fn lookup(&self, _cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.state()?.lookup(dir, name)
    }

    fn parent(&self, _cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.state()?.parent(dir)
    }

    fn readdir(&self, _cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        self.state()?.listing().list(dir, from, out)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.to_change()?.create(cx, dir, name, how, set)
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.to_change()?.make(cx, dir, name, Make::Dir, set)
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
        let mut state = self.to_change()?;
        let rdev = match kind {
            FileKind::CharDevice | FileKind::BlockDevice => rdev,
            FileKind::Fifo | FileKind::Socket => 0,
            _ => return Err(Kind::Invalid.into()),
        };
        state.make(cx, dir, name, Make::Special(kind, rdev), set)
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let mut state = self.to_change()?;
        let most = TARGET_MAX.min(state.files.core.layout.parts_len());
        if target.len() > most {
            let dir = crate::change::nodes::uid_of(dir)?;
            Names::of(&mut state.files).check_free(dir, name.as_bytes())?;
            return Err(Kind::NameTooLong.into());
        }
        state.make(cx, dir, name, Make::Symlink(target), set)
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.to_change()?.link(cx, node, dir, name)
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.to_change()?.unlink(cx, dir, name)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.to_change()?.rmdir(cx, dir, name)
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
        self.to_change()?
            .rename(cx, from, name, to, new_name, flags)
    }

    fn getattr(&self, _cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let mut state = self.state()?;
        let mut attrs = state.attrs();
        let head = attrs.head(node)?;
        attrs.attr(&head)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        self.to_change()?.attrs().set(cx, node, set)
    }

    fn readlink(&self, _cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        self.state()?.read_link(node)
    }

    fn getxattr(&self, _cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        self.state()?.xattrs().get(node, name)
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        self.to_change()?.xattrs().set(cx, node, name, Some(value))
    }

    fn listxattr(&self, _cx: &Ctx<'_>, node: NodeId) -> Result<Vec<Vec<u8>>> {
        self.state()?.xattrs().list(node)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        self.to_change()?.xattrs().set(cx, node, name, None)
    }

    fn open(&self, _cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        self.state()?.open_files().open(node, mode)
    }

    fn read(&self, _cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        self.state()?.open_files().read(open, offset, buf)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.to_change()?.open_files().write(cx, open, offset, data)
    }

    fn fsync(&self, cx: &Ctx<'_>, open: OpenId, _data_only: bool) -> Result<()> {
        self.state()?.open_files().fsync(cx, open)
    }

    fn extents(
        &self,
        _cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.state()?.open_files().extents(open, offset, len, out)
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.state()?.open_files().close(cx, open)
    }
}
