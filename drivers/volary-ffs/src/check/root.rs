//! Rebuilds the root directory if it is not a directory.

use super::findings::{Findings, finding};
use super::inodes::Inodes;
use super::plan::{Plan, Writer, too_damaged};
use crate::directory::dir::{self, entries};
use crate::disk::ondisk::{DIRBLKSIZ, UFS_ROOTINO};
use crate::groups::cg::Group;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::store::kept;
use volary_core::{FileKind, Finding, Kind, Result, Severity, Time};

/// Permissions of a rebuilt root directory.
const MODE: u16 = 0o755;

/// Checks that the root is a directory.
pub(super) fn check(inodes: &Inodes, findings: &mut Findings<'_>, plan: &mut Plan) {
    let root = inodes.all.get(&UFS_ROOTINO);
    if root.is_some_and(|seen| seen.kind == FileKind::Dir) {
        return;
    }
    let wanted = findings.tell(&Finding {
        code: "root",
        ..finding(
            Severity::Damage,
            0,
            format!("inode {UFS_ROOTINO}, the root, is no directory"),
        )
    });
    if wanted {
        plan.inodes.remove(&UFS_ROOTINO);
        plan.root = true;
    }
}

/// Makes inode 2 a directory again. It gets its old content if only the mode is wrong, otherwise it
/// is empty.
///
/// # Errors
/// `NoSpace`, `Corrupt` if there is no room; `Io`.
pub(super) fn make(writer: &mut Writer<'_>, inodes: &Inodes, now: Time) -> Result<()> {
    let reader = writer.reader;
    let volume = reader.volume;
    let old = reader.inode_as_it_is(UFS_ROOTINO.into())?;
    let root = match as_it_was(&reader, &old)? {
        Some(root) => root,
        None => {
            let fragment = free_fragment(&reader, inodes)?;
            let chunk = dir::dots(volume, UFS_ROOTINO, UFS_ROOTINO);
            writer.put(fragment * volume.fsize, &chunk)?;
            writer.settle()?;
            let generation = old.generation.wrapping_add(1).max(1);
            let mut root = Inode::free(volume, UFS_ROOTINO, old.at, generation);
            root.times = [kept(volume.variant, now); 3];
            root.birth = root.birth.or(Some(now));
            (root.nlink, root.size) = (2, DIRBLKSIZ as u64);
            root.blocks = volume.fsize / 512;
            root.db = [fragment, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            root
        }
    };
    let mut root = as_directory(root);
    root.store(volume);
    writer.put(root.at, &root.bytes)
}

fn as_directory(mut inode: Inode) -> Inode {
    let kind = u16::try_from(FileKind::Dir.mode_bits()).unwrap_or(0);
    inode.mode = kind | inode.mode & 0o7777;
    inode.mode |= if inode.mode & 0o7777 == 0 { MODE } else { 0 };
    inode
}

/// Returns the inode as a directory, if only its mode is wrong: its first entry leads to itself.
fn as_it_was(reader: &Reader<'_>, old: &Inode) -> Result<Option<Inode>> {
    let volume = reader.volume;
    let Ok(inode) = as_directory(old.clone()).check(volume) else {
        return Ok(None);
    };
    let mut chunk = [0; DIRBLKSIZ];
    match reader.read(&inode, 0, &mut chunk) {
        Err(e) if e == Kind::Corrupt => return Ok(None),
        len => _ = len?,
    }
    let own = entries(volume, &chunk).next();
    let is_own = own.is_some_and(|entry| entry.ino == UFS_ROOTINO && entry.name == b".");
    Ok(is_own.then_some(inode))
}

/// Returns a fragment that nothing uses. Prefers one that is free in the maps too.
fn free_fragment(reader: &Reader<'_>, inodes: &Inodes) -> Result<u64> {
    let volume = reader.volume;
    let mut any = None;
    for number in 0..volume.ncg {
        let group = Group::read(reader, number).ok();
        for fragment in volume.base(number)..volume.end(number) {
            if inodes.is_taken(fragment) {
                continue;
            }
            any = any.or(Some(fragment));
            let index = fragment - volume.base(number);
            if group.as_ref().is_some_and(|group| group.is_free(index)) {
                return Ok(fragment);
            }
        }
    }
    any.ok_or_else(|| too_damaged("a volume without room for a root"))
}
