//! Removing and renaming, and files that are removed while open.

#![expect(
    unsafe_code,
    reason = "calls the plug-in, by a table that is as C says"
)]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: functions of this table, with what the table says they get"
)]

use super::Paths;
use super::ask::{REMOVED, is_reserved, number, text};
use super::tree::ROOT;
use crate::abi::{VOLARY_RENAME_REPLACE, VOLARY_RENAME_SWAP};
use std::sync::atomic::Ordering;
use volary_core::{Caps, Ctx, Entry, Error, FileKind, Kind, Name, NodeId, RenameFlags, Result};

/// A name in a directory.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    dir: u64,
    name: &'a [u8],
}

impl<'a> Place<'a> {
    pub(super) fn new(dir: NodeId, name: Name<'a>) -> Self {
        Self {
            dir: number(dir),
            name: name.as_bytes(),
        }
    }
}

/// A file that was renamed or linked to a reserved name, to free its old name.
struct Aside {
    node: u64,
    hidden: Vec<u8>,
    path: Vec<u8>,
    /// It was linked, so it has its old name too.
    is_linked: bool,
}

fn in_root(name: &[u8]) -> Vec<u8> {
    [b"/", name].concat()
}

impl Paths {
    /// Removes a name of a file.
    pub(super) fn unlink_at(&self, cx: &Ctx<'_>, at: Place<'_>) -> Result<()> {
        let _alone = self.turn.write();
        let (entry, path) = self.find(cx, at.dir, at.name)?;
        if entry.attr.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        match self.tree.is_last_of_open(at.dir, at.name) {
            Some(node) => {
                let aside = self.put_aside(cx, node, &path, false)?;
                self.tree.hide(node, &aside.hidden);
            }
            None => {
                self.unlink_path(cx, &path)?;
                self.tree.remove(at.dir, at.name);
            }
        }
        self.opens.gone(at.dir, at.name);
        Ok(())
    }

    fn unlink_path(&self, cx: &Ctx<'_>, path: &[u8]) -> Result<()> {
        let f = self.table.unlink.ok_or(Kind::ReadOnly)?;
        let path = text(path)?;
        self.calls
            .done("unlink", cx, |fs, c| unsafe { f(fs, c, path.as_ptr()) })
    }

    pub(super) fn rmdir_at(&self, cx: &Ctx<'_>, at: Place<'_>) -> Result<()> {
        let f = self.table.rmdir.ok_or(Kind::ReadOnly)?;
        let _alone = self.turn.write();
        let (entry, path) = self.find(cx, at.dir, at.name)?;
        if entry.attr.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let path = text(path)?;
        self.calls
            .done("rmdir", cx, |fs, c| unsafe { f(fs, c, path.as_ptr()) })?;
        self.tree.remove(at.dir, at.name);
        self.opens.gone(at.dir, at.name);
        Ok(())
    }

    fn rename_path(&self, cx: &Ctx<'_>, from: &[u8], to: &[u8], flags: u32) -> Result<()> {
        let f = self.table.rename.ok_or(Kind::ReadOnly)?;
        let (from, to) = (text(from)?, text(to)?);
        self.calls.done("rename", cx, |fs, c| unsafe {
            f(fs, c, from.as_ptr(), to.as_ptr(), flags)
        })
    }

    pub(super) fn rename_at(
        &self,
        cx: &Ctx<'_>,
        from: Place<'_>,
        to: Place<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::SWAP && !self.caps.has(Caps::SWAP) {
            return Err(Kind::Unsupported.into());
        }
        let _alone = self.turn.write();
        let (moved, old) = self.find(cx, from.dir, from.name)?;
        let new = self.tree.path_in(to.dir, to.name)?;
        let there = match self.find(cx, to.dir, to.name) {
            Ok((there, _)) => Some(there),
            Err(e) if e == Kind::NotFound => None,
            Err(e) => return Err(e),
        };
        if flags == RenameFlags::SWAP {
            let there = there.ok_or(Kind::NotFound)?;
            if goes_into_itself(&moved, &old, &new) || goes_into_itself(&there, &new, &old) {
                return Err(Kind::Invalid.into());
            }
            self.rename_path(cx, &old, &new, VOLARY_RENAME_SWAP)?;
            self.tree.swap(from.dir, from.name, to.dir, to.name);
            return Ok(());
        }
        if goes_into_itself(&moved, &old, &new) {
            return Err(Kind::Invalid.into());
        }
        self.check_free(to.dir, to.name)?;
        match there {
            Some(_) if flags == RenameFlags::KEEP => return Err(Kind::Exists.into()),
            Some(there) if there.node == moved.node => return Ok(()),
            Some(there) => check_replacing(moved.attr.kind, there.attr.kind)?,
            None => {}
        }
        self.replace(cx, &old, &new, to)?;
        self.tree.rename(from.dir, from.name, to.dir, to.name);
        self.opens.gone(from.dir, from.name);
        Ok(())
    }

    /// Renames. First puts aside an open file that would lose its last name.
    fn replace(&self, cx: &Ctx<'_>, old: &[u8], new: &[u8], to: Place<'_>) -> Result<()> {
        let Some(node) = self.tree.is_last_of_open(to.dir, to.name) else {
            return self.rename_path(cx, old, new, VOLARY_RENAME_REPLACE);
        };
        let aside = self.put_aside(cx, node, new, true)?;
        let done = self.rename_path(cx, old, new, VOLARY_RENAME_REPLACE);
        match done {
            Ok(()) => self.tree.hide(aside.node, &aside.hidden),
            Err(_) => self.put_back(cx, &aside)?,
        }
        done
    }

    /// Keeps the file at `path` under a reserved name in the root: by a hard link if possible,
    /// otherwise by a rename.
    ///
    /// # Errors
    /// `Busy` if neither is possible; the plug-in's.
    fn put_aside(&self, cx: &Ctx<'_>, node: u64, path: &[u8], may_link: bool) -> Result<Aside> {
        let number = self.removed.fetch_add(1, Ordering::Relaxed);
        let hidden = [REMOVED, format!("{number:x}").as_bytes()].concat();
        if self.table.rename.is_none() || hidden.len() > self.caps.name_max.into() {
            let words = "it is open, and the plug-in has no way to keep it without its name";
            return Err(Error::note(Kind::Busy, words));
        }
        let to = in_root(&hidden);
        let link = self
            .table
            .link
            .filter(|_| may_link && self.caps.has(Caps::HARD_LINKS));
        match link {
            Some(link) => {
                let (path, to) = (text(path)?, text(to)?);
                self.calls.done("link", cx, |fs, c| unsafe {
                    link(fs, c, path.as_ptr(), to.as_ptr())
                })?;
            }
            None => self.rename_path(cx, path, &to, VOLARY_RENAME_REPLACE)?,
        }
        Ok(Aside {
            node,
            hidden,
            path: path.to_vec(),
            is_linked: link.is_some(),
        })
    }

    fn put_back(&self, cx: &Ctx<'_>, aside: &Aside) -> Result<()> {
        let from = in_root(&aside.hidden);
        match aside.is_linked {
            true => self.unlink_path(cx, &from),
            false => self.rename_path(cx, &from, &aside.path, VOLARY_RENAME_REPLACE),
        }
    }

    /// Releases an open's hold on a node, and removes a node without names. The caller must not
    /// hold `turn`.
    pub(super) fn let_go(&self, cx: &Ctx<'_>, node: u64) -> Result<()> {
        let Some(hidden) = self.tree.let_go(node) else {
            return Ok(());
        };
        let _alone = self.turn.write();
        self.unlink_path(cx, &in_root(&hidden))
    }

    /// Removes files that a former process left under reserved names.
    pub(super) fn remove_left(&self, cx: &Ctx<'_>) {
        let (true, Some(f)) = (self.caps.has(Caps::WRITE), self.table.readdir) else {
            return;
        };
        let Ok(root) = text("/") else { return };
        let room = 64 << 20;
        let names = self.calls.names(cx, room, |fs, c, list| unsafe {
            f(fs, c, root.as_ptr(), list)
        });
        // Files that cannot be listed or removed do no harm.
        let Ok(names) = names else { return };
        let all = (0..names.len()).filter_map(|at| names.get(at));
        for (name, _) in all.filter(|(name, _)| is_reserved(ROOT, name)) {
            let _ = self.unlink_path(cx, &in_root(name));
        }
    }
}

fn goes_into_itself(moved: &Entry, old: &[u8], new: &[u8]) -> bool {
    let below = new.strip_prefix(old);
    moved.attr.kind == FileKind::Dir && below.is_some_and(|rest| rest.starts_with(b"/"))
}

/// # Errors
/// `NotDir`, `IsDir`.
fn check_replacing(moved: FileKind, there: FileKind) -> Result<()> {
    match (moved == FileKind::Dir, there == FileKind::Dir) {
        (true, false) => Err(Kind::NotDir.into()),
        (false, true) => Err(Kind::IsDir.into()),
        _ => Ok(()),
    }
}
