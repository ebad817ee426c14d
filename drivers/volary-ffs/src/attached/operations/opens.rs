//! Opens of an attached volume.

use super::{Attached, State};
use crate::change::edit::{Step, Stop};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::{Node, Open};
use crate::tree::names::Tree;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Ctx, Error, Extent, FileKind, Kind, Mode, NodeId, OpenId, Place, Result};

/// Pointers of a file that one call visits to find where its bytes lie: 8 GiB in blocks of 8 KiB.
const POINTERS_MAX: u64 = 1 << 20;

impl State {
    /// Adds an open of an inode, which stays in memory while it is open.
    ///
    /// # Errors
    /// `Stale` for inode 0, which does not exist.
    fn add_open(&mut self, cx: &Ctx<'_>, inode: &Inode, mode: Mode) -> Result<OpenId> {
        let open = Open {
            id: inode.id()?,
            mode,
            is_roots: cx.cred.is_root(),
        };
        if self.nodes.get(inode.ino).is_none() {
            let node = Node::of(inode.clone(), self.nodes.floor());
            self.nodes.put(inode.ino, Some(node));
        }
        Ok(self.opens.add(inode.ino.into(), open))
    }
}

impl Attached {
    /// Opens a node.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; `IsDir` for writing a directory; `Invalid` for a node that is neither a
    /// file nor a directory; `Unsupported` for a snapshot; `Corrupt`; `Io`.
    pub(crate) fn open(&self, cx: &Ctx<'_>, id: NodeId, mode: Mode) -> Result<OpenId> {
        let mut guard = self.state.write();
        let state = &mut *guard;
        state.alive()?;
        if mode != Mode::Read {
            self.writable(state)?;
        }
        let inode = state.nodes.load(&self.as_reader(), id)?;
        match inode.kind() {
            Some(FileKind::File) => {}
            Some(FileKind::Dir) if mode == Mode::Read => {}
            Some(FileKind::Dir) => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if inode.is_snapshot(&self.volume) {
            let words = "the file is a snapshot of the volume";
            return Err(Error::note(Kind::Unsupported, words));
        }
        state.add_open(cx, &inode, mode)
    }

    /// Changes the volume as [`change`](Self::change) does, and opens the file that `act` finds or
    /// makes. Nobody can remove the file in between.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_and_open(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<Inode>,
    ) -> Result<(Inode, OpenId)> {
        self.with_changes(|state| {
            let inode = self.change_state(state, cx, act)?;
            if self.is_synchronous {
                self.commit_state(state, cx.now)?;
            }
            let open = state.add_open(cx, &inode, Mode::ReadWrite)?;
            Ok((inode, open))
        })
    }

    /// Closes an open. A node without a name is freed with its last open.
    ///
    /// # Errors
    /// `Stale`; `Corrupt`; `Io`.
    pub(crate) fn close(&self, cx: &Ctx<'_>, open: OpenId) -> Result<()> {
        let mut guard = self.state.write();
        let state = &mut *guard;
        state.alive()?;
        let closed = state.opens.remove(open)?;
        let ino = u32::try_from(closed.node).unwrap_or(0);
        let Some(node) = state.nodes.get(ino).filter(|_| closed.is_last) else {
            return Ok(());
        };
        if let Some(alloc) = &mut state.alloc {
            alloc.give_up(ino);
        }
        if node.is_gone() {
            return Ok(());
        }
        let (is_nameless, is_dirty) = (node.is_nameless, node.is_dirty);
        if !is_nameless || self.writable(state).is_err() {
            if !is_dirty {
                state.nodes.put(ino, None);
            }
            return Ok(());
        }
        let Some(mut tree) = self.tree(state, cx.now, cx.cred.is_root()) else {
            return Ok(());
        };
        let released = tree.release(ino).and_then(|()| tree.charge());
        let result = match released {
            Ok(()) => tree.done(),
            Err(Stop::Error(e)) => tree.take_back().and(Err(e)),
            Err(Stop::Commit) => tree.take_back(),
        };
        state.epoch.is_dirty = true;
        if self.is_synchronous {
            self.commit_state(state, cx.now)?;
        }
        result
    }

    /// Returns where a file's bytes lie on the device. Writes to it that were cached are on the
    /// device then.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        open: OpenId,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.look(|state, reader| {
            let inode = state.nodes.load(&reader, state.opened(open)?.id)?;
            self.extents_of(&reader, &inode, bytes, out)
        })
    }

    /// Does the same as [`extents`](Self::extents) for an inode.
    ///
    /// # Errors
    /// As [`extents`](Self::extents).
    pub(crate) fn extents_of(
        &self,
        reader: &Reader<'_>,
        inode: &Inode,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        if self.takes_changes() {
            self.cache.write_stage(Stage::DATA)?;
        }
        let end = bytes.end.min(inode.size);
        let known = reader.some_runs(inode, bytes, POINTERS_MAX, &mut |run| {
            out.push(Extent {
                offset: run.offset,
                len: run.len,
                place: run.place.map_or(Place::Hole, Place::Device),
            });
            Ok(())
        })?;
        // The rest is not known yet. The caller can ask again from there.
        if known < end {
            out.push(Extent {
                offset: known,
                len: end - known,
                place: Place::Encoded,
            });
        }
        Ok(())
    }
}
