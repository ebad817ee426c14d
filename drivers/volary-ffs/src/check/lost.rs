//! `lost+found`: names for what has lost its own.

use crate::attached::Attached;
use crate::edit::{Edit, Step};
use crate::inode::Inode;
use crate::names::New;
use crate::ondisk::UFS_ROOTINO;
use std::collections::BTreeSet;
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{BlockDevice, Cancel, Cred, Ctx, FileKind, Kind, Name, Result, SetAttr, Time};

/// Where they are put.
const DIRECTORY: &[u8] = b"lost+found";

/// Gives names to inodes of a volume whose maps are right. Gives how many sectors were
/// written.
///
/// # Errors
/// `NoSpace`; `Corrupt`; `Io`.
pub(super) fn name(dev: &Arc<dyn BlockDevice>, lost: &BTreeSet<u32>, now: Time) -> Result<u64> {
    let counted = Arc::new(Recorder::counting(dev.clone()));
    let attached = Attached::to_mend(counted.clone())?;
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now,
        cancel: &cancel,
    };
    for &ino in lost {
        attached.change(&cx, |edit| connect(edit, ino))?;
    }
    attached.sync(now)?;
    Ok(counted.counts().write_bytes / 512)
}

fn connect(edit: &mut Edit<'_>, ino: u32) -> Step<()> {
    let inode = match edit.inode(ino) {
        Err(e) if e == Kind::Stale => return Ok(()),
        inode => inode?,
    };
    let into = directory(edit)?;
    let text = format!("#{ino:08}");
    let kind = edit.kind_of(ino)?;
    edit.add_entry(into.ino, text.as_bytes(), (ino, kind))?;
    if kind == FileKind::Dir {
        // The count of links is put right by the next round.
        return edit.adopt(&inode, into.ino);
    }
    edit.node(ino)?.mem.nlink = 1;
    Ok(())
}

/// The directory, made if it is not there.
fn directory(edit: &mut Edit<'_>) -> Step<Inode> {
    let root = edit.inode(UFS_ROOTINO)?;
    let name = Name::new(DIRECTORY).map_err(|_| Kind::Invalid)?;
    match edit.search(&root, DIRECTORY)? {
        Some((ino, _)) => {
            let inode = edit.inode(ino)?;
            match inode.kind() {
                Some(FileKind::Dir) => Ok(inode),
                _ => Err(Kind::NotDir.into()),
            }
        }
        None => edit.make(root.id()?, name, &New::Dir, &SetAttr::mode(0o700)),
    }
}
