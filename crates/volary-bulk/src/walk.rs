//! Phase 1: the names below some places, their attributes and fragments.

use crate::interface::delivery::{File, Way, Why};
use crate::interface::options::Method;
use crate::interface::source::Source;
use crate::listing::list::{List, Mapped, mapped};
use crate::listing::packed::Listed;
use crate::state::part::Run;
use std::collections::HashSet;
use std::ops::ControlFlow;
use volary_core::{
    Attr, BlockDevice, Caps, Cookie, DirBuf, DirEntry, Error, Extent, FileKind, Kind, Mode, NodeId,
    OpenId, Place, Result,
};
use volary_session::{Ahead, Follow, PATH_MAX, Session};

/// The most entries, and bytes of their names, that are read at once.
const BATCH: (usize, usize) = (512, 32 << 10);

/// A walk over the tree. If a list is full, it resumes with the next one.
pub(crate) struct Walk<'a> {
    run: &'a Run<'a>,
    number: usize,
    source: &'a Source,
    /// The device to read files from, if the volume reports extents.
    device: Option<&'a dyn BlockDevice>,
    places: std::slice::Iter<'a, Vec<u8>>,
    /// Directories to enter, the next one last.
    todo: Vec<(Box<[u8]>, NodeId)>,
    /// A few of these directories, which the driver has read ahead; the next one last.
    group: Vec<(Box<[u8]>, NodeId)>,
    /// Reads directories ahead, if the method has metadata read in order.
    ahead: Option<Ahead>,
    /// Directories that were entered. On a damaged volume, a directory can be in two places, or in
    /// itself.
    seen: HashSet<NodeId>,
    reading: Option<Dir>,
    /// Entries of the directory that were read, and how many of them were processed.
    batch: DirBuf,
    looked_at: usize,
    /// The path of the current entry.
    path: Vec<u8>,
    /// A file for which the list had no room.
    held: Option<Box<(Listed, Mapped)>>,
}

/// The directory that is being read.
struct Dir {
    node: NodeId,
    path: Box<[u8]>,
    open: OpenId,
    /// The cookie at which reading resumes; `None` at the end.
    from: Option<Cookie>,
    /// Subdirectories to enter later.
    below: Vec<(Box<[u8]>, NodeId)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(run: &'a Run<'a>, number: usize, source: &'a Source) -> Self {
        let is_vanilla = run.options.method == Method::Vanilla;
        let tells = source.session.caps().has(Caps::EXTENTS) && !is_vanilla;
        let device = source.device.as_deref().filter(|_| tells);
        let batch = DirBuf::new(BATCH.0, BATCH.1, true);
        Self {
            run,
            number,
            source,
            device,
            batch: match device {
                Some(_) => batch.with_extents(run.shares.whole_max),
                None => batch,
            },
            looked_at: 0,
            path: Vec::new(),
            places: source.places.iter(),
            todo: Vec::new(),
            group: Vec::new(),
            ahead: (!is_vanilla).then(|| Ahead::new(&source.session)),
            seen: HashSet::new(),
            reading: None,
            held: None,
        }
    }

    /// Walks on until the list is full or the walk ends. The list stays empty if nothing was left.
    pub(crate) fn fill(&mut self, list: &mut List) -> ControlFlow<()> {
        if let Some(held) = self.held.take() {
            let (file, mapped) = *held;
            // An empty list takes any file.
            self.push(&file.path, &file.attr, mapped, list);
        }
        while self.held.is_none() && !list.is_full() {
            self.run.check()?;
            if self.reading.is_some() {
                self.entries(list);
            } else if let Some((path, node)) = self.next_dir() {
                self.enter(path, node, list);
            } else if let Some(place) = self.places.next() {
                self.place(place, list);
            } else {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    /// Returns the next directory to enter.
    fn next_dir(&mut self) -> Option<(Box<[u8]>, NodeId)> {
        if self.group.is_empty()
            && let Some(ahead) = self.ahead.as_mut().filter(|ahead| ahead.helps())
        {
            let rest = self.todo.len().saturating_sub(Ahead::GROUP);
            self.group = self.todo.split_off(rest);
            let dirs: Vec<NodeId> = self.group.iter().map(|(_, node)| *node).collect();
            ahead.dirs(&dirs);
        }
        self.group.pop().or_else(|| self.todo.pop())
    }

    fn place(&mut self, place: &[u8], list: &mut List) {
        // Places may lie in one another: only below one place is a directory that comes again damage.
        self.seen.clear();
        match self.source.session.walk(place, Follow::No) {
            Ok(entry) => {
                self.path = place.to_vec();
                self.node(&entry.attr, None, list);
            }
            Err(e) => list.fail(place, e),
        }
    }

    fn enter(&mut self, path: Box<[u8]>, node: NodeId, list: &mut List) {
        if !self.seen.insert(node) {
            let words = "this directory is in another place too";
            return list.fail(&path, Error::note(Kind::Corrupt, words));
        }
        match self.source.session.open(node, Mode::Read) {
            Ok(open) => {
                self.batch.clear();
                self.looked_at = 0;
                self.reading = Some(Dir {
                    node,
                    path,
                    open,
                    from: Some(Cookie::START),
                    below: Vec::new(),
                });
            }
            Err(e) => list.fail(&path, e),
        }
    }

    /// Processes the entries that were read, until the list is full. Then reads more of the
    /// directory, or ends it.
    fn entries(&mut self, list: &mut List) {
        let batch = std::mem::take(&mut self.batch);
        let is_done = |this: &Self, list: &List| this.held.is_some() || list.is_full();
        while let Some(entry) = batch.get(self.looked_at).filter(|_| !is_done(self, list)) {
            self.looked_at += 1;
            self.entry(&entry, list);
        }
        let is_read = self.looked_at >= batch.len();
        self.batch = batch;
        if is_read && self.held.is_none() {
            self.read_on(list);
        }
    }

    fn entry(&mut self, entry: &DirEntry<'_>, list: &mut List) {
        let Some(dir) = &self.reading else { return };
        join(&dir.path, entry.name, &mut self.path);
        if self.path.len() > PATH_MAX {
            return list.fail(&self.path, Kind::NameTooLong.into());
        }
        match self.source.session.attr_listed(dir.node, entry) {
            Ok(attr) => self.node(&attr, entry.extents, list),
            Err(e) => list.fail(&self.path, e),
        }
    }

    fn read_on(&mut self, list: &mut List) {
        self.batch.clear();
        self.looked_at = 0;
        let Some(dir) = &mut self.reading else { return };
        let Some(from) = dir.from else {
            return self.leave();
        };
        if let Err(e) = dir.read(&self.source.session, from, &mut self.batch) {
            list.fail(&dir.path, e);
        }
    }

    /// Ends the directory. Its subdirectories come next, in the order of their numbers.
    fn leave(&mut self) {
        if let Some(mut dir) = self.reading.take() {
            // It was opened for reading: nothing is lost.
            let _ = self.source.session.close(dir.open);
            dir.below
                .sort_by_key(|(_, node)| std::cmp::Reverse(node.ino));
            self.todo.append(&mut dir.below);
        }
    }

    /// Processes the node at `self.path`.
    fn node(&mut self, attr: &Attr, extents: Option<&[Extent]>, list: &mut List) {
        let view = File {
            source: self.number,
            path: &self.path,
            attr: Some(attr),
            way: Way::Direct,
            data: None,
        };
        if !self.run.consumer.wants(&view) {
            return;
        }
        if attr.kind == FileKind::File {
            let mapped = self.map(attr, extents);
            let mapped = mapped.unwrap_or(Mapped::Ordinary(Why::Unmapped));
            let path = std::mem::take(&mut self.path);
            self.push(&path, attr, mapped, list);
            self.path = path;
            return;
        }
        list.tell(&self.path, attr);
        if attr.kind == FileKind::Dir {
            let below = self.reading.as_mut().map(|dir| &mut dir.below);
            let to = below.unwrap_or(&mut self.todo);
            to.push((self.path.as_slice().into(), attr.node));
        }
    }

    /// Adds a file to the list, or holds it until there is room.
    fn push(&mut self, path: &[u8], attr: &Attr, mapped: Mapped, list: &mut List) {
        let rejected = list.push(path, attr, mapped).err();
        self.held = rejected.map(|mapped| Box::new((Listed::new(path, *attr), mapped)));
    }

    /// Decides how a file is read.
    fn map(&self, attr: &Attr, extents: Option<&[Extent]>) -> Result<Mapped> {
        if self.run.options.method == Method::Vanilla {
            return Ok(Mapped::Ordinary(Why::Asked));
        }
        let Some(device) = self.device else {
            return Ok(Mapped::Ordinary(Why::NoPlaces));
        };
        if attr.size == 0 {
            return Ok(Mapped::Empty);
        }
        let session = &self.source.session;
        let size = device.geometry().size;
        if let Some(extents) = extents {
            session.check_read(attr)?;
            return Ok(mapped(extents, attr.size, size));
        }
        let is_large = attr.size > self.run.shares.whole_max;
        let len = if is_large { 1 } else { attr.size };
        let open = session.open_seen(attr, None, Mode::Read)?;
        let mut extents: Vec<Extent> = Vec::new();
        let asked = session.extents(open, 0, len, &mut extents);
        session.close(open)?;
        asked?;
        if !is_large {
            return Ok(mapped(&extents, attr.size, size));
        }
        Ok(Mapped::Large(match extents.first().map(|e| e.place) {
            Some(Place::Device(at)) => at,
            _ => 0,
        }))
    }
}

impl Dir {
    /// Reads some entries. After an error, the directory counts as ended.
    fn read(&mut self, session: &Session, from: Cookie, into: &mut DirBuf) -> Result<()> {
        let read = session.readdir(self.open, from, into);
        self.from = match (&read, into.last_cookie()) {
            (Ok(false), Some(next)) if next != from => Some(next),
            _ => None,
        };
        read.map(|_| ())
    }
}

impl Drop for Walk<'_> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Sets `path` to the path of `name` in `dir`.
fn join(dir: &[u8], name: &[u8], path: &mut Vec<u8>) {
    path.clear();
    path.extend_from_slice(dir);
    if dir.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
}
