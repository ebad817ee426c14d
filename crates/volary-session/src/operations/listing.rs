//! A directory, read whole.

use crate::session::Session;
use volary_core::{Attr, Cookie, DirBuf, Error, Kind, Mode, NodeId, OpenId, Result};

/// An entry of a directory.
#[derive(Clone, Debug)]
pub struct Row {
    /// The name.
    pub name: Vec<u8>,
    /// Attributes of the node that it leads to.
    pub attr: Attr,
}

/// What could be read of a directory.
#[derive(Debug)]
pub struct Listing {
    /// The entries, in the order of the directory.
    pub rows: Vec<Row>,
    /// Names whose nodes cannot be read, and why.
    pub unreadable: Vec<(Vec<u8>, Error)>,
    /// The error that ended the reading early; then there may be more entries.
    pub end: Result<()>,
    /// Roughly the memory that the entries take, in bytes.
    pub bytes: usize,
}

/// Entries that are read with one call.
const BATCH: usize = 1024;
/// The least that the allocator takes for a name, in bytes.
const ALLOCATED: usize = 32;

impl Listing {
    /// Default bound for the entries of one directory, in bytes: some two million entries. A
    /// malicious server can list entries without end.
    pub const MAX: usize = 512 << 20;

    /// Reads a directory until an error, or until its entries take more than `max` bytes.
    pub fn read(session: &Session, dir: NodeId, max: usize) -> Self {
        let mut listing = Self {
            rows: Vec::new(),
            unreadable: Vec::new(),
            end: Ok(()),
            bytes: 0,
        };
        listing.end = session.open(dir, Mode::Read).and_then(|open| {
            let read = listing.fill(session, dir, open, max);
            read.and(session.close(open))
        });
        listing
    }

    /// # Errors
    /// `TooBig` if the entries take more than `max` bytes; those of the volume.
    fn fill(&mut self, session: &Session, dir: NodeId, open: OpenId, max: usize) -> Result<()> {
        let mut batch = DirBuf::new(BATCH, BATCH * 32, true);
        let mut from = Cookie::START;
        loop {
            batch.clear();
            let read = session.readdir(open, from, &mut batch);
            for entry in batch.iter() {
                let name = entry.name.to_vec();
                self.bytes += size_of::<Row>() + name.len().max(ALLOCATED);
                match session.attr_listed(dir, &entry) {
                    Ok(attr) => self.rows.push(Row { name, attr }),
                    Err(e) if e == Kind::NotFound => {}
                    Err(e) => self.unreadable.push((name, e)),
                }
            }
            match (read?, batch.last_cookie()) {
                (false, Some(_)) if self.bytes > max => {
                    let count = self.rows.len();
                    let words = format!("a directory with more than {count} entries is not listed");
                    return Err(Error::note(Kind::TooBig, words));
                }
                (false, Some(next)) => from = next,
                _ => return Ok(()),
            }
        }
    }
}
