//! A directory, listed whole.

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

/// What can be read of a directory.
#[derive(Debug)]
pub struct Listing {
    /// The entries, in the order in which they lie.
    pub rows: Vec<Row>,
    /// Names whose nodes cannot be read, and why.
    pub unreadable: Vec<(Vec<u8>, Error)>,
    /// Why there may be more.
    pub end: Result<()>,
    /// About what the entries take in memory, in bytes.
    pub bytes: usize,
}

/// Entries that are read at once.
const BATCH: usize = 1024;
/// What the allocator has for a short name.
const ALLOCATED: usize = 32;

impl Listing {
    /// Bytes that the entries of one directory may take: some two million of them. A server can
    /// list more without end.
    pub const MAX: usize = 512 << 20;

    /// Reads a directory, up to where it cannot be read, or takes more than `max` bytes.
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
    /// `TooBig` if the entries take more than `max` bytes; the volume's.
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
