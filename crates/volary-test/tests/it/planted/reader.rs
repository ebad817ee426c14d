//! Mistakes of a driver that only reads.

use std::collections::{HashMap, HashSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, FileKind, Fs, Kind, Layer, Mode, Name, NodeId, OpenId,
    Result, SetAttr, StatFs, Time,
};

/// Defines the mistakes and the list of them.
macro_rules! mistakes {
    ($($name:ident)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(super) enum Mistake { $($name),* }

        impl Mistake {
            pub(super) const ALL: &'static [Self] = &[$(Self::$name),*];
        }
    };
}
pub(super) use mistakes;

mistakes! {
    OffsetIgnored ShortReadsInTheMiddle ReadsEndAtSectors LargeReadsCut LastByteMissing
    ReadPastTheEndFails OffsetOverflows EmptyBufferRefused BytesOfAnotherOffset OffsetSharedByThreads
    CookieSkips CookieRepeats CookieIgnored PositionKeptInTheOpen LargeDirectoryCut GhostListed
    EntryMissing KindsNotListed ListedNodeWrong ListedSizeStale LongNamesCut MadeUpCookiePanics
    NoEndTold
    ParentAlwaysRoot ParentOfFiles ParentIsItself
    ReadlinkCut ReadlinkNormalised ReadlinkOfFiles
    LinksNeverCounted LinksOfDirectoriesWrong SizeOffByOne ModeMasked OwnerIgnored TimesTruncated
    TimesShifted WrongNodeInAttributes LookupSaysOther
    LookupByPrefix LookupFoldsCase LookupFollows LookupCutsNames LookupInFiles
    CloseTwice ClosedOpenReads DirectoryReads FileLists MadeUpOpenAnswered StaleNodeAnswered
    OneOpenForAll
    OpenToWrite WritePretended SetattrPretended MkdirPretended
    FreeMoreThanThere NamesLongerThanClaimed SymlinksNotClaimed DetachForgotten DetachTwiceFails
    StatfsOfZeros StatfsWithoutBlocks StatfsOfNoSize StatfsSmallerThanABlock StatfsWithoutAnEnd
    AllIsFree AvailableMoreThanFree NodesFreeMoreThanThere NodesFewerThanThere AllNodesAreFree
}
use Mistake as M;

/// A layer that makes one mistake.
pub(super) struct Planted {
    below: Fs,
    mistake: Mistake,
    opens: Mutex<HashMap<OpenId, NodeId>>,
    closed: Mutex<HashSet<OpenId>>,
    positions: Mutex<HashMap<OpenId, Cookie>>,
    detached: Mutex<bool>,
    offset: AtomicU64,
}

impl Planted {
    pub(super) fn new(below: Fs, mistake: Mistake) -> Self {
        Self {
            below,
            mistake,
            opens: Mutex::default(),
            closed: Mutex::default(),
            positions: Mutex::default(),
            detached: Mutex::default(),
            offset: AtomicU64::new(0),
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn node_of(&self, open: OpenId) -> Option<NodeId> {
        self.opens.lock().unwrap().get(&open).copied()
    }

    fn attr_of(&self, cx: &Ctx<'_>, open: OpenId) -> Option<Attr> {
        self.below.getattr(cx, self.node_of(open)?).ok()
    }

    fn wrong(&self, mut attr: Attr) -> Attr {
        let is_dir = attr.kind == FileKind::Dir;
        match self.mistake {
            M::LinksNeverCounted => attr.nlink = 1,
            M::LinksOfDirectoriesWrong if is_dir => attr.nlink = 2,
            M::SizeOffByOne if attr.kind == FileKind::File => attr.size += 1,
            M::ModeMasked => attr.mode &= 0o777,
            M::OwnerIgnored => attr.uid = 0,
            M::TimesTruncated => attr.mtime = attr.mtime.round_down(60_000_000_000),
            M::TimesShifted => attr.mtime = Time::new(attr.mtime.secs + 3600, attr.mtime.nanos),
            _ => {}
        }
        attr
    }

    fn wrong_entry(&self, mut entry: Entry) -> Entry {
        entry.attr = self.wrong(entry.attr);
        entry
    }

    /// Returns all entries of an open directory.
    fn entries(&self, cx: &Ctx<'_>, open: OpenId, from: Cookie) -> Result<DirBuf> {
        let mut all = DirBuf::new(100_000, 1 << 24, true);
        self.below.readdir(cx, open, from, &mut all)?;
        Ok(all)
    }

    /// Returns the cookie that leads to the entry before the one that `from` leads to.
    fn before(&self, cx: &Ctx<'_>, open: OpenId, from: Cookie) -> Result<Cookie> {
        let all = self.entries(cx, open, Cookie::START)?;
        let nexts: Vec<_> = all.iter().map(|entry| entry.next).collect();
        let at = nexts.iter().position(|&next| next == from);
        Ok(match at {
            Some(0) | None => Cookie::START,
            Some(at) => nexts[at - 1],
        })
    }

    fn place(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie) -> Result<Cookie> {
        Ok(match self.mistake {
            M::CookieIgnored => Cookie::START,
            M::CookieRepeats => self.before(cx, dir, from)?,
            M::PositionKeptInTheOpen => {
                let positions = self.positions.lock().unwrap();
                positions.get(&dir).copied().unwrap_or(Cookie::START)
            }
            M::CookieSkips if from != Cookie::START => {
                let all = self.entries(cx, dir, from)?;
                all.iter().next().map_or(from, |entry| entry.next)
            }
            _ => from,
        })
    }

    /// Gives entries on, with the mistake.
    fn pass(&self, (dir, node): (OpenId, NodeId), all: &DirBuf, out: &mut DirBuf) -> bool {
        for (index, entry) in all.iter().enumerate() {
            let (mut node_given, mut kind, mut name) = (entry.node, entry.kind, entry.name);
            let mut attr = entry.attr.map(|attr| self.wrong(attr));
            match self.mistake {
                M::KindsNotListed => kind = FileKind::File,
                M::ListedNodeWrong => node_given = node,
                M::ListedSizeStale => attr = attr.map(|attr| Attr { size: 0, ..attr }),
                M::LongNamesCut => name = &name[..name.len().min(254)],
                M::EntryMissing if index == 6 => continue,
                _ => {}
            }
            if !out.push(entry.next, node_given, kind, name, attr) {
                return false;
            }
            self.positions.lock().unwrap().insert(dir, entry.next);
        }
        true
    }
}

impl Layer for Planted {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn caps(&self) -> Caps {
        let mut caps = self.below.caps();
        match self.mistake {
            M::NamesLongerThanClaimed => caps.name_max = 12,
            M::SymlinksNotClaimed => caps = caps.without(Caps::SYMLINKS),
            _ => {}
        }
        caps
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        let mut stat = self.below.statfs(cx)?;
        match self.mistake {
            M::FreeMoreThanThere => stat.free = stat.size + 1,
            M::StatfsOfZeros => stat = StatFs::default(),
            M::StatfsWithoutBlocks => stat.block_size = 0,
            M::StatfsOfNoSize => (stat.size, stat.free, stat.available) = (0, 0, 0),
            M::StatfsSmallerThanABlock => (stat.size, stat.free, stat.available) = (511, 0, 0),
            M::StatfsWithoutAnEnd => stat.size = u64::MAX,
            M::AllIsFree => stat.free = stat.size,
            M::AvailableMoreThanFree => stat.available = stat.free + 1,
            M::NodesFreeMoreThanThere => stat.nodes_free = stat.nodes + 1,
            M::NodesFewerThanThere => (stat.nodes, stat.nodes_free) = (10, 0),
            M::AllNodesAreFree => stat.nodes_free = stat.nodes,
            _ => {}
        }
        Ok(stat)
    }

    fn detach(&self, cx: &Ctx<'_>) -> Result<()> {
        if self.is(M::DetachForgotten) {
            return Ok(());
        }
        let mut detached = self.detached.lock().unwrap();
        if self.is(M::DetachTwiceFails) && *detached {
            return Err(Kind::Stale.into());
        }
        *detached = true;
        self.below.detach(cx)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let found = self.below.lookup(cx, dir, name);
        let bytes = name.as_bytes();
        let like = |same: &dyn Fn(&[u8]) -> bool| {
            let open = self.below.open(cx, dir, Mode::Read)?;
            let all = self.entries(cx, open, Cookie::START)?;
            self.below.close(cx, open)?;
            let found = all.iter().find(|entry| same(entry.name));
            let name = found.ok_or(Kind::NotFound)?.name;
            self.below.lookup(cx, dir, Name::new(name)?)
        };
        let found = match (self.mistake, found) {
            (M::LookupByPrefix, Err(_)) => like(&|other| other.starts_with(bytes)),
            (M::LookupFoldsCase, Err(_)) => like(&|other| other.eq_ignore_ascii_case(bytes)),
            (M::LookupCutsNames, _) => {
                like(&|other| other.iter().take(254).eq(bytes.iter().take(254)))
            }
            (M::LookupInFiles, Err(e)) if e == Kind::NotDir => self.below.parent(cx, self.root()),
            (M::LookupFollows, Ok(entry)) if entry.attr.kind == FileKind::Symlink => {
                self.below.parent(cx, dir)
            }
            (M::LookupSaysOther, Ok(mut entry)) => {
                entry.attr.size += 1;
                Ok(entry)
            }
            (_, found) => found,
        };
        found.map(|entry| self.wrong_entry(entry))
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let root = self.below.parent(cx, self.below.root())?;
        let entry = match self.mistake {
            M::ParentAlwaysRoot => root,
            M::ParentOfFiles => self.below.parent(cx, dir).unwrap_or(root),
            M::ParentIsItself => {
                self.below.parent(cx, dir)?;
                let attr = self.below.getattr(cx, dir)?;
                Entry { node: dir, attr }
            }
            _ => self.below.parent(cx, dir)?,
        };
        Ok(self.wrong_entry(entry))
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let is_file = self
            .attr_of(cx, dir)
            .is_some_and(|attr| attr.kind == FileKind::File);
        if self.is(M::FileLists) && is_file {
            return Ok(true);
        }
        assert!(
            !self.is(M::MadeUpCookiePanics) || from.0 <= 1 << 32,
            "index out of bounds"
        );
        let all = self.entries(cx, dir, self.place(cx, dir, from)?)?;
        let node = self.node_of(dir).unwrap_or(self.below.root());
        if self.is(M::LargeDirectoryCut) && from.0 > 512 {
            return Ok(true);
        }
        let done = self.pass((dir, node), &all, out);
        if self.is(M::GhostListed) && done && from == Cookie::START {
            out.push(Cookie(1 << 20), node, FileKind::File, b"ghost", None);
        }
        Ok(done && !self.is(M::NoEndTold))
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        let attr = self.below.getattr(cx, node);
        let mut attr = match attr {
            Err(_) if self.is(M::StaleNodeAnswered) => self.below.getattr(cx, self.below.root())?,
            attr => attr?,
        };
        if self.is(M::WrongNodeInAttributes) {
            attr.node = self.below.root();
        }
        Ok(self.wrong(attr))
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        match self.mistake {
            M::SetattrPretended => self.getattr(cx, node),
            _ => self.below.setattr(cx, node, set),
        }
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        match self.mistake {
            M::MkdirPretended => self.below.parent(cx, dir),
            _ => self.below.mkdir(cx, dir, name, set),
        }
    }

    fn readlink(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Vec<u8>> {
        let mut target = match self.below.readlink(cx, node) {
            Err(_) if self.is(M::ReadlinkOfFiles) => return Ok(Vec::new()),
            target => target?,
        };
        match self.mistake {
            M::ReadlinkCut => target.truncate(60),
            M::ReadlinkNormalised => {
                let text = String::from_utf8_lossy(&target)
                    .replace("./", "")
                    .replace("//", "/");
                target = text.into_bytes();
            }
            _ => {}
        }
        Ok(target)
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        if self.is(M::OneOpenForAll)
            && let Some(open) = self.opens.lock().unwrap().iter().find(|(_, n)| **n == node)
        {
            return Ok(*open.0);
        }
        let mode = if self.is(M::OpenToWrite) {
            Mode::Read
        } else {
            mode
        };
        let open = self.below.open(cx, node, mode)?;
        self.opens.lock().unwrap().insert(open, node);
        Ok(open)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let attr = self.attr_of(cx, open);
        let size = attr.map_or(0, |attr| attr.size);
        let is_dir = attr.is_some_and(|attr| attr.kind == FileKind::Dir);
        let len = buf.len();
        match self.mistake {
            M::OffsetIgnored => self.below.read(cx, open, 0, buf),
            M::ShortReadsInTheMiddle => {
                self.below.read(cx, open, offset, &mut buf[..len.min(4096)])
            }
            M::LargeReadsCut => self
                .below
                .read(cx, open, offset, &mut buf[..len.min(65_536)]),
            M::ReadsEndAtSectors => {
                let room = 512 - (offset % 512) as usize;
                self.below.read(cx, open, offset, &mut buf[..len.min(room)])
            }
            M::LastByteMissing => {
                let n = self.below.read(cx, open, offset, buf)?;
                let to_the_end = n > 0 && offset + n as u64 == size;
                Ok(n - usize::from(to_the_end))
            }
            M::ReadPastTheEndFails if offset > size => Err(Kind::Invalid.into()),
            M::OffsetOverflows => {
                assert!(
                    offset.checked_add(len as u64).is_some(),
                    "attempt to add with overflow"
                );
                self.below.read(cx, open, offset, buf)
            }
            M::EmptyBufferRefused if buf.is_empty() => Err(Kind::Invalid.into()),
            M::BytesOfAnotherOffset if offset > 4096 => self.below.read(cx, open, offset - 1, buf),
            M::OffsetSharedByThreads => {
                self.offset.store(offset, Ordering::SeqCst);
                for _ in 0..5 {
                    std::thread::yield_now();
                }
                self.below
                    .read(cx, open, self.offset.load(Ordering::SeqCst), buf)
            }
            M::DirectoryReads if is_dir => Ok(0),
            M::MadeUpOpenAnswered => self.below.read(cx, open, offset, buf).or(Ok(0)),
            _ => self.below.read(cx, open, offset, buf),
        }
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        match self.mistake {
            M::WritePretended => Ok(offset.unwrap_or(0) + data.len() as u64),
            _ => self.below.write(cx, open, offset, data),
        }
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        if self.is(M::ClosedOpenReads) {
            let is_first = self.closed.lock().unwrap().insert(open);
            return if is_first {
                Ok(())
            } else {
                Err(Kind::Stale.into())
            };
        }
        self.opens.lock().unwrap().remove(&open);
        match self.below.close(cx, open) {
            Err(_) if self.is(M::CloseTwice) => Ok(()),
            done => done,
        }
    }
}
