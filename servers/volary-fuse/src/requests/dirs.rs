//! Requests about listings of directories.
//!
//! The kernel expects `.` and `..` first, which the session does not list. They take the offsets 1
//! and 2, and the session's cookies follow.

use crate::kernel::told::Given;
use crate::kernel::types;
use crate::requests::caller::Caller;
use crate::requests::server::Server;
use fuser::{FileAttr, Generation, INodeNo, ReplyDirectory, ReplyDirectoryPlus};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::time::Duration;
use volary_core::{Attr, Cookie, DirBuf, DirEntry, Entry, Kind, Name, OpenId, Result};
use volary_session::{Listed, Session};

/// The offsets before the session's cookies.
const DOTS: u64 = 2;
/// How many entries are requested from the session at a time. They should not be many more than fit
/// in the reply, because each may require a look at its node.
const PLAIN_STEP: usize = 256;
const PLUS_STEP: usize = 16;
/// Bytes of the names in a step.
const NAMES: usize = 64 << 10;

/// The request: an open directory, and where to start.
#[derive(Clone, Copy)]
pub(crate) struct Listing {
    pub(crate) node: INodeNo,
    pub(crate) open: OpenId,
    pub(crate) offset: u64,
}

impl Server {
    pub(crate) fn list(&self, req: &Caller, at: Listing, reply: &mut ReplyDirectory) -> Result<()> {
        let session = self.sessions.of(req);
        for (place, name) in dots_from(at.offset) {
            let number = self.dot_number(&session, at.node, name)?;
            let dir = fuser::FileType::Directory;
            if reply.add(number, place, dir, OsStr::from_bytes(name)) {
                return Ok(());
            }
        }
        // For an unknown entry, the kernel asks by name, and then gets the whole id.
        let step = DirBuf::new(PLAIN_STEP, NAMES, false).numbers_do();
        each_entry(&session, at, step, |entry, place| {
            let number = INodeNo(self.nodes.number(entry.node));
            let kind = types::file_type(entry.kind);
            Ok(reply.add(number, place, kind, OsStr::from_bytes(entry.name)))
        })
    }

    /// Lists entries with attributes. Each entry but `.` and `..` counts as looked up.
    pub(crate) fn list_plus(
        &self,
        req: &Caller,
        at: Listing,
        reply: &mut ReplyDirectoryPlus,
    ) -> Result<()> {
        let session = self.sessions.of(req);
        let dir = self.node(at.node)?;
        for (place, name) in dots_from(at.offset) {
            let attr = self.dot(&session, at.node, name)?.attr;
            if self.add_plus(reply, place, name, &attr) {
                return Ok(());
            }
        }
        let step = DirBuf::new(PLUS_STEP, NAMES, true);
        each_entry(&session, at, step, |entry, place| {
            let attr = match session.listed(dir, entry)? {
                Listed::Known(attr) => attr,
                Listed::Gone => return Ok(false),
                Listed::Unknown => return Ok(add_unknown(reply, place, entry)),
            };
            let full = self.add_plus(reply, place, entry.name, &attr);
            if !full {
                self.nodes.remember(attr.node);
            }
            Ok(full)
        })
    }

    fn add_plus(
        &self,
        reply: &mut ReplyDirectoryPlus,
        place: u64,
        name: &[u8],
        attr: &Attr,
    ) -> bool {
        let given = Given {
            attr: self.told.attr(attr),
            generation: Generation(attr.node.generation.into()),
            names: self.told.name_lasts(attr.kind),
            attrs: self.told.attrs_last(),
        };
        // The reply has room for only one duration.
        let lasts = given.names.min(given.attrs);
        let name = OsStr::from_bytes(name);
        reply.add(
            given.attr.ino,
            place,
            name,
            &lasts,
            &given.attr,
            given.generation,
        )
    }

    /// Looks up `.` or `..`, even for a caller who may list the directory but not search it.
    fn dot(&self, session: &Session, dir: INodeNo, name: &[u8]) -> Result<Entry> {
        let dir = self.node(dir)?;
        match session.lookup(dir, name) {
            Err(e) if e == Kind::Access => self.sessions.own().lookup(dir, name),
            found => found,
        }
    }

    fn dot_number(&self, session: &Session, dir: INodeNo, name: &[u8]) -> Result<INodeNo> {
        if name == b"." {
            return Ok(dir);
        }
        let Entry { node, .. } = self.dot(session, dir, name)?;
        Ok(INodeNo(self.nodes.number(node)))
    }

    /// Opens a directory.
    pub(crate) fn open_dir(&self, req: &Caller, node: INodeNo) -> Result<OpenId> {
        let node = self.node(node)?;
        let session = self.sessions.of(req);
        let open = session.open(node, volary_core::Mode::Read)?;
        Ok(open)
    }
}

/// Calls `take` for the entries after `at`, with the offset after each, until there is no more
/// room. `step` fetches a batch at a time. Names that a file system must not return are skipped.
fn each_entry(
    session: &Session,
    at: Listing,
    mut step: DirBuf,
    mut take: impl FnMut(&DirEntry<'_>, u64) -> Result<bool>,
) -> Result<()> {
    let mut from = Cookie(at.offset.saturating_sub(DOTS));
    let mut given = false;
    loop {
        step.clear();
        let end = match session.readdir(at.open, from, &mut step) {
            // The entries so far are returned. The kernel asks for the rest, and gets the error
            // then.
            Err(_) if given => return Ok(()),
            read => read?,
        };
        for entry in step.iter() {
            let place = entry.next.0.checked_add(DOTS);
            let Some(place) = place.filter(|place| *place <= types::SIZE_MAX) else {
                return Err(Kind::Corrupt.into());
            };
            if Name::new(entry.name).is_err() {
                continue;
            }
            if take(&entry, place)? {
                return Ok(());
            }
            given = true;
        }
        match step.last_cookie() {
            // A listing that returns nothing and does not end would loop forever.
            Some(last) if !end && last != from => from = last,
            _ => return Ok(()),
        }
    }
}

/// Adds an entry without attributes. With number 0, the kernel asks for them by name when they are
/// needed (`fuse_direntplus_link`).
fn add_unknown(reply: &mut ReplyDirectoryPlus, place: u64, entry: &DirEntry<'_>) -> bool {
    let attr = FileAttr {
        ino: INodeNo(entry.node.ino.get()),
        kind: types::file_type(entry.kind),
        ..types::nothing()
    };
    let (number, never) = (INodeNo(0), Duration::ZERO);
    let name = OsStr::from_bytes(entry.name);
    reply.add(number, place, name, &never, &attr, Generation(0))
}

/// Returns `.` and `..`, if they come at or after `offset`, each with the offset after it.
fn dots_from(offset: u64) -> impl Iterator<Item = (u64, &'static [u8])> {
    let dots: [(u64, &[u8]); 2] = [(1, b"."), (2, b"..")];
    dots.into_iter().filter(move |(place, _)| *place > offset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_dots_come_first_and_once() {
        let places = |from| dots_from(from).map(|(place, _)| place).collect::<Vec<_>>();
        assert_eq!(places(0), [1, 2]);
        assert_eq!(places(1), [2]);
        assert!(places(2).is_empty());
    }
}
