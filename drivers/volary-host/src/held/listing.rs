//! Entries of a directory in the host's form, and the position of a listing.

use crate::kernel::error::from_errno;
use crate::kernel::stat::look;
use crate::kernel::sys;
use rustix::fd::OwnedFd;
use rustix::fs::{Advice, SeekFrom};
use rustix::io::Errno;
use volary_core::{Cookie, FileKind, Kind, NodeId, Result};

/// Bytes that are requested from the host at once: more than a thousand entries.
const ROOM: usize = 64 << 10;

/// The state of a listing: what the host returned last, and how much of it the caller took.
#[derive(Debug, Default)]
pub(crate) struct Listing {
    room: Vec<u8>,
    /// The range of `room` that the caller has not taken.
    start: usize,
    end: usize,
    /// The cookie before that range.
    at: Option<Cookie>,
    /// The cookie before all of `room`.
    first: Option<Cookie>,
}

/// The cookie after the last entry. ext4 and Btrfs use the greatest offset for it. But servers add
/// to cookies, so a lower one is needed.
pub(crate) const END: u64 = i64::MAX as u64 - 16;

/// An entry as the host returns it: a `struct linux_dirent64`.
pub(crate) struct Raw<'a> {
    pub(crate) ino: u64,
    /// The cookie after it.
    pub(crate) next: Cookie,
    /// The type as in `readdir(3)`, or 0 if the host does not know it.
    kind: u8,
    pub(crate) name: &'a [u8],
    /// The bytes that the entry takes in the buffer.
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

/// Calls `call` with the number, kind (if known) and name of each entry that the directory still
/// has, except `.` and `..`. Stops at the first answer, and returns it.
///
/// # Errors
/// Those of the host.
pub(crate) fn each<T>(
    dir: &OwnedFd,
    mut call: impl FnMut(u64, Option<FileKind>, &[u8]) -> Option<T>,
) -> Result<Option<T>> {
    let mut room = vec![0; ROOM];
    read_alone(dir);
    loop {
        let got = match sys::entries(dir, &mut room) {
            // A removed directory has no entries.
            Err(Errno::NOENT) | Ok(0) => return Ok(None),
            got => got.map_err(from_errno)?,
        };
        let mut start = 0;
        while let Some(raw) = room.get(start..got).and_then(parse) {
            start += raw.len;
            if !raw.is_dots()
                && let Some(answer) = call(raw.ino, raw.kind(), raw.name)
            {
                return Ok(Some(answer));
            }
        }
    }
}

impl Raw<'_> {
    /// Returns whether it is `.` or `..`.
    pub(crate) fn is_dots(&self) -> bool {
        matches!(self.name, b"." | b"..")
    }

    /// Returns its kind, if the host states it.
    fn kind(&self) -> Option<FileKind> {
        FileKind::from_mode(u32::from(self.kind) << 12)
    }

    /// Returns the node and the kind, if the listing alone gives them. It does not for a directory,
    /// because another file system may be mounted on it.
    pub(crate) fn leaf(&self) -> Option<(NodeId, FileKind)> {
        let kind = self.kind()?;
        let node = NodeId::new(self.ino, 0)?;
        (kind != FileKind::Dir).then_some((node, kind))
    }
}

impl Listing {
    /// Passes the entries after a cookie to `take`, until it has no room. Returns whether that was
    /// the end.
    ///
    /// # Errors
    /// Those of `take`; `Invalid` for a malformed entry; those of the host.
    pub(crate) fn give(
        &mut self,
        dir: &OwnedFd,
        from: Cookie,
        mut take: impl FnMut(&Raw<'_>) -> Result<bool>,
    ) -> Result<bool> {
        // From the start, the directory is read again, to see new entries.
        if from == Cookie::START || !self.goes_on_at(from) {
            self.seek(dir, from)?;
        }
        if from == Cookie::START {
            read_alone(dir);
        }
        loop {
            if self.start >= self.end && !self.fill(dir)? {
                return Ok(true);
            }
            let raw = self.room.get(self.start..self.end).and_then(parse);
            let raw = raw.ok_or(Kind::Invalid)?;
            if !take(&raw)? {
                return Ok(false);
            }
            self.start += raw.len;
            self.at = Some(raw.next);
        }
    }

    /// Returns whether the cookie is within what the host returned last. If so, the listing goes on
    /// there. Servers ask again for entries that did not fit in their last answer.
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

    fn seek(&mut self, dir: &OwnedFd, to: Cookie) -> Result<()> {
        (self.start, self.end, self.at, self.first) = (0, 0, None, None);
        rustix::fs::seek(dir, SeekFrom::Start(to.0)).map_err(from_errno)?;
        (self.at, self.first) = (Some(to), Some(to));
        Ok(())
    }

    /// Asks the host for more entries. Returns false at the end.
    fn fill(&mut self, dir: &OwnedFd) -> Result<bool> {
        self.room.resize(ROOM, 0);
        let got = match sys::entries(dir, &mut self.room) {
            // A removed directory has no entries.
            Err(Errno::NOENT) => 0,
            got => got.map_err(from_errno)?,
        };
        (self.start, self.end, self.first) = (0, got, self.at);
        if got == 0 {
            // The caller will not ask again soon.
            self.room = Vec::new();
        }
        Ok(got > 0)
    }
}

/// Turns off read-ahead for a directory of one block. ext4 takes directories that are listed in
/// order for a sequential read, and would read megabytes of the files between them.
fn read_alone(dir: &OwnedFd) {
    const BLOCK: u64 = 4096;
    if look(dir, b"").is_ok_and(|stat| stat.stx_size <= BLOCK) {
        // This is only a hint, so an error does not matter.
        let _ = rustix::fs::fadvise(dir, 0, None, Advice::Random);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use tempfile::TempDir;

    /// Returns `count` entries after a cookie, each with the cookie after it, and whether that was
    /// the end.
    fn some(
        listing: &mut Listing,
        dir: &OwnedFd,
        from: Cookie,
        count: usize,
    ) -> (Vec<(Vec<u8>, Cookie)>, bool) {
        let mut all = Vec::new();
        let end = listing.give(dir, from, |raw| {
            let has_room = all.len() < count;
            if has_room {
                all.push((raw.name.to_vec(), raw.next));
            }
            Ok(has_room)
        });
        (all, end.unwrap())
    }

    fn many() -> (TempDir, OwnedFd) {
        let dir = TempDir::new().unwrap();
        for number in 0..100 {
            std::fs::write(dir.path().join(format!("file{number}")), "").unwrap();
        }
        let fd = std::fs::File::open(dir.path()).unwrap().into();
        (dir, fd)
    }

    #[test]
    fn a_listing_goes_on_where_there_was_no_room() {
        let (_dir, fd) = many();
        let (mut listing, mut from, mut seen) =
            (Listing::default(), Cookie::START, BTreeSet::new());
        loop {
            let (entries, end) = some(&mut listing, &fd, from, 7);
            for (name, next) in entries {
                assert!(seen.insert(name), "listed twice");
                from = next;
            }
            if end {
                break;
            }
        }
        assert_eq!(seen.len(), 102, "with `.` and `..`");
    }

    #[test]
    fn places_are_found_again_in_what_the_host_gave_last_and_without_it() {
        let (_dir, fd) = many();
        let mut listing = Listing::default();
        let (all, end) = some(&mut listing, &fd, Cookie::START, 200);
        assert!(end);
        let (from, rest) = (all[39].1, &all[40..50]);
        assert_eq!(some(&mut listing, &fd, from, 10).0, rest);
        assert_eq!(some(&mut listing, &fd, from, 10).0, rest);
        assert_eq!(some(&mut Listing::default(), &fd, from, 10).0, rest);
    }

    #[test]
    fn what_is_cut_off_is_no_entry() {
        let mut entry = Vec::new();
        entry.extend(7_u64.to_ne_bytes());
        entry.extend(8_u64.to_ne_bytes());
        entry.extend(24_u16.to_ne_bytes());
        entry.extend([8, b'n', b'a', b'm', b'e', 0]);
        let raw = parse(&entry).unwrap();
        assert_eq!((raw.ino, raw.next, raw.name), (7, Cookie(8), &b"name"[..]));
        assert_eq!(raw.leaf().unwrap().1, FileKind::File);
        for len in 0..entry.len() {
            assert!(parse(&entry[..len]).is_none());
        }
    }
}
