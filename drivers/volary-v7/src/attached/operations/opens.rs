//! Opens of an attached volume.

use super::{Attached, State, or_fail};
use crate::change::edit::{Step, Stop};
use crate::change::node::{Node, Open};
use crate::disk::inode::Inode;
use crate::tree::names::Tree;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Ctx, Extent, FileKind, Kind, Mode, NodeId, OpenId, Result};

/// Addresses of a file that one call looks at to tell where its bytes lie.
const POINTERS_MAX: u64 = 1 << 20;

impl State {
    /// Adds an open of an inode, which stays in memory for as long.
    ///
    /// # Errors
    /// `Stale` for inode 0, which is none.
    fn add_open(&mut self, inode: &Inode, mode: Mode) -> Result<OpenId> {
        let id = inode.id()?;
        if self.nodes.get(inode.ino).is_none() {
            let node = Node::of(inode.clone(), self.nodes.floor());
            self.nodes.put(inode.ino, Some(node));
        }
        Ok(self.opens.add(inode.ino.into(), Open { id, mode }))
    }
}

impl Attached {
    /// Opens a node.
    ///
    /// # Errors
    /// `Stale`; `ReadOnly`; `IsDir` for writing a directory; `Invalid` for what is neither
    /// file nor directory; `Corrupt`; `Io`.
    pub(crate) fn open(&self, id: NodeId, mode: Mode) -> Result<OpenId> {
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
        state.add_open(&inode, mode)
    }

    /// Changes the volume as [`change`](Self::change) does, and opens the file that `act` finds or
    /// makes: nobody can remove it in between.
    ///
    /// # Errors
    /// As [`change`](Self::change).
    pub(crate) fn change_and_open(
        &self,
        cx: &Ctx<'_>,
        act: impl FnMut(&mut Tree<'_>) -> Step<Inode>,
    ) -> Result<(Inode, OpenId)> {
        self.with_changes(cx, |state| {
            let inode = self.change_state(state, cx, act)?;
            self.commit_if_synchronous(state)?;
            let open = state.add_open(&inode, Mode::ReadWrite)?;
            Ok((inode, open))
        })
    }

    /// Ends an open. A node that has no name goes with its last.
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
        let Some(mut tree) = self.tree(state, cx.now) else {
            return Ok(());
        };
        let result = match tree.files.release(ino) {
            Ok(()) => tree.files.done(),
            Err(Stop::Error(e)) => tree.files.take_back().and(Err(e)),
            Err(Stop::Commit) => tree.files.take_back(),
        };
        state.epoch.is_dirty = true;
        let result = or_fail(state, result);
        self.commit_if_synchronous(state)?;
        result
    }

    /// Appends where a file's bytes lie. Dirty data are written to the device first.
    ///
    /// # Errors
    /// `Stale`; `IsDir`; `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        open: OpenId,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        self.look(|state, reader| {
            let inode = state.nodes.load(&reader, state.opened(open)?.id)?;
            self.extents_of(&inode, bytes, out)
        })
    }

    /// The same of an inode.
    ///
    /// # Errors
    /// As [`extents`](Self::extents).
    pub(crate) fn extents_of(
        &self,
        inode: &Inode,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        if self.takes_changes() {
            self.cache.write_stage(Stage::DATA)?;
        }
        self.as_reader().extents(inode, bytes, POINTERS_MAX, out)
    }
}
