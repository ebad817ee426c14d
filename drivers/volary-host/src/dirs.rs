//! Listings, by the host's own cookies.

use crate::error::from_errno;
use crate::opens::Opened;
use crate::sys;
use crate::volume::Host;
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;
use volary_core::{Cookie, DirBuf, FileKind, Kind, NodeId, OpenId, Result};

/// How much is asked of the host at once, in bytes: a thousand entries and more.
const ROOM: usize = 64 << 10;

/// Where a listing is: what the host gave last, and how far the caller took it.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    room: Vec<u8>,
    /// The bytes of `room` that are yet to be given.
    start: usize,
    end: usize,
    /// The place before them.
    at: Option<Cookie>,
    /// The place before all of `room`.
    first: Option<Cookie>,
}

/// The place after the last entry. ext4 and Btrfs have the greatest offset there
/// is for it; servers count on from cookies.
const END: u64 = i64::MAX as u64 - 16;

/// One entry as the host gives it: a `struct linux_dirent64`.
struct Raw<'a> {
    ino: u64,
    next: Cookie,
    /// As `readdir(3)` has it; 0 for one that the host does not tell.
    kind: u8,
    name: &'a [u8],
    len: usize,
}

const NAME_AT: usize = 19;

fn parse(bytes: &[u8]) -> Option<Raw<'_>> {
    let next = Cookie(sys::u64_at(bytes, 8)?.min(END));
    let len = sys::u16_at(bytes, 16)?.into();
    let name = bytes.get(NAME_AT..len)?;
    let name_len = name.iter().position(|&b| b == 0)?;
    Some(Raw {
        ino: sys::u64_at(bytes, 0)?,
        next,
        kind: *bytes.get(18)?,
        name: name.get(..name_len)?,
        len,
    })
}

/// Calls with number, kind (if the host tells it) and name of each entry that the
/// directory still lists, but `.` and `..`, until there is an answer.
///
/// # Errors
/// The host's.
pub(crate) fn each<T>(
    dir: &OwnedFd,
    mut call: impl FnMut(u64, Option<FileKind>, &[u8]) -> Option<T>,
) -> Result<Option<T>> {
    let mut room = vec![0; ROOM];
    read_alone(dir);
    loop {
        let got = match sys::entries(dir, &mut room) {
            // A directory without a name has no entries.
            Err(Errno::NOENT) | Ok(0) => return Ok(None),
            got => got.map_err(from_errno)?,
        };
        let mut start = 0;
        while let Some(raw) = room.get(start..got).and_then(parse) {
            start += raw.len;
            let kind = FileKind::from_mode(u32::from(raw.kind) << 12);
            if raw.name != b"."
                && raw.name != b".."
                && let Some(answer) = call(raw.ino, kind, raw.name)
            {
                return Ok(Some(answer));
            }
        }
    }
}

impl Host {
    /// See [`readdir`](volary_core::FileSystem::readdir).
    pub(crate) fn list(&self, dir: OpenId, from: Cookie, out: &mut DirBuf) -> Result<bool> {
        let open = self.opens.get(dir)?;
        if open.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if from.0 == END {
            return Ok(true);
        }
        let mut listing = open.listing.lock();
        // From the start, it is read anew: what is new is to be seen.
        if from == Cookie::START || !listing.goes_on_at(from) {
            listing.seek(&open, from)?;
        }
        if from == Cookie::START {
            read_alone(&open.fd);
        }
        loop {
            if listing.start >= listing.end && !listing.fill(&open)? {
                return Ok(true);
            }
            let Listing {
                room, start, end, ..
            } = &*listing;
            let raw = room.get(*start..*end).and_then(parse);
            let Some(raw) = raw else {
                return Err(Kind::Invalid.into());
            };
            if !self.push(&open, &raw, out)? {
                return Ok(false);
            }
            let (next, len) = (raw.next, raw.len);
            listing.start += len;
            listing.at = Some(next);
        }
    }

    /// False if there is no room. What is gone since the host listed it, and
    /// what is not of this volume, is passed over.
    fn push(&self, open: &Opened, raw: &Raw<'_>, out: &mut DirBuf) -> Result<bool> {
        if raw.name == b"." || raw.name == b".." {
            return Ok(true);
        }
        if !out.wants_ids()
            && let Some((node, kind)) = raw.leaf()
        {
            return Ok(out.push(raw.next, node, kind, raw.name, None));
        }
        let attr = match self.ids.at_listed(&open.fd, raw.name, raw.ino) {
            Ok(attr) => attr,
            Err(e) if matches!(e.kind(), Kind::NotFound | Kind::CrossVolume | Kind::Stale) => {
                return Ok(true);
            }
            Err(e) => return Err(e),
        };
        let (node, kind) = (attr.node, attr.kind);
        let wanted = out.wants_attr().then_some(attr);
        if !out.push(raw.next, node, kind, raw.name, wanted) {
            return Ok(false);
        }
        if node != self.root {
            let way = Some((open.node, raw.name)).filter(|_| !self.ids.open_by_handle());
            // With attributes, servers give it out as if it were looked up. Counted
            // too often it is only remembered for longer.
            let lookups = u64::from(out.wants_attr());
            self.nodes.note(node, kind, lookups, way, None);
        }
        Ok(true)
    }
}

/// Turns off read-ahead for a directory of one block. ext4 takes directories listed in their order for one sequential
/// stream, and would read megabytes of the files between them.
fn read_alone(dir: &OwnedFd) {
    const BLOCK: u64 = 4096;
    if crate::stat::look(dir, b"").is_ok_and(|stat| stat.stx_size <= BLOCK) {
        // It is a hint.
        let _ = rustix::fs::fadvise(dir, 0, None, Advice::Random);
    }
}

impl Raw<'_> {
    /// Returns what the host tells of the entry without a look at the node, where that is
    /// enough: a directory may be one on which another file system is mounted.
    fn leaf(&self) -> Option<(NodeId, FileKind)> {
        let kind = FileKind::from_mode(u32::from(self.kind) << 12)?;
        let node = NodeId::new(self.ino, 0)?;
        (kind != FileKind::Dir).then_some((node, kind))
    }
}

impl Listing {
    /// Returns whether the place is among what the host gave last; then it is gone on from
    /// there. Servers ask again for what had no room in their last answer.
    fn goes_on_at(&mut self, from: Cookie) -> bool {
        if self.at == Some(from) {
            return true;
        }
        let (mut start, mut at) = (0, self.first);
        while at != Some(from) {
            let Some(raw) = self.room.get(start..self.end).and_then(parse) else {
                return false;
            };
            start += raw.len;
            at = Some(raw.next);
        }
        (self.start, self.at) = (start, at);
        true
    }

    fn seek(&mut self, open: &Opened, to: Cookie) -> Result<()> {
        (self.start, self.end, self.at, self.first) = (0, 0, None, None);
        rustix::fs::seek(&open.fd, SeekFrom::Start(to.0)).map_err(from_errno)?;
        (self.at, self.first) = (Some(to), Some(to));
        Ok(())
    }

    /// Asks the host for more; false at the end.
    fn fill(&mut self, open: &Opened) -> Result<bool> {
        self.room.resize(ROOM, 0);
        let got = match sys::entries(&open.fd, &mut self.room) {
            // A directory without a name has no entries.
            Err(Errno::NOENT) => 0,
            got => got.map_err(from_errno)?,
        };
        (self.start, self.end, self.first) = (0, got, self.at);
        if got == 0 {
            // Nobody asks again soon.
            self.room = Vec::new();
        }
        Ok(got > 0)
    }
}
