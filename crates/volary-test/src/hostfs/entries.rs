//! Lists a directory with the host's own cookies.

use super::errno::from_errno;
use super::table::{Opened, Table};
use rustix::fs::{RawDir, SeekFrom};
use std::mem::MaybeUninit;
use volary_core::{Cookie, DirBuf, FileKind, Kind, Result};

/// See [`readdir`](volary_core::FileSystem::readdir).
pub(super) fn list(table: &Table, opened: &Opened, from: Cookie, out: &mut DirBuf) -> Result<bool> {
    let offset = opened.offset.lock();
    rustix::fs::seek(&opened.fd, SeekFrom::Start(from.0)).map_err(from_errno)?;
    let mut room = [MaybeUninit::uninit(); 1 << 15];
    let mut dir = RawDir::new(&opened.fd, &mut room);
    while let Some(entry) = dir.next() {
        let entry = match entry {
            Ok(entry) => entry,
            // The host answers ENOENT for a directory that was removed: it has no entries.
            Err(rustix::io::Errno::NOENT) => break,
            Err(e) => return Err(from_errno(e)),
        };
        let name = entry.file_name().to_bytes();
        if name == b"." || name == b".." {
            continue;
        }
        let found = match table.find_bytes(&opened.fd, name) {
            Ok(found) => found,
            // Removed since the host listed it.
            Err(e) if e == Kind::NotFound => continue,
            Err(e) => return Err(e),
        };
        let next = Cookie(entry.next_entry_cookie());
        let attr = out.wants_attr().then_some(found.attr);
        let kind: FileKind = found.attr.kind;
        if !out.push(next, found.node, kind, name, attr) {
            return Ok(false);
        }
    }
    drop(offset);
    Ok(true)
}
