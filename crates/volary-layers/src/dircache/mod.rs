//! Caches entries and attributes.

mod memory;

use memory::{Memory, Ticket};
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{
    Attr, Caps, Change, ChangeSink, Cookie, Create, Ctx, DirBuf, Entry, Error, FileKind, Fs, Kind,
    Layer, Mode, Name, NodeId, OpenId, Options, RenameFlags, Result, SetAttr, Watch,
};

/// Caches the nodes that names refer to, names that do not exist, and attributes. For volumes that
/// answer slowly: over a network, on the host, or under a layer that encrypts.
///
/// Values that a change through the layer affects are dropped before the change begins and again
/// when it has ended. Change reports from the volume ([`Caps::WATCH`]) take effect when they come.
/// While a change is in progress, nothing new is cached. So nobody sees a state from before a
/// finished change. Only access times may lag behind by the reads since they were cached.
///
/// Some volumes are changed by others (they check access themselves or share their locks) and may
/// not report it. Over such a volume, values are valid for a second, or for `age`. Over a volume
/// that checks access itself, the cache is for one caller, and is cleared when another calls. At
/// most about `memory` bytes are used. Changes no caps.
pub struct DirCache {
    below: Fs,
    memory: Arc<Mutex<Memory>>,
    one_caller: bool,
    /// Whether changing one name can change what other names refer to.
    has_aliases: bool,
    _watch: Option<Watch>,
}

/// Default for the memory of the cache: 8 MiB.
pub const CACHE_MEMORY: usize = 8 << 20;

/// The nodes and names that a change affects.
#[derive(Default)]
struct Touched<'a> {
    nodes: [Option<NodeId>; 4],
    names: [Option<(NodeId, Name<'a>)>; 2],
}

impl DirCache {
    /// Puts the layer over `below`. Values are valid for `age` seconds, or without it for as long
    /// as the contract allows.
    ///
    /// # Errors
    /// Those of watching the volume.
    pub fn new(below: Fs, memory: usize, age: Option<u64>) -> Result<Self> {
        let caps = below.caps();
        let news = caps.has(Caps::WATCH);
        let shared = caps.bits & (Caps::CHECKS_ACCESS | Caps::SHARED_LOCKS | Caps::SHARED) != 0;
        let age = age.or((shared && !news).then_some(1));
        let memory = Arc::new(Mutex::new(Memory::new(memory, age)));
        let watch = if news {
            Some(below.watch(Arc::new(News(memory.clone())))?)
        } else {
            None
        };
        Ok(Self {
            below,
            memory,
            one_caller: caps.has(Caps::CHECKS_ACCESS),
            has_aliases: !caps.has(Caps::CASE_SENSITIVE | Caps::ANY_NAME),
            _watch: watch,
        })
    }

    /// Parses `memory=SIZE`, `age=SECONDS`, both or nothing.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected; as [`new`](Self::new).
    pub fn parse(below: Fs, text: &str) -> Result<Self> {
        let bad = |_: Error| {
            let words = format!(
                "layer dircache does not know '{text}'; expected memory=SIZE, age=SECONDS or both"
            );
            Error::note(Kind::Invalid, words)
        };
        let mut options = Options::parse(text);
        let memory = options.number("memory").map_err(bad)?;
        let age = options.number("age").map_err(bad)?;
        options.take("memory");
        options.take("age");
        if !options.is_empty() {
            return Err(bad(Kind::Invalid.into()));
        }
        let memory = memory.map_or(CACHE_MEMORY, |n| usize::try_from(n).unwrap_or(usize::MAX));
        Self::new(below, memory, age)
    }

    fn lock(&self, cx: &Ctx<'_>) -> parking_lot::MutexGuard<'_, Memory> {
        let mut memory = self.memory.lock();
        if self.one_caller {
            memory.only_for(cx.cred);
        }
        memory
    }

    fn keep(&self, cx: &Ctx<'_>, ticket: Ticket, dir: NodeId, name: &[u8], entry: Option<&Entry>) {
        self.lock(cx).keep(ticket, cx.now, dir, name, entry);
    }

    /// Returns the node that a name refers to now, if looking it up succeeds.
    fn node_at(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Option<NodeId> {
        self.lookup(cx, dir, name).ok().map(|entry| entry.node)
    }

    /// Makes a change, and drops the values that it affects before and after.
    fn change<T>(
        &self,
        touched: &Touched<'_>,
        call: impl FnOnce() -> Result<T>,
        gave: impl FnOnce(&T) -> Option<NodeId>,
    ) -> Result<T> {
        self.forget_touched(touched, |memory| memory.begin());
        let answer = call();
        let made = answer.as_ref().ok().and_then(gave);
        self.forget_touched(touched, |memory| {
            made.iter().for_each(|&node| memory.forget_attr(node));
            memory.end();
        });
        answer
    }

    fn forget_touched(&self, touched: &Touched<'_>, then: impl FnOnce(&mut Memory)) {
        let mut memory = self.memory.lock();
        for &node in touched.nodes.iter().flatten() {
            memory.forget_attr(node);
        }
        for (dir, name) in touched.names.iter().flatten() {
            if self.has_aliases {
                memory.forget_entries(*dir);
            } else {
                memory.forget_entry(*dir, name.as_bytes());
            }
        }
        then(&mut memory);
    }

    /// Makes a change to the node of an open.
    fn change_open<T>(&self, open: OpenId, call: impl FnOnce() -> Result<T>) -> Result<T> {
        let node = self.memory.lock().node_of(open);
        self.change(&Touched::nodes([node, None, None, None]), call, |_| None)
    }

    /// Makes an entry.
    fn make(
        &self,
        dir: NodeId,
        name: Name<'_>,
        call: impl FnOnce() -> Result<Entry>,
    ) -> Result<Entry> {
        let touched = Touched::entry(dir, name, None);
        self.change(&touched, call, |entry| Some(entry.node))
    }
}

impl<'a> Touched<'a> {
    fn nodes(nodes: [Option<NodeId>; 4]) -> Self {
        Self {
            nodes,
            ..Self::default()
        }
    }

    fn entry(dir: NodeId, name: Name<'a>, node: Option<NodeId>) -> Self {
        Self {
            nodes: [Some(dir), node, None, None],
            names: [Some((dir, name)), None],
        }
    }
}

impl Layer for DirCache {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let (known, ticket) = {
            let mut memory = self.lock(cx);
            let known = memory.entry(cx.now, dir, name.as_bytes());
            (known, memory.ticket())
        };
        match known {
            Some(None) => return Err(Kind::NotFound.into()),
            Some(Some((node, Some(attr)))) => return Ok(Entry { node, attr }),
            Some(Some((_, None))) | None => {}
        }
        match self.below.lookup(cx, dir, name) {
            Ok(entry) => {
                self.keep(cx, ticket, dir, name.as_bytes(), Some(&entry));
                Ok(entry)
            }
            Err(e) => {
                if e == Kind::NotFound {
                    self.keep(cx, ticket, dir, name.as_bytes(), None);
                }
                Err(e)
            }
        }
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let (ticket, node) = {
            let mut memory = self.lock(cx);
            (memory.ticket(), memory.node_of(dir))
        };
        let had = out.len();
        let end = self.below.readdir(cx, dir, from, out)?;
        let mut memory = self.lock(cx);
        for entry in out.iter().skip(had) {
            if let (Some(dir), Some(attr)) = (node, entry.attr) {
                let found = Entry {
                    node: entry.node,
                    attr,
                };
                memory.keep(ticket, cx.now, dir, entry.name, Some(&found));
            }
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
        let touched = Touched::entry(dir, name, None);
        let call = || self.below.create(cx, dir, name, how, set);
        let (entry, open) = self.change(&touched, call, |(entry, _)| Some(entry.node))?;
        self.memory.lock().opened(open, entry.node);
        Ok((entry, open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.make(dir, name, || self.below.mkdir(cx, dir, name, set))
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
        self.make(dir, name, || {
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
        self.make(dir, name, || self.below.symlink(cx, dir, name, target, set))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let touched = Touched::entry(dir, name, Some(node));
        self.change(&touched, || self.below.link(cx, node, dir, name), |_| None)
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let touched = Touched::entry(dir, name, self.node_at(cx, dir, name));
        self.change(&touched, || self.below.unlink(cx, dir, name), |()| None)
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let node = self.node_at(cx, dir, name);
        let touched = Touched::entry(dir, name, node);
        let answer = self.change(&touched, || self.below.rmdir(cx, dir, name), |()| None);
        if let (Ok(()), Some(node)) = (&answer, node) {
            self.memory.lock().forget_entries(node);
        }
        answer
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
        let (moved, there) = (self.node_at(cx, from, name), self.node_at(cx, to, new_name));
        let touched = Touched {
            nodes: [Some(from), Some(to), moved, there],
            names: [Some((from, name)), Some((to, new_name))],
        };
        let call = || self.below.rename(cx, from, name, to, new_name, flags);
        self.change(&touched, call, |()| None)
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let ticket = {
            let mut memory = self.lock(cx);
            if let Some(attr) = memory.attr(cx.now, node) {
                return Ok(attr);
            }
            memory.ticket()
        };
        let attr = self.below.getattr(cx, node)?;
        self.lock(cx).keep_attr(ticket, cx.now, &attr);
        Ok(attr)
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let touched = Touched::nodes([Some(node), None, None, None]);
        self.change(&touched, || self.below.setattr(cx, node, set), |_| None)
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let touched = Touched::nodes([Some(node), None, None, None]);
        let call = || self.below.setxattr(cx, node, name, value);
        self.change(&touched, call, |()| None)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let touched = Touched::nodes([Some(node), None, None, None]);
        let call = || self.below.removexattr(cx, node, name);
        self.change(&touched, call, |()| None)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let open = self.below.open(cx, node, mode)?;
        self.memory.lock().opened(open, node);
        Ok(open)
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        self.change_open(open, || self.below.write(cx, open, offset, data))
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        self.change_open(open, || self.below.allocate(cx, open, offset, len, hole))
    }

    /// Clears the cache: what a driver's own codes change is not known.
    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let answer = self.below.ioctl(cx, open, code, input);
        let mut memory = self.memory.lock();
        memory.forget_all();
        memory.heard();
        answer
    }

    /// Drops the attributes: the last close may free space.
    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let answer = self.change_open(open, || self.below.close(cx, open));
        self.memory.lock().closed(open);
        answer
    }

    /// Clears the cache, so that it does not outlive the attachment.
    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        let answer = self.below.detach(cx);
        let mut memory = self.memory.lock();
        memory.begin();
        memory.forget_all();
        answer
    }
}

/// Drops values that the volume reports as changed.
struct News(Arc<Mutex<Memory>>);

impl ChangeSink for News {
    fn changed(&self, change: Change) {
        let mut memory = self.0.lock();
        match change {
            Change::Data(node) | Change::Attr(node) => memory.forget_attr(node),
            Change::Entries(node) | Change::Gone(node) => {
                memory.forget_attr(node);
                memory.forget_entries(node);
            }
            Change::Everything => memory.forget_all(),
        }
        memory.heard();
    }
}
