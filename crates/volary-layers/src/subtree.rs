//! Shows a directory as if it were the whole volume.

mod seek;

use parking_lot::{Mutex, RwLock};
use std::collections::HashSet;
use std::sync::Arc;
use volary_core::{
    Cancel, Caps, Change, ChangeSink, Cookie, Create, Cred, Ctx, DirBuf, Entry, Error, FileKind,
    Fs, Kind, Layer, Name, NodeId, Op, OpenId, RenameFlags, Result, SetAttr, Time, Watch, escape,
};

/// Shows a directory as if it were the whole volume: it is the root and its own parent, and nothing
/// outside of it can be reached.
///
/// Node ids that were not given out through this layer answer `Stale`, with two exceptions. The
/// first are directories that lie in the subtree. The second, on a volume with persistent ids
/// ([`Caps::STABLE_IDS`]), are other nodes that a search of the subtree finds; it covers up to a
/// million entries, and failed searches are remembered.
///
/// Ids are forgotten on [`forget`](volary_core::FileSystem::forget), and when there are more than a
/// million: without persistent ids, a file must then be looked up again. A node that others move
/// out of the subtree stays reachable by its id until that is forgotten, but nothing around it is.
pub struct Subtree {
    below: Fs,
    root: NodeId,
    known: Arc<Known>,
    /// Nodes that were not found. Locked during a search, so that there is one at a time.
    missed: Mutex<HashSet<NodeId>>,
}

/// Nodes that were given out.
#[derive(Default)]
struct Known(RwLock<HashSet<NodeId>>);

const KNOWN_MAX: usize = 1 << 20;

/// Greatest depth at which a directory is still recognized as lying in the subtree.
const DEPTH_MAX: u32 = 4096;

impl Known {
    fn has(&self, node: NodeId) -> bool {
        self.0.read().contains(&node)
    }

    fn add(&self, node: NodeId) {
        if self.has(node) {
            return;
        }
        let mut known = self.0.write();
        if known.len() >= KNOWN_MAX {
            known.clear();
        }
        known.insert(node);
    }
}

impl Subtree {
    /// Returns the subtree of `below` at `path`. Symlinks are not followed; empty parts and `.` of
    /// the path are ignored.
    ///
    /// # Errors
    /// `Invalid` for `..`; `NotFound`; `NotDir`; each with the path.
    pub fn new(below: Fs, path: &[u8]) -> Result<Self> {
        let named = |e: Error| {
            let words = format!("layer subtree: {}: {e}", escape(path));
            Error::note(e.kind(), words)
        };
        let root = with_root(Time::EPOCH, &Cancel::new(), |cx| find_dir(&below, cx, path))
            .map_err(named)?;
        Ok(Self {
            below,
            root,
            known: Arc::default(),
            missed: Mutex::default(),
        })
    }

    /// # Errors
    /// `Stale` if the node is outside.
    fn check(&self, cx: &Ctx<'_>, node: NodeId) -> Result<()> {
        if node == self.root || self.known.has(node) {
            return Ok(());
        }
        let lies_inside = with_root(cx.now, cx.cancel, |cx| {
            match self.is_dir_inside(cx, node)? {
                None if self.below.caps().has(Caps::STABLE_IDS) => self.is_found(cx, node),
                known => Ok(known == Some(true)),
            }
        })?;
        if lies_inside {
            Ok(())
        } else {
            Err(Kind::Stale.into())
        }
    }

    /// Returns whether the node is a directory in the subtree, by its chain of parents. `None` if
    /// it is not a directory.
    fn is_dir_inside(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Option<bool>> {
        let mut at = node;
        for _ in 0..DEPTH_MAX {
            let up = match self.below.parent(cx, at) {
                Err(e) if e == Kind::NotDir || e == Kind::NotFound => return Ok(None),
                up => up?.node,
            };
            if up == self.root {
                self.known.add(node);
                return Ok(Some(true));
            }
            if up == at {
                return Ok(Some(false));
            }
            at = up;
        }
        Ok(Some(false))
    }

    fn given(&self, entry: Entry) -> Entry {
        self.known.add(entry.node);
        entry
    }

    /// Makes a call on `dir`, which must be inside, and notes the entry that it returns.
    fn entry(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        call: impl FnOnce() -> Result<Entry>,
    ) -> Result<Entry> {
        self.check(cx, dir)?;
        call().map(|entry| self.given(entry))
    }
}

fn with_root<T>(now: Time, cancel: &Cancel, call: impl FnOnce(&Ctx<'_>) -> T) -> T {
    call(&Ctx {
        cred: &Cred::root(),
        now,
        cancel,
    })
}

fn find_dir(fs: &Fs, cx: &Ctx<'_>, path: &[u8]) -> Result<NodeId> {
    let mut at = fs.root();
    let parts = path.split(|&b| b == b'/');
    for part in parts.filter(|part| !part.is_empty() && *part != b".") {
        let found = fs.lookup(cx, at, Name::new(part)?)?;
        if found.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        at = found.node;
    }
    Ok(at)
}

impl Layer for Subtree {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn root(&self) -> NodeId {
        self.root
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if let (Some(cx), Some(node)) = (&op.cx, op.node) {
            self.check(cx, node)?;
        }
        call()
    }

    fn forget(&self, node: NodeId, lookups: u64) {
        self.known.0.write().remove(&node);
        self.below.forget(node, lookups);
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.entry(cx, dir, || self.below.lookup(cx, dir, name))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        self.check(cx, dir)?;
        if dir == self.root {
            let attr = self.below.getattr(cx, dir)?;
            return Ok(Entry { node: dir, attr });
        }
        let up = self.below.parent(cx, dir)?;
        self.check(cx, up.node)?;
        Ok(up)
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let end = self.below.readdir(cx, dir, from, out)?;
        if out.wants_ids() {
            out.iter().for_each(|entry| self.known.add(entry.node));
        }
        Ok(end)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.check(cx, dir)?;
        let (entry, open) = self.below.create(cx, dir, name, how, set)?;
        Ok((self.given(entry), open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.entry(cx, dir, || self.below.mkdir(cx, dir, name, set))
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
        self.entry(cx, dir, || self.below.mknod(cx, dir, name, kind, rdev, set))
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.entry(cx, dir, || self.below.symlink(cx, dir, name, target, set))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        self.check(cx, node)?;
        self.entry(cx, dir, || self.below.link(cx, node, dir, name))
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
        self.check(cx, from)?;
        self.check(cx, to)?;
        self.below.rename(cx, from, name, to, new_name, flags)
    }

    fn watch(&self, sink: Arc<dyn ChangeSink>) -> Result<Watch> {
        let known = Arc::clone(&self.known);
        let root = self.root;
        self.below.watch(Arc::new(Inside { known, root, sink }))
    }
}

/// Passes on changes of nodes that were given out.
struct Inside {
    known: Arc<Known>,
    root: NodeId,
    sink: Arc<dyn ChangeSink>,
}

impl ChangeSink for Inside {
    fn changed(&self, change: Change) {
        let (Change::Data(node) | Change::Attr(node) | Change::Entries(node) | Change::Gone(node)) =
            change
        else {
            return self.sink.changed(change);
        };
        if node == self.root || self.known.has(node) {
            self.sink.changed(change);
        }
    }
}
