//! Phase 1: the names below some places, their attributes and fragments.

use crate::delivery::{File, Part as Told, Way, Why};
use crate::list::{List, Listed, Mapped, mapped};
use crate::options::Method;
use crate::run::Run;
use crate::source::Source;
use std::collections::{HashSet, VecDeque};
use std::ops::ControlFlow;
use volary_core::{
    Attr, Caps, Cookie, DirBuf, Error, Extent, FileKind, Kind, Mode, NodeId, OpenId, Place, Result,
};
use volary_session::{Follow, PATH_MAX};

/// Entries that are read at once, and bytes of their names.
const BATCH: (usize, usize) = (128, 8 << 10);

/// A walk, which goes on where it was left when a list was full.
pub(crate) struct Walk<'a> {
    run: &'a Run<'a>,
    number: usize,
    source: &'a Source,
    places: std::slice::Iter<'a, Vec<u8>>,
    /// Directories to enter, the next one last.
    todo: Vec<(Box<[u8]>, NodeId)>,
    /// Those that were entered: a damaged volume can have one in two places, or in itself.
    seen: HashSet<NodeId>,
    reading: Option<Dir>,
    /// What there was no room for.
    held: Option<Box<(Listed, Mapped)>>,
}

/// The directory that is being read.
struct Dir {
    path: Box<[u8]>,
    open: OpenId,
    /// Where it goes on; `None` at its end.
    from: Option<Cookie>,
    /// Entries that were read and not looked at.
    batch: VecDeque<(Vec<u8>, NodeId, Option<Attr>)>,
    /// Directories in it.
    below: Vec<(Box<[u8]>, NodeId)>,
}

impl<'a> Walk<'a> {
    pub(crate) fn new(run: &'a Run<'a>, number: usize, source: &'a Source) -> Self {
        Self {
            run,
            number,
            source,
            places: source.places.iter(),
            todo: Vec::new(),
            seen: HashSet::new(),
            reading: None,
            held: None,
        }
    }

    /// Goes on until the list is full, or there is nothing more: the list is empty then.
    pub(crate) fn fill(&mut self, list: &mut List) -> ControlFlow<()> {
        if let Some(held) = self.held.take() {
            let (file, mapped) = *held;
            // An empty list takes any file.
            self.held = list.push(file, mapped).err();
        }
        while self.held.is_none() {
            self.run.check()?;
            if self.reading.is_some() {
                self.next_entry(list)?;
            } else if let Some((path, node)) = self.todo.pop() {
                self.enter(path, node)?;
            } else if let Some(place) = self.places.next() {
                self.place(place, list)?;
            } else {
                break;
            }
        }
        ControlFlow::Continue(())
    }

    fn place(&mut self, place: &[u8], list: &mut List) -> ControlFlow<()> {
        match self.source.session.walk(place, Follow::No) {
            Ok(entry) => self.node(place.to_vec(), entry.attr, list),
            Err(e) => self.failed(place, None, &e),
        }
    }

    fn enter(&mut self, path: Box<[u8]>, node: NodeId) -> ControlFlow<()> {
        if !self.seen.insert(node) {
            let words = "this directory is in another place too";
            return self.failed(&path, None, &Error::note(Kind::Corrupt, words));
        }
        match self.source.session.open(node, Mode::Read) {
            Ok(open) => {
                self.reading = Some(Dir {
                    path,
                    open,
                    from: Some(Cookie::START),
                    batch: VecDeque::new(),
                    below: Vec::new(),
                });
                ControlFlow::Continue(())
            }
            Err(e) => self.failed(&path, None, &e),
        }
    }

    /// Looks at the next entry of the directory, or ends it.
    fn next_entry(&mut self, list: &mut List) -> ControlFlow<()> {
        let Some(dir) = &mut self.reading else {
            return ControlFlow::Continue(());
        };
        if let Some((name, node, attr)) = dir.batch.pop_front() {
            let path = join(&dir.path, &name);
            if path.len() > PATH_MAX {
                return self.failed(&path, None, &Kind::NameTooLong.into());
            }
            let attr = attr.map_or_else(|| self.source.session.getattr(node), Ok);
            return match attr {
                Ok(attr) => self.node(path, attr, list),
                Err(e) => self.failed(&path, None, &e),
            };
        }
        let read = match dir.from {
            Some(from) => dir.read(&self.source.session, from),
            None => {
                self.leave();
                return ControlFlow::Continue(());
            }
        };
        match read {
            Ok(()) => ControlFlow::Continue(()),
            Err(e) => {
                let path = dir.path.clone();
                self.failed(&path, None, &e)
            }
        }
    }

    /// Ends the directory; those in it are next, in the order of their numbers.
    fn leave(&mut self) {
        if let Some(mut dir) = self.reading.take() {
            // It was opened for reading: nothing is lost.
            let _ = self.source.session.close(dir.open);
            dir.below
                .sort_by_key(|(_, node)| std::cmp::Reverse(node.ino));
            self.todo.append(&mut dir.below);
        }
    }

    fn node(&mut self, path: Vec<u8>, attr: Attr, list: &mut List) -> ControlFlow<()> {
        let view = File {
            source: self.number,
            path: &path,
            attr: Some(&attr),
            way: Way::Direct,
            data: None,
        };
        if !self.run.consumer.wants(&view) {
            return ControlFlow::Continue(());
        }
        if attr.kind == FileKind::File {
            let file = Listed::new(path, attr);
            match self.map(&attr) {
                Ok(mapped) => self.held = list.push(file, mapped).err(),
                Err(_) => self.held = list.push(file, Mapped::Ordinary(Why::Unmapped)).err(),
            }
            return ControlFlow::Continue(());
        }
        self.run.tally.add(|sum| sum.nodes += 1);
        self.tell(&view, Told::Node)?;
        if attr.kind == FileKind::Dir {
            let below = self.reading.as_mut().map(|dir| &mut dir.below);
            let to = below.unwrap_or(&mut self.todo);
            to.push((path.into(), attr.node));
        }
        ControlFlow::Continue(())
    }

    /// How a file is read, and with what.
    fn map(&self, attr: &Attr) -> Result<Mapped> {
        if self.run.options.method == Method::Vanilla {
            return Ok(Mapped::Ordinary(Why::Asked));
        }
        let session = &self.source.session;
        let Some(device) = self
            .source
            .device
            .as_ref()
            .filter(|_| session.caps().has(Caps::EXTENTS))
        else {
            return Ok(Mapped::Ordinary(Why::NoPlaces));
        };
        if attr.size == 0 {
            return Ok(Mapped::Empty);
        }
        let is_large = attr.size > self.run.shares.whole_max;
        let len = if is_large { 1 } else { attr.size };
        let open = session.open_seen(attr, None, Mode::Read)?;
        let mut extents: Vec<Extent> = Vec::new();
        let asked = session.extents(open, 0, len, &mut extents);
        session.close(open)?;
        asked?;
        if !is_large {
            return Ok(mapped(&extents, attr.size, device.geometry().size));
        }
        Ok(Mapped::Large(match extents.first().map(|e| e.place) {
            Some(Place::Device(at)) => at,
            _ => 0,
        }))
    }

    fn failed(&mut self, path: &[u8], attr: Option<&Attr>, e: &Error) -> ControlFlow<()> {
        self.run.tally.add(|sum| sum.failed += 1);
        let view = File {
            source: self.number,
            path,
            attr,
            way: Way::Direct,
            data: None,
        };
        self.tell(&view, Told::Failed(e))
    }

    fn tell(&self, view: &File<'_>, told: Told<'_>) -> ControlFlow<()> {
        let taken = self.run.consumer.take(view, told);
        if taken.is_break() {
            self.run.end();
        }
        taken
    }
}

impl Dir {
    /// Reads some entries. After an error there are no more.
    fn read(&mut self, session: &volary_session::Session, from: Cookie) -> Result<()> {
        let mut buf = DirBuf::new(BATCH.0, BATCH.1, true);
        let read = session.readdir(self.open, from, &mut buf);
        let entries = buf.iter().map(|e| (e.name.to_vec(), e.node, e.attr));
        self.batch.extend(entries);
        self.from = match (&read, buf.last_cookie()) {
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

fn join(dir: &[u8], name: &[u8]) -> Vec<u8> {
    let mut path = Vec::with_capacity(dir.len() + 1 + name.len());
    path.extend_from_slice(dir);
    if dir.last() != Some(&b'/') {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}
