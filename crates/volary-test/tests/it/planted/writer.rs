//! Mistakes of a driver that takes changes.

use super::reader::mistakes;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use volary_core::{
    Attr, Cookie, Create, Ctx, DirBuf, Entry, FileKind, Fs, Kind, Layer, Mode, Name, NodeId,
    OpenId, RenameFlags, Result, SetAttr, SetTime, StatFs, Time,
};
use volary_test::Fresh;

mistakes! {
    LinkWithoutCtime LinkCountsNothing LinkReplaces
    WriteLeavesMtime WriteThroughReadOpen WriteSaysItsLength WriteIsShort WriteIntoDirectories
    AppendAtTheBeginning AppendAtTheSizeOfTheOpen HoleNotZero TruncateIgnored TruncateKeepsTheRest
    AttributesSetInPart AttributesInCreateIgnored ModeMasked OwnerIgnored GroupIgnored TimesTruncated
    TimesOfTheHost ChangeCountStands LinksOfDirectoriesWrong SizeOfOthersOpen
    UnlinkLosesOpenData OrphansAreNotPurged UnlinkTakesDirectories RmdirTakesAll StaleNodeAnswered
    RemovedNamesListed RemovedNamesFound CookiesAreIndices ParentRemembered MissesRemembered
    ExclIgnored TruncIgnored CreateTruncates LongNamesCut LookupFoldsCase
    RenameLosesOpens RenameIntoItself RenameOverFilled KeepIgnored SwapReplaces RenameOfOneNode
    RenameMakesAnotherNode
    SymlinkNormalised SymlinkCut XattrOfTheRoot XattrNeverRemoved XattrCut
    StatfsOfZeros NothingIsUsed NodesAreNotUsed
    RoomNeverChanges NothingIsKept SyncKeepsNothingNamed CloseTwice HolesNotPunched AllocateGrows
}
use Mistake as M;

/// Returns a volume with one mistake.
pub(super) fn fresh(mistake: Mistake) -> Fresh {
    let below = crate::volumes::writer();
    let fresh = Fresh::new(Arc::new(Planted::new(below, mistake)) as Fs);
    match mistake {
        // Nothing reached the device.
        M::NothingIsKept => fresh.reattach(crate::volumes::writer),
        // Names reached it, and what files hold did not.
        M::SyncKeepsNothingNamed => fresh.reattach(|| {
            let fs = crate::volumes::writer();
            volary_test::reference::tree().fill(&fs).expect("a tree");
            fs
        }),
        _ => fresh,
    }
}

/// A layer that makes one mistake.
pub(super) struct Planted {
    below: Fs,
    mistake: Mistake,
    seen: Mutex<Seen>,
}

/// What a driver with a mistake remembers.
#[derive(Default)]
struct Seen {
    opens: HashMap<OpenId, NodeId>,
    sizes: HashMap<OpenId, u64>,
    frozen: HashMap<NodeId, Time>,
    gone: HashMap<NodeId, Attr>,
    removed: Vec<(NodeId, Vec<u8>, Entry)>,
    parents: HashMap<NodeId, Entry>,
    misses: HashSet<(NodeId, Vec<u8>)>,
    stat: Option<StatFs>,
}

impl Planted {
    fn new(below: Fs, mistake: Mistake) -> Self {
        Self {
            below,
            mistake,
            seen: Mutex::default(),
        }
    }

    fn is(&self, mistake: Mistake) -> bool {
        self.mistake == mistake
    }

    fn wrong(&self, mut attr: Attr) -> Attr {
        let frozen = self.seen.lock().unwrap().frozen.get(&attr.node).copied();
        match self.mistake {
            M::LinkWithoutCtime => attr.ctime = frozen.unwrap_or(attr.ctime),
            M::WriteLeavesMtime => attr.mtime = frozen.unwrap_or(attr.mtime),
            M::LinkCountsNothing if attr.kind == FileKind::File => attr.nlink = attr.nlink.min(1),
            M::LinksOfDirectoriesWrong if attr.kind == FileKind::Dir => attr.nlink = 7,
            M::ModeMasked => attr.mode &= 0o777,
            M::OwnerIgnored => attr.uid = 0,
            M::GroupIgnored => attr.gid = 0,
            M::TimesTruncated => attr.mtime = attr.mtime.round_down(60_000_000_000),
            M::TimesOfTheHost => attr.mtime = Time::from_secs(1_234_567_890),
            M::ChangeCountStands => attr.change = 1,
            _ => {}
        }
        attr
    }

    fn entry(&self, entry: Result<Entry>) -> Result<Entry> {
        let Entry { node, attr } = entry?;
        let attr = self.wrong(attr);
        Ok(Entry { node, attr })
    }

    fn attr_of(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Option<Entry> {
        self.below.lookup(cx, dir, name).ok()
    }

    fn names(&self, cx: &Ctx<'_>, dir: NodeId) -> Vec<Vec<u8>> {
        let mut all = DirBuf::new(10_000, 1 << 20, false);
        let Ok(open) = self.below.open(cx, dir, Mode::Read) else {
            return Vec::new();
        };
        let _ = self.below.readdir(cx, open, Cookie::START, &mut all);
        let _ = self.below.close(cx, open);
        all.iter().map(|entry| entry.name.to_vec()).collect()
    }

    /// Writes to a node.
    fn put(&self, cx: &Ctx<'_>, node: NodeId, offset: u64, data: &[u8]) -> Result<()> {
        let open = self.below.open(cx, node, Mode::Write)?;
        self.below.write(cx, open, Some(offset), data)?;
        self.below.close(cx, open)
    }

    /// Notes what is removed, and does to it what a driver with a mistake does.
    fn removing(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let Some(entry) = self.attr_of(cx, dir, name) else {
            return Ok(());
        };
        let is_open = self
            .seen
            .lock()
            .unwrap()
            .opens
            .values()
            .any(|&n| n == entry.node);
        if self.is(M::UnlinkLosesOpenData) && entry.attr.kind == FileKind::File {
            self.below.setattr(cx, entry.node, &SetAttr::size(0))?;
        }
        if self.is(M::OrphansAreNotPurged) && is_open {
            self.below.open(cx, entry.node, Mode::Read)?;
        }
        let mut seen = self.seen.lock().unwrap();
        seen.gone.insert(entry.node, entry.attr);
        seen.removed.push((dir, name.as_bytes().to_vec(), entry));
        Ok(())
    }

    fn rmdir_all(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let node = self.below.lookup(cx, dir, name)?.node;
        for below in self.names(cx, node) {
            let below = Name::new(&below)?;
            self.below
                .unlink(cx, node, below)
                .or_else(|_| self.below.rmdir(cx, node, below))?;
        }
        self.below.rmdir(cx, dir, name)
    }

    fn opened(&self, cx: &Ctx<'_>, node: NodeId, open: OpenId) {
        let size = self.below.getattr(cx, node).map_or(0, |attr| attr.size);
        let mut seen = self.seen.lock().unwrap();
        seen.opens.insert(open, node);
        seen.sizes.insert(open, size);
    }

    fn cut<'a>(&self, name: Name<'a>) -> Name<'a> {
        let (bytes, max) = (name.as_bytes(), usize::from(self.below.caps().name_max));
        match self.mistake {
            M::LongNamesCut => Name::new(&bytes[..bytes.len().min(max)]).unwrap(),
            _ => name,
        }
    }

    fn usual(&self, set: &SetAttr) -> SetAttr {
        match self.mistake {
            M::AttributesInCreateIgnored => SetAttr::default(),
            _ => *set,
        }
    }
}

impl Layer for Planted {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn statfs(&self, cx: &Ctx<'_>) -> Result<StatFs> {
        let mut stat = self.below.statfs(cx)?;
        match self.mistake {
            M::RoomNeverChanges => stat = *self.seen.lock().unwrap().stat.get_or_insert(stat),
            M::StatfsOfZeros => stat = StatFs::default(),
            M::NothingIsUsed => (stat.free, stat.available) = (stat.size, stat.size),
            M::NodesAreNotUsed => stat.nodes_free = stat.nodes,
            _ => {}
        }
        Ok(stat)
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let name = self.cut(name);
        let key = (dir, name.as_bytes().to_vec());
        if self.is(M::MissesRemembered) && self.seen.lock().unwrap().misses.contains(&key) {
            return Err(Kind::NotFound.into());
        }
        let found = self.below.lookup(cx, dir, name);
        if found.is_err() {
            self.seen.lock().unwrap().misses.insert(key.clone());
        }
        if found.is_err() && self.is(M::RemovedNamesFound) {
            let seen = self.seen.lock().unwrap();
            let removed = seen.removed.iter().find(|r| (r.0, &r.1) == (dir, &key.1));
            return removed.map(|r| r.2).ok_or(Kind::NotFound.into());
        }
        if found.is_err() && self.is(M::LookupFoldsCase) {
            let names = self.names(cx, dir);
            let same = names
                .iter()
                .find(|other| other.eq_ignore_ascii_case(&key.1));
            let same = same.ok_or(Kind::NotFound)?;
            return self.below.lookup(cx, dir, Name::new(same)?);
        }
        self.entry(found)
    }

    fn parent(&self, cx: &Ctx<'_>, dir: NodeId) -> Result<Entry> {
        let entry = self.entry(self.below.parent(cx, dir))?;
        if !self.is(M::ParentRemembered) {
            return Ok(entry);
        }
        Ok(*self
            .seen
            .lock()
            .unwrap()
            .parents
            .entry(dir)
            .or_insert(entry))
    }

    fn readdir(&self, cx: &Ctx<'_>, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        if self.is(M::CookiesAreIndices) {
            let mut all = DirBuf::new(100_000, 1 << 24, true);
            self.below.readdir(cx, dir, Cookie::START, &mut all)?;
            for (index, e) in all.iter().enumerate().skip(from.0 as usize) {
                if !out.push(Cookie(index as u64 + 1), e.node, e.kind, e.name, e.attr) {
                    return Ok(false);
                }
            }
            return Ok(true);
        }
        let mut done = self.below.readdir(cx, dir, from, out)?;
        if self.is(M::RemovedNamesListed) && done {
            let seen = self.seen.lock().unwrap();
            let node = seen.opens.get(&dir).copied();
            for (parent, name, entry) in &seen.removed {
                if Some(*parent) == node {
                    done &= out.push(
                        Cookie(u64::MAX - 1),
                        entry.node,
                        entry.attr.kind,
                        name,
                        None,
                    );
                }
            }
        }
        Ok(done)
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let how = match (self.mistake, how) {
            (M::ExclIgnored, Create::New) | (M::TruncIgnored, Create::Truncate) => Create::Open,
            (M::CreateTruncates, Create::Open) => Create::Truncate,
            (_, how) => how,
        };
        let (name, set) = (self.cut(name), self.usual(set));
        let (entry, open) = self.below.create(cx, dir, name, how, &set)?;
        self.opened(cx, entry.node, open);
        Ok((self.entry(Ok(entry))?, open))
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        self.entry(self.below.mkdir(cx, dir, self.cut(name), &self.usual(set)))
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let text = String::from_utf8_lossy(target)
            .replace("./", "")
            .replace("//", "/");
        let target = match self.mistake {
            M::SymlinkNormalised => text.trim_end_matches('/').as_bytes(),
            M::SymlinkCut => &target[..target.len().min(59)],
            _ => target,
        };
        self.entry(self.below.symlink(cx, dir, name, target, set))
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let before = self.below.getattr(cx, node)?;
        if self.is(M::LinkReplaces) {
            let _ = self.below.unlink(cx, dir, name);
        }
        let entry = self.below.link(cx, node, dir, name);
        if self.is(M::LinkWithoutCtime) && entry.is_ok() {
            self.seen.lock().unwrap().frozen.insert(node, before.ctime);
        }
        self.entry(entry)
    }

    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.removing(cx, dir, name)?;
        match self.below.unlink(cx, dir, name) {
            Err(e) if e == Kind::IsDir && self.is(M::UnlinkTakesDirectories) => {
                self.below.rmdir(cx, dir, name)
            }
            done => done,
        }
    }

    fn rmdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        match self.below.rmdir(cx, dir, name) {
            Err(e) if e == Kind::NotEmpty && self.is(M::RmdirTakesAll) => {
                self.rmdir_all(cx, dir, name)
            }
            done => done,
        }
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let flags = match (self.mistake, flags) {
            (M::KeepIgnored, RenameFlags::KEEP) | (M::SwapReplaces, RenameFlags::SWAP) => {
                RenameFlags::REPLACE
            }
            (_, flags) => flags,
        };
        let (old, replaced) = (self.attr_of(cx, from, name), self.attr_of(cx, to, new));
        let same = old.zip(replaced).is_some_and(|(a, b)| a.node == b.node);
        if self.is(M::RenameOfOneNode) && same && (from, name) != (to, new) {
            return self.below.unlink(cx, from, name);
        }
        if let (M::RenameMakesAnotherNode, Some(old), None) = (self.mistake, old, replaced)
            && old.attr.kind == FileKind::File
        {
            let (entry, open) = self
                .below
                .create(cx, to, new, Create::New, &SetAttr::default())?;
            let reading = self.below.open(cx, old.node, Mode::Read)?;
            let mut bytes = vec![0; old.attr.size as usize];
            self.below.read(cx, reading, 0, &mut bytes)?;
            self.below.close(cx, reading)?;
            self.below.close(cx, open)?;
            self.put(cx, entry.node, 0, &bytes)?;
            return self.below.unlink(cx, from, name);
        }
        let done = self.below.rename(cx, from, name, to, new, flags);
        match (self.mistake, &done) {
            (M::RenameLosesOpens, Ok(())) => {
                let opens = self.seen.lock().unwrap().opens.clone();
                for (open, node) in opens {
                    if replaced.is_some_and(|replaced| replaced.node == node) {
                        let _ = self.below.close(cx, open);
                    }
                }
            }
            (M::RenameIntoItself, Err(e)) if *e == Kind::Invalid => return Ok(()),
            (M::RenameOverFilled, Err(e)) if *e == Kind::NotEmpty => {
                self.rmdir_all(cx, to, new)?;
                return self.below.rename(cx, from, name, to, new, flags);
            }
            _ => {}
        }
        done
    }

    fn getattr(&self, cx: &Ctx<'_>, node: NodeId) -> Result<Attr> {
        match self.below.getattr(cx, node) {
            Err(e) if self.is(M::StaleNodeAnswered) => {
                self.seen.lock().unwrap().gone.get(&node).copied().ok_or(e)
            }
            attr => attr.map(|attr| self.wrong(attr)),
        }
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<Attr> {
        let before = self.below.getattr(cx, node)?;
        let mut set = *set;
        match (self.mistake, set.size) {
            (M::TruncateIgnored, Some(size)) if size < before.size => set.size = None,
            (M::HoleNotZero, Some(size)) if size > before.size && size < 1 << 20 => {
                let junk = vec![0xaa; (size - before.size) as usize];
                self.put(cx, node, before.size, &junk)?;
            }
            (M::TruncateKeepsTheRest, Some(size)) if size < before.size => {
                set.size = Some(size.next_multiple_of(512).min(before.size));
            }
            _ => {}
        }
        if let (M::TimesTruncated, Some(SetTime::To(time))) = (self.mistake, set.mtime) {
            set.mtime = Some(SetTime::To(time.round_down(60_000_000_000)));
        }
        let done = self.below.setattr(cx, node, &set);
        if self.is(M::AttributesSetInPart) && done.is_err() {
            let _ = self.below.setattr(cx, node, &SetAttr { size: None, ..set });
        }
        done.map(|attr| self.wrong(attr))
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let mut value = self.below.getxattr(cx, node, name)?;
        if self.is(M::XattrCut) {
            value.truncate(20);
        }
        Ok(value)
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let root = self.below.root();
        let node = if self.is(M::XattrOfTheRoot) {
            root
        } else {
            node
        };
        self.below.setxattr(cx, node, name, value)
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        match self.mistake {
            M::XattrNeverRemoved => self.below.getxattr(cx, node, name).map(drop),
            _ => self.below.removexattr(cx, node, name),
        }
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let is_dir = self.below.getattr(cx, node)?.kind == FileKind::Dir;
        let mode = match self.mistake {
            M::WriteThroughReadOpen if !is_dir => Mode::ReadWrite,
            M::WriteIntoDirectories if is_dir => Mode::Read,
            _ => mode,
        };
        let open = self.below.open(cx, node, mode)?;
        self.opened(cx, node, open);
        Ok(open)
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let size = self.seen.lock().unwrap().sizes.get(&open).copied();
        let len = buf.len();
        match size {
            // What others have written since is not seen.
            Some(size) if self.is(M::SizeOfOthersOpen) => {
                let room = size.saturating_sub(offset).min(len as u64) as usize;
                self.below.read(cx, open, offset, &mut buf[..room])
            }
            _ => self.below.read(cx, open, offset, buf),
        }
    }

    fn write(&self, cx: &Ctx<'_>, open: OpenId, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let (node, size) = {
            let seen = self.seen.lock().unwrap();
            (
                seen.opens.get(&open).copied(),
                seen.sizes.get(&open).copied(),
            )
        };
        let before = node.and_then(|node| self.below.getattr(cx, node).ok());
        if let (M::WriteLeavesMtime, Some(attr)) = (self.mistake, before) {
            let mut seen = self.seen.lock().unwrap();
            seen.frozen.entry(attr.node).or_insert(attr.mtime);
        }
        let end = match (self.mistake, offset) {
            (M::AppendAtTheBeginning, None) => self.below.write(cx, open, Some(0), data)?,
            (M::AppendAtTheSizeOfTheOpen, None) => self.below.write(cx, open, size, data)?,
            (M::WriteIsShort, Some(_)) if data.len() > 4096 => {
                let end = self.below.write(cx, open, offset, &data[..4096])?;
                end + (data.len() - 4096) as u64
            }
            _ => self.below.write(cx, open, offset, data)?,
        };
        let mut seen = self.seen.lock().unwrap();
        let known = seen.sizes.entry(open).or_default();
        if !self.is(M::AppendAtTheSizeOfTheOpen) {
            *known = end.max(*known);
        }
        Ok(if self.is(M::WriteSaysItsLength) {
            data.len() as u64
        } else {
            end
        })
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        if self.is(M::HolesNotPunched) && hole {
            return Ok(());
        }
        self.below.allocate(cx, open, offset, len, hole)?;
        let node = self.seen.lock().unwrap().opens.get(&open).copied();
        if let (M::AllocateGrows, false, Some(node)) = (self.mistake, hole, node) {
            let size = self.below.getattr(cx, node)?.size.max(offset + len);
            self.below.setattr(cx, node, &SetAttr::size(size))?;
        }
        Ok(())
    }

    fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        self.seen.lock().unwrap().opens.remove(&open);
        match self.below.close(cx, open) {
            Err(_) if self.is(M::CloseTwice) => Ok(()),
            done => done,
        }
    }
}
