//! `--tar`: an archive, in the form of POSIX with what GNU tar and libarchive add to it: holes
//! (`GNU.sparse` 1.0) and extended attributes (`SCHILY.xattr`).

mod header;

use self::header::{Entry, Kind};
use super::sink::{Sink, To, zeros};
use crate::exit::{Done, Exit, Fail};
use crate::out::Raw;
use crate::written;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Found;
use std::io::{BufWriter, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use volary::bulk::{File, Part, Range, Source};
use volary::copy::is_virtual;
use volary::{Attr, FileKind, NodeId, Session};

/// An archive.
pub(super) struct Tar {
    /// Device and inode of the archive, if it is a file.
    own: Option<(u64, u64)>,
    sessions: Vec<Session>,
    writer: Mutex<Writer>,
    links: Mutex<Links>,
}

/// Names of files that have several.
#[derive(Default)]
struct Links {
    /// By source and node: the name under which it is read.
    first: HashMap<(usize, NodeId), Vec<u8>>,
    /// The others.
    others: Vec<Other>,
}

struct Other {
    source: usize,
    node: NodeId,
    path: Vec<u8>,
    attr: Attr,
}

/// Where it goes.
struct Writer {
    out: BufWriter<Box<dyn Write + Send>>,
    /// What it is called in errors.
    name: String,
    /// Bytes of the large file that is being written that are still owed.
    owed: Owed,
    /// Files whose content is in the archive, of those that have several names.
    whole: std::collections::HashSet<(usize, NodeId)>,
}

/// What the header of a large file has promised.
#[derive(Default)]
struct Owed {
    data: u64,
    padding: u64,
    /// Whether holes are left out.
    is_sparse: bool,
}

impl Tar {
    /// # Errors
    /// Of a file that cannot be made, or is an image in use.
    pub(super) fn new(file: &Path, sources: &[Source]) -> Done<Self> {
        let mut own = None;
        let (out, name): (Box<dyn Write + Send>, _) = if file.as_os_str() == "-" {
            (Box::new(Raw), "standard output".to_string())
        } else {
            let name = volary::escape(file.as_os_str().as_bytes()).to_string();
            let made = written::open_to_replace(file).map_err(|e| Fail::host(&name, e))?;
            own = made.metadata().ok().map(|meta| (meta.dev(), meta.ino()));
            (Box::new(made), name)
        };
        Ok(Self {
            own,
            sessions: sources.iter().map(|s| s.session().clone()).collect(),
            writer: Mutex::new(Writer {
                out: BufWriter::with_capacity(1 << 20, out),
                name,
                owed: Owed::default(),
                whole: std::collections::HashSet::new(),
            }),
            links: Mutex::default(),
        })
    }

    fn writer(&self) -> MutexGuard<'_, Writer> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether a file is the archive itself.
    fn is_own(&self, to: &To<'_>, file: &File<'_>) -> bool {
        let ino = file.attr.map(|attr| attr.node.ino.get());
        let own = self.own.filter(|(_, own)| ino == Some(*own));
        let path = own.and_then(|_| to.names.on_host(file));
        let found = path.and_then(|path| path.symlink_metadata().ok());
        own.is_some() && found.map(|meta| (meta.dev(), meta.ino())) == own
    }

    /// Returns a node as a member; `size` is that of its content.
    fn entry<'a>(&self, to: &To<'_>, file: &File<'a>, kind: Kind, size: u64) -> Done<Entry<'a>> {
        let (name, session) = (to.names.within(file), self.sessions.get(file.source));
        let mut entry = Entry::new(name, file.attr, kind, size);
        let (Some(session), Some(attr)) = (session, file.attr) else {
            return Ok(entry);
        };
        match xattrs(session, attr.node) {
            Ok(xattrs) => entry.xattrs = xattrs,
            Err(e) => to.failed(file, &format!("extended attributes: {e}"))?,
        }
        Ok(entry)
    }

    /// A directory, a symlink, a device.
    fn node(&self, to: &To<'_>, file: &File<'_>) -> Done {
        let Some(attr) = file.attr else { return Ok(()) };
        let kind = match attr.kind {
            FileKind::Dir => Kind::Dir,
            FileKind::Symlink => {
                let session = self.sessions.get(file.source);
                match session.map(|s| s.readlink(attr.node)) {
                    Some(Ok(target)) => Kind::Symlink(target),
                    Some(Err(e)) => return to.failed(file, &e.to_string()),
                    None => return Ok(()),
                }
            }
            FileKind::CharDevice => Kind::CharDevice,
            FileKind::BlockDevice => Kind::BlockDevice,
            FileKind::Fifo => Kind::Fifo,
            // Programs make sockets when they start; tar has no place for them.
            FileKind::Socket | FileKind::File => return Ok(()),
        };
        let entry = self.entry(to, file, kind, 0)?;
        self.writer().put(&entry.header())
    }

    /// A file in one piece.
    fn whole(&self, to: &To<'_>, file: &File<'_>, bytes: &[u8]) -> Done {
        let entry = self.entry(to, file, Kind::File, bytes.len() as u64)?;
        let mut writer = self.writer();
        match holes(file) {
            Some(data) => {
                let (header, _) = entry.sparse(data);
                writer.put(&header)?;
                for range in data {
                    let from = usize::try_from(range.offset).unwrap_or(usize::MAX);
                    let len = usize::try_from(range.len).unwrap_or(usize::MAX);
                    let part = bytes.get(from..from.saturating_add(len));
                    writer.put(part.unwrap_or_default())?;
                }
                writer.pad(padding(data.iter().map(|r| r.len).sum()))?;
            }
            None => {
                writer.put(&entry.header())?;
                writer.put(bytes)?;
                writer.pad(padding(bytes.len() as u64))?;
            }
        }
        writer.remember(file);
        drop(writer);
        to.done(file, None)
    }

    fn begin(&self, to: &To<'_>, file: &File<'_>) -> Done {
        let size = file.attr.map_or(0, |attr| attr.size);
        let entry = self.entry(to, file, Kind::File, size)?;
        let (header, data) = match holes(file) {
            Some(data) => entry.sparse(data),
            None => (entry.header(), size),
        };
        let mut writer = self.writer();
        writer.owed = Owed {
            data,
            padding: padding(data),
            is_sparse: holes(file).is_some(),
        };
        writer.put(&header)
    }
}

/// Returns the data of a file with holes. In an archive each stretch begins with a block of its own: others
/// than whole ones, but for the last, are not for it.
fn holes<'a>(file: &File<'a>) -> Option<&'a [Range]> {
    let (data, size) = (file.data?, file.attr?.size);
    let is_whole = |range: &Range| {
        let end = range.offset + range.len;
        range.offset.is_multiple_of(512) && (end.is_multiple_of(512) || end == size)
    };
    data.iter().all(is_whole).then_some(data)
}

/// Zeros after so many bytes of content.
fn padding(len: u64) -> u64 {
    len.next_multiple_of(512) - len
}

impl Writer {
    fn put(&mut self, bytes: &[u8]) -> Done {
        let Self { out, name, .. } = self;
        // An archive that is cut off is none: a pipe that closes is no wish to stop.
        out.write_all(bytes).map_err(|e| Fail::host(name, e))
    }

    fn pad(&mut self, len: u64) -> Done {
        zeros(len, |bytes| self.put(bytes))
    }

    fn chunk(&mut self, bytes: &[u8]) -> Done {
        self.owed.data = self.owed.data.saturating_sub(bytes.len() as u64);
        self.put(bytes)
    }

    fn hole(&mut self, range: Range) -> Done {
        if self.owed.is_sparse {
            return Ok(());
        }
        self.owed.data = self.owed.data.saturating_sub(range.len);
        self.pad(range.len)
    }

    /// Gives what the header has promised, whatever came.
    fn settle(&mut self) -> Done {
        let Owed { data, padding, .. } = std::mem::take(&mut self.owed);
        self.pad(data)?;
        self.pad(padding)
    }

    /// The content of a file that has several names is in the archive.
    fn remember(&mut self, file: &File<'_>) {
        if let Some(attr) = file.attr.filter(|attr| attr.nlink > 1) {
            self.whole.insert((file.source, attr.node));
        }
    }
}

impl Sink for Tar {
    /// Leaves the archive itself out. Of a file with several names the first is read; the others
    /// follow at the end, as links to it.
    fn wants(&self, to: &To<'_>, file: &File<'_>) -> bool {
        if self.is_own(to, file) {
            let name = to.names.of(file);
            crate::log::say(&format!(
                "{}: is the archive; left out\n",
                volary::escape(&name)
            ));
            return false;
        }
        let linked = file
            .attr
            .filter(|a| a.kind == FileKind::File && a.nlink > 1);
        let Some(attr) = linked else { return true };
        let name = to.names.within(file);
        let mut links = self.links();
        match links.first.entry((file.source, attr.node)) {
            Found::Vacant(first) => {
                first.insert(name);
                return true;
            }
            // It comes again: a place lies in another.
            Found::Occupied(first) if *first.get() == name => return false,
            Found::Occupied(_) => {}
        }
        links.others.push(Other {
            source: file.source,
            node: attr.node,
            path: file.path.to_vec(),
            attr: *attr,
        });
        false
    }

    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done {
        match part {
            Part::Node => self.node(to, file),
            Part::Whole(bytes) => self.whole(to, file, bytes),
            Part::Begin => self.begin(to, file),
            Part::Chunk { bytes, .. } => self.writer().chunk(bytes),
            Part::Hole(range) => self.writer().hole(range),
            Part::End => {
                let mut writer = self.writer();
                writer.settle()?;
                writer.remember(file);
                drop(writer);
                to.done(file, None)
            }
            Part::Failed(_) => self.writer().settle(),
        }
    }

    fn end(&self, to: &To<'_>) -> Done {
        let links = std::mem::take(&mut *self.links());
        for other in &links.others {
            let file = File {
                source: other.source,
                path: &other.path,
                attr: Some(&other.attr),
                way: volary::bulk::Way::Direct,
                data: None,
            };
            let key = (other.source, other.node);
            let first = links.first.get(&key);
            let mut writer = self.writer();
            match first.filter(|_| writer.whole.contains(&key)) {
                Some(first) => {
                    let kind = Kind::Link(first.clone());
                    let entry = Entry::new(to.names.within(&file), file.attr, kind, 0);
                    writer.put(&entry.header())?;
                }
                None => to.failed(&file, "the name that it is a link to could not be read")?,
            }
        }
        let mut writer = self.writer();
        // Two blocks of zeros end it.
        writer.put(&[0; 1024])?;
        let name = writer.name.clone();
        writer.out.flush().map_err(|e| Fail {
            exit: Exit::Failed,
            ..Fail::host(name, e)
        })
    }
}

/// Returns the extended attributes of a node that are data of it.
fn xattrs(session: &Session, node: NodeId) -> volary::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    if !session.caps().has(volary::Caps::XATTRS) {
        return Ok(Vec::new());
    }
    let names = session.listxattr(node)?;
    let names = names.into_iter().filter(|name| !is_virtual(name));
    names
        .map(|name| session.getxattr(node, &name).map(|value| (name, value)))
        .collect()
}
