//! `lost+found`: gives names to inodes that have lost theirs.

use super::plan::Plan;
use crate::attached::operations::Attached;
use crate::change::edit::{Step, Stop};
use crate::inodes::inode::Inode;
use crate::tree::entries::Leads;
use crate::tree::names::Tree;
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{BlockDevice, Cancel, Cred, Ctx, FileKind, Kind, Result, Time};

/// The names of the directory. The first that is a directory or can be made one is used.
const DIRECTORIES: [&[u8]; 2] = [b"lost+found", b"lost+found.1"];

/// Gives names to inodes, and blocks to directories with holes, as far as there is room. The
/// volume's maps must be right. Returns how many sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(super) fn mend(dev: &Arc<dyn BlockDevice>, plan: &Plan, now: Time) -> Result<u64> {
    attached(dev, now, |attached, cx| {
        for (&(dir, from), &to) in &plan.holes {
            within_room(attached.change(cx, |tree| tree.entries(dir).fill_hole(from..to)))?;
        }
        // In directories with holes, names can be neither looked up nor made.
        for &ino in plan.lost.iter().filter(|_| plan.holes.is_empty()) {
            within_room(attached.change(cx, |tree| connect(tree, ino)))?;
        }
        Ok(())
    })
}

/// Attaches the volume, runs `work` as root, and makes the result durable. The volume is still not
/// marked as cleanly left. Returns how many sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`; those of `work`.
pub(super) fn attached(
    dev: &Arc<dyn BlockDevice>,
    now: Time,
    work: impl FnOnce(&Attached, &Ctx<'_>) -> Result<()>,
) -> Result<u64> {
    let counted = Arc::new(Recorder::counting(dev.clone()));
    let attached = Attached::to_mend(counted.clone())?;
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now,
        cancel: &cancel,
    };
    work(&attached, &cx)?;
    attached.sync(now)?;
    Ok(counted.counts().write_bytes / 512)
}

/// Ignores an error for lack of room.
pub(super) fn within_room(done: Result<()>) -> Result<()> {
    match done {
        Err(e) if e == Kind::NoSpace => Ok(()),
        done => done,
    }
}

fn connect(tree: &mut Tree<'_>, ino: u32) -> Step<()> {
    let inode = match tree.files.edit.inode(ino) {
        Err(e) if e == Kind::Stale => return Ok(()),
        inode => inode?,
    };
    let into = directory(tree)?;
    let text = free_text(tree, &into, ino)?;
    let kind = tree.files.edit.kind_of(ino)?;
    tree.entries(into.ino)
        .add(text.as_bytes(), Leads { ino, kind })?;
    if kind == FileKind::Dir {
        // The next round corrects the link count.
        return tree.adopt(&inode, into.ino);
    }
    tree.files.edit.node(ino)?.mem.nlink = 1;
    Ok(())
}

/// Returns the name that an inode gets.
pub(super) fn text(ino: u32) -> String {
    format!("#{ino:08}")
}

/// Returns the name that an inode gets. A number is appended if the name is taken.
fn free_text(tree: &mut Tree<'_>, into: &Inode, ino: u32) -> Step<String> {
    let mut taken = text(ino);
    for number in 1_u32.. {
        if tree.lookup.search(into, taken.as_bytes())?.is_none() {
            break;
        }
        taken = format!("{}.{number}", text(ino));
    }
    Ok(taken)
}

/// Returns the directory, and creates it if it does not exist.
///
/// # Errors
/// As [`Tree::directory_of_root`].
fn directory(tree: &mut Tree<'_>) -> Step<Inode> {
    let mut found = Err(Kind::NotDir.into());
    for name in DIRECTORIES {
        found = tree.directory_of_root(name);
        if !matches!(&found, Err(Stop::Error(e)) if *e == Kind::NotDir) {
            break;
        }
    }
    found
}
