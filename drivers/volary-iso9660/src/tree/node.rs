//! Nodes, made from directory records and Rock Ridge's fields.

use crate::disk::date;
use crate::disk::names;
use crate::disk::record::Record;
use crate::disk::volume::{Stretch, Tree};
use crate::extensions::rockridge::Rock;
use crate::extensions::susp::Areas;
use crate::tree::dir::{Found, Reader};
use crate::tree::path;
use volary_core::{Attr, Cancel, Error, FileKind, Kind, NodeId, Result};

/// The owner and the modes of nodes for which none are stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Owner {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) file_mode: u32,
    pub(crate) dir_mode: u32,
}

/// A node.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) attr: Attr,
    /// A file's sections, or the one range of a directory.
    pub(crate) sections: Vec<Stretch>,
    /// The target of a symlink.
    pub(crate) target: Option<Vec<u8>>,
    /// Whether its data have a layout that the driver cannot read.
    pub(crate) is_odd: bool,
}

/// An entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    pub(crate) id: NodeId,
    pub(crate) kind: FileKind,
    /// The node. A directory has none here, because its own record is elsewhere.
    pub(crate) node: Option<Node>,
    /// What identifies the file among its other names, if it can have some.
    pub(crate) link: Option<LinkKey>,
}

/// What the names of one file share: serial number, place and length of the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct LinkKey {
    serial: Option<u32>,
    start: u64,
    size: u64,
}

/// Makes nodes.
#[derive(Clone, Copy)]
pub(crate) struct Nodes<'a> {
    pub(crate) reader: Reader<'a>,
    pub(crate) owner: Owner,
    /// Set when nobody waits for the result any more.
    pub(crate) cancel: Option<&'a Cancel>,
}

/// Returns the id of the node whose record is at `at`.
pub(crate) fn id_at(at: u64) -> Result<NodeId> {
    NodeId::new(at, 0).ok_or_else(|| Kind::Stale.into())
}

impl Nodes<'_> {
    /// Checks whether a long loop should end.
    ///
    /// # Errors
    /// `Interrupted`.
    pub(crate) fn check_cancel(&self) -> Result<()> {
        match self.cancel.is_some_and(Cancel::is_set) {
            true => Err(Kind::Interrupted.into()),
            false => Ok(()),
        }
    }

    /// Returns the entry for a record, with this record's id. Returns `None` if the entry belongs
    /// elsewhere (`RE`). Continuation areas that it reads count against `areas`.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn entry(&self, found: &Found, areas: &mut Areas) -> Result<Option<Entry>> {
        let record = &found.record;
        let rock = self.rock(record, areas)?;
        if rock.relocated {
            return Ok(None);
        }
        let name = self.name(record, &rock);
        let moved = rock
            .child
            .map(|block| u64::from(block) * self.reader.volume.block);
        let dir = moved.or(record.is_dir().then(|| self.reader.volume.start(record)));
        if let Some(start) = dir {
            return Ok(Some(Entry {
                name,
                id: id_at(start)?,
                kind: FileKind::Dir,
                node: None,
                link: None,
            }));
        }
        let link = link_key(found, &rock);
        let node = self.leaf(record.at, found, rock)?;
        Ok(Some(Entry {
            name,
            id: node.attr.node,
            kind: node.attr.kind,
            node: Some(node),
            link,
        }))
    }

    /// Returns the node for an id from a client, which may be invalid.
    ///
    /// # Errors
    /// `Stale` if no node's record begins there; `Corrupt`; `Io`.
    pub(crate) fn load(&self, id: NodeId) -> Result<Node> {
        let at = id.ino.get();
        let (block, size) = (self.reader.volume.block, self.reader.cache.size());
        let stale = || Error::from(Kind::Stale);
        if id.generation != 0 || at >= size {
            return Err(stale());
        }
        // All records that follow it, as the directory's length is not known.
        let rest = Stretch {
            start: at - at % block,
            len: size - (at - at % block),
        };
        let mut offset = 0;
        let record = loop {
            let next = self.reader.record(rest, &mut offset);
            let record = next.map_err(damage_is(Kind::Stale))?.ok_or_else(stale)?;
            match record.at {
                here if here == at => break record,
                here if here > at => return Err(stale()),
                _ => {}
            }
        };
        if record.is_self() && self.reader.volume.start(&record) == at {
            return self.dir(at);
        }
        if record.is_self() || record.is_parent() || record.is_dir() {
            return Err(stale());
        }
        let found = self.reader.with_sections(rest, record, &mut offset)?;
        let rock = self.rock_alone(&found.record)?;
        if rock.relocated || rock.child.is_some() {
            return Err(stale());
        }
        self.leaf(at, &found, rock)
    }

    /// Returns the directory that begins at `start`.
    ///
    /// # Errors
    /// `Corrupt` if no directory begins there; `Io`.
    pub(crate) fn dir(&self, start: u64) -> Result<Node> {
        let bad = |found: &str| {
            Error::corrupt("directory", start, found, "a directory's record of itself")
        };
        let block = Stretch {
            start,
            len: self.reader.volume.block,
        };
        if !start.is_multiple_of(self.reader.volume.block) {
            return Err(bad("not at a block"));
        }
        let block = self.reader.check("directory", start, block)?;
        let record = self.reader.record(block, &mut 0)?;
        let record = record
            .filter(|r| r.is_self() && r.is_dir() && r.at == start)
            .filter(|r| self.reader.volume.start(r) == start)
            .ok_or_else(|| bad("something else"))?;
        let len = record.size();
        let stretch = self
            .reader
            .check("directory", start, Stretch { start, len })?;
        let rock = self.rock_alone(&record)?;
        let mut attr = self.attr(start, &record, &rock, FileKind::Dir)?;
        attr.size = len;
        attr.allocated = self.rounded(len);
        Ok(Node {
            attr,
            sections: vec![stretch],
            target: None,
            is_odd: record.is_interleaved(),
        })
    }

    /// Returns where the parent of a directory begins.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn parent(&self, dir: Stretch) -> Result<u64> {
        let missing = || {
            let expected = "a record of the directory that holds this one";
            Error::corrupt("directory", dir.start, "none", expected)
        };
        let mut at = 0;
        self.reader.record(dir, &mut at)?.ok_or_else(missing)?;
        let next = self.reader.record(dir, &mut at)?;
        let record = next.filter(Record::is_parent).ok_or_else(missing)?;
        let moved = self.rock_alone(&record)?.parent;
        let moved = moved.map(|block| u64::from(block) * self.reader.volume.block);
        match moved.unwrap_or_else(|| self.reader.volume.start(&record)) {
            // xorriso writes this in Joliet's tree. The path table has the right parent.
            start if start == dir.start => path::parent(&self.reader, start),
            start => Ok(start),
        }
    }

    /// Returns Rock Ridge's fields for a single record, with continuation areas up to the device's
    /// size.
    fn rock_alone(&self, record: &Record) -> Result<Rock> {
        self.rock(record, &mut Areas::of_all(self.reader.cache))
    }

    /// Returns Rock Ridge's fields for a record, or the default on a volume without them.
    fn rock(&self, record: &Record, areas: &mut Areas) -> Result<Rock> {
        let Tree::RockRidge { skip } = self.reader.volume.tree else {
            return Ok(Rock::default());
        };
        // The record that says how many bytes to skip is itself read from its start.
        let is_root = record.at == self.reader.volume.root;
        let skip = if is_root { 0 } else { skip };
        let Reader { cache, volume } = self.reader;
        Rock::read(cache, volume, record, skip, areas)
    }

    fn name(&self, record: &Record, rock: &Rock) -> Vec<u8> {
        match (self.reader.volume.tree, &rock.name) {
            (_, Some(name)) => name.clone(),
            (Tree::Joliet, None) => names::joliet(&record.name),
            (Tree::Iso, None) => names::plain(&record.name, true),
            (Tree::Plain | Tree::RockRidge { .. }, None) => names::plain(&record.name, false),
        }
    }

    fn leaf(&self, at: u64, found: &Found, mut rock: Rock) -> Result<Node> {
        let record = &found.record;
        let mode = rock.posix.map(|posix| posix.mode);
        let kind = mode.and_then(FileKind::from_mode);
        let kind = kind.filter(|&kind| kind != FileKind::Dir);
        let kind = kind.unwrap_or(FileKind::File);
        let mut attr = self.attr(at, record, &rock, kind)?;
        let mut node = Node {
            attr,
            sections: Vec::new(),
            target: None,
            is_odd: found.is_odd || rock.sparse,
        };
        match kind {
            FileKind::File => {
                node.sections.clone_from(&found.sections);
                let lens = found.sections.iter().map(|section| section.len);
                attr.size = lens.clone().fold(0, u64::saturating_add);
                attr.allocated = lens.map(|len| self.rounded(len)).sum();
            }
            FileKind::Symlink => {
                let target = rock.target.take().unwrap_or_default();
                attr.size = target.len() as u64;
                node.target = Some(target);
            }
            FileKind::CharDevice | FileKind::BlockDevice => {
                attr.rdev = rock.device.map_or(0, |(high, low)| device(high, low));
            }
            _ => {}
        }
        node.attr = attr;
        Ok(node)
    }

    fn attr(&self, at: u64, record: &Record, rock: &Rock, kind: FileKind) -> Result<Attr> {
        let mode = match kind {
            FileKind::Dir => self.owner.dir_mode,
            _ => self.owner.file_mode,
        };
        let (posix, times) = (rock.posix, rock.times);
        let recorded = date::short(record.raw.recording_date);
        let mtime = times.modify.unwrap_or(recorded);
        Ok(Attr {
            node: id_at(at)?,
            kind,
            mode: posix.map_or(mode, |p| p.mode & 0o7777),
            nlink: posix.map_or(1, |p| p.links.max(1)),
            uid: posix.map_or(self.owner.uid, |p| p.uid),
            gid: posix.map_or(self.owner.gid, |p| p.gid),
            rdev: 0,
            size: 0,
            allocated: 0,
            io_size: 1 << 16,
            atime: times.access.unwrap_or(mtime),
            mtime,
            ctime: times.attributes.unwrap_or(mtime),
            btime: times.creation,
            change: 1,
            dos: None,
        })
    }

    fn rounded(&self, len: u64) -> u64 {
        len.div_ceil(self.reader.volume.block) * self.reader.volume.block
    }
}

/// Returns what identifies a file that has several names: its data, or without data its serial
/// number.
fn link_key(found: &Found, rock: &Rock) -> Option<LinkKey> {
    let posix = rock.posix.filter(|posix| posix.links > 1)?;
    let serial = posix.serial.filter(|&serial| serial != 0);
    let size = found.record.size();
    if size == 0 && serial.is_none() {
        return None;
    }
    Some(LinkKey {
        serial,
        start: found.sections.first().map_or(0, |section| section.start),
        size,
    })
}

/// Returns a device number. The major and the minor number are in two halves, or, as some writers
/// do, together in the low half.
fn device(high: u32, low: u32) -> u64 {
    let (major, minor) = match high {
        0 if low > 0xff => (low >> 8, low & 0xff),
        _ => (high, low),
    };
    u64::from(major) << 32 | u64::from(minor)
}

/// Replaces `Corrupt` by another error.
fn damage_is(kind: Kind) -> impl Fn(Error) -> Error {
    move |e| if e == Kind::Corrupt { kind.into() } else { e }
}
