//! `lost+found`: names for what has lost its own.

use super::plan::Plan;
use crate::attached::operations::Attached;
use crate::change::edit::{Step, Stop};
use crate::inodes::inode::Inode;
use crate::tree::names::Tree;
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{BlockDevice, Cancel, Cred, Ctx, FileKind, Kind, Result, Time};

/// Where they are put: in the first of these that can be a directory.
const DIRECTORIES: [&[u8]; 2] = [b"lost+found", b"lost+found.1"];

/// Gives names to inodes, and blocks to directories with holes, on a volume whose maps are right,
/// as far as there is room. Gives how many sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(super) fn mend(dev: &Arc<dyn BlockDevice>, plan: &Plan, now: Time) -> Result<u64> {
    attached(dev, now, |attached, cx| {
        for (&(dir, from), &to) in &plan.holes {
            within_room(attached.change(cx, |tree| tree.entries(dir).fill_hole(from..to)))?;
        }
        // Names of directories with holes can be neither looked for nor made.
        for &ino in plan.lost.iter().filter(|_| plan.holes.is_empty()) {
            within_room(attached.change(cx, |tree| connect(tree, ino)))?;
        }
        Ok(())
    })
}

/// Does `work` as root on the volume, attached, and makes it durable; it is still not marked
/// as cleanly left. Gives how many sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`; of `work`.
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

/// What there is no room for is left.
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
    tree.entries(into.ino).add(text.as_bytes(), (ino, kind))?;
    if kind == FileKind::Dir {
        // The count of links is put right by the next round.
        return tree.adopt(&inode, into.ino);
    }
    tree.files.edit.node(ino)?.mem.nlink = 1;
    Ok(())
}

/// Returns the name that an inode gets.
pub(super) fn text(ino: u32) -> String {
    format!("#{ino:08}")
}

/// Returns the name that an inode gets, with a number behind it where the name is taken.
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

/// Returns the directory, made if it is not there.
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
