//! `lost+found`: names for what has lost its own.

use crate::attached::operations::Attached;
use crate::change::edit::Step;
use crate::disk::inode::Inode;
use crate::disk::ondisk::{Order, ROOT_INO};
use crate::tree::names::{New, Tree};
use std::collections::BTreeSet;
use std::sync::Arc;
use volary_block::Recorder;
use volary_core::{BlockDevice, Cancel, Cred, Ctx, FileKind, Kind, Name, Result, SetAttr, Time};

/// Where they are put: in the first of these that can be a directory.
const DIRECTORIES: [&[u8]; 2] = [b"lost+found", b"lost+found.1"];

/// Gives names to inodes, on a volume whose lists are right, as far as there is room. Gives how many
/// sectors were written.
///
/// # Errors
/// `Corrupt`; `Io`.
pub(super) fn mend(
    dev: &Arc<dyn BlockDevice>,
    order: Option<Order>,
    lost: &BTreeSet<u32>,
    now: Time,
) -> Result<u64> {
    let counted = Arc::new(Recorder::counting(dev.clone()));
    let attached = Attached::to_mend(counted.clone(), order)?;
    let (cred, cancel) = (Cred::root(), Cancel::new());
    let cx = Ctx {
        cred: &cred,
        now,
        cancel: &cancel,
    };
    for &ino in lost {
        match attached.change(&cx, |tree| connect(tree, ino)) {
            Err(e) if e == Kind::NoSpace => break,
            done => done?,
        }
    }
    attached.sync()?;
    Ok(counted.counts().write_bytes / 512)
}

fn connect(tree: &mut Tree<'_>, ino: u32) -> Step<()> {
    let inode = match tree.files.edit.inode(ino) {
        Err(e) if e == Kind::Stale => return Ok(()),
        inode => inode?,
    };
    let into = directory(tree)?;
    let text = free_text(tree, &into, ino)?;
    tree.entries(into.ino).add(text.as_bytes(), ino)?;
    if inode.kind() == Some(FileKind::Dir) {
        // The counts of links are put right by the next round, and `..`, if there is none.
        tree.files.edit.node(ino)?.mem.nlink = inode.nlink.max(2);
        tree.files.edit.node(into.ino)?.mem.nlink += 1;
        if let Some((_, at)) = tree.search(&inode, b"..")? {
            tree.entries(ino).redirect(at, into.ino, None)?;
        }
        return Ok(());
    }
    tree.files.edit.node(ino)?.mem.nlink = 1;
    Ok(())
}

/// Returns a name for an inode that is not taken.
fn free_text(tree: &Tree<'_>, into: &Inode, ino: u32) -> Step<String> {
    let mut taken = format!("#{ino:05}");
    for number in 1_u32.. {
        if tree.search(into, taken.as_bytes())?.is_none() {
            break;
        }
        taken = format!("#{ino:05}.{number}");
    }
    Ok(taken)
}

/// Returns the directory, made if it is not there.
///
/// # Errors
/// `NotDir` if something else has both names; as [`Tree::make`].
fn directory(tree: &mut Tree<'_>) -> Step<Inode> {
    let root = tree.files.edit.inode(ROOT_INO)?;
    for text in DIRECTORIES {
        let Some((ino, _)) = tree.search(&root, text)? else {
            let name = Name::new(text).map_err(|_| Kind::Invalid)?;
            return tree.make(root.id()?, name, &New::Dir, &SetAttr::mode(0o700));
        };
        let inode = tree.files.edit.inode(ino)?;
        if inode.kind() == Some(FileKind::Dir) {
            return Ok(inode);
        }
    }
    Err(Kind::NotDir.into())
}
