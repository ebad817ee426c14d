//! Opening, making and listing.

#![expect(
    unsafe_code,
    reason = "calls the plug-in, by a table that is as C says"
)]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: functions of this table, with what the table says they get"
)]

use super::Paths;
use super::ask::{gone, is_reserved, number, text};
use super::opens::{Listing, Open};
use super::tree::Seen;
use crate::convert::{self, to_set};
use volary_core::{
    Attr, Caps, Cookie, Ctx, DirBuf, Entry, FileKind, FileSystem, Kind, Mode, NodeId, OpenId,
    Result, SetAttr,
};

impl Paths {
    /// Lets the plug-in open a held node. The caller must hold `turn`.
    fn open_held(&self, cx: &Ctx<'_>, node: u64, mode: Mode) -> Result<Option<u64>> {
        let path = text(self.tree.path(node)?)?;
        let Some(f) = self.table.open else {
            return self.attr(cx, node).map(|_| None);
        };
        let (mode, mut handle) = (convert::to_mode(mode), 0);
        self.calls
            .done("open", cx, |fs, c| unsafe {
                f(fs, c, path.as_ptr(), mode, &raw mut handle)
            })
            .map_err(gone)?;
        // Others may have put another file in its place.
        let is_it = match self.caps.has(Caps::SHARED) {
            true => self.attr(cx, node).map(drop),
            false => Ok(()),
        };
        if is_it.is_err() {
            let _ = self.close_handle(cx, node, handle);
        }
        is_it.map(|()| Some(handle))
    }

    pub(super) fn open_node(&self, cx: &Ctx<'_>, node: u64, mode: Mode) -> Result<OpenId> {
        self.opens.check_room()?;
        let opened = {
            let _turn = self.turn.read();
            let kind = self.tree.kind(node)?;
            if mode != Mode::Read && kind == FileKind::Dir {
                return Err(Kind::IsDir.into());
            }
            self.tree.hold(node)?;
            let handle = match kind {
                FileKind::File => self.open_held(cx, node, mode),
                _ => self.attr(cx, node).map(|_| None),
            };
            handle.map(|handle| Open::new(node, kind, mode, handle))
        };
        match opened {
            Ok(open) => Ok(self.opens.add(open)),
            Err(e) => {
                let _ = self.let_go(cx, node);
                Err(e)
            }
        }
    }

    /// Makes a new file, and opens it.
    pub(super) fn create_new(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        name: &[u8],
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let f = self.table.create.ok_or(Kind::ReadOnly)?;
        let set = to_set(set, cx.now);
        let mut handle = 0;
        let _turn = self.turn.read();
        let entry = self.make(
            cx,
            dir,
            name,
            "create",
            FileKind::File,
            |fs, c, path| unsafe { f(fs, c, path, &raw const set, &raw mut handle) },
        )?;
        let node = number(entry.node);
        let held = self.tree.hold(node);
        if held.is_err() {
            let _ = self.close_handle(cx, node, handle);
        }
        held?;
        let open = Open::new(node, FileKind::File, Mode::ReadWrite, Some(handle));
        Ok((entry, self.opens.add(open)))
    }

    /// Opens an existing file by its name; `None` if there is none.
    pub(super) fn create_over(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        name: &[u8],
        cuts: bool,
    ) -> Result<Option<(Entry, OpenId)>> {
        let found = {
            let _turn = self.turn.read();
            self.find(cx, dir, name)
        };
        let node = match found {
            Ok((entry, _)) if entry.attr.kind == FileKind::Dir => return Err(Kind::IsDir.into()),
            Ok((entry, _)) if entry.attr.kind != FileKind::File => return Err(Kind::Invalid.into()),
            Ok((entry, _)) => entry.node,
            Err(e) if e == Kind::NotFound => return Ok(None),
            Err(e) => return Err(e),
        };
        let open = match self.open_node(cx, number(node), Mode::ReadWrite) {
            // The file was removed meanwhile.
            Err(e) if e == Kind::Stale => return Ok(None),
            opened => opened?,
        };
        let attr = match cuts {
            true => self.setattr(cx, node, &SetAttr::size(0)),
            false => self.getattr(cx, node),
        };
        match attr {
            Ok(attr) => Ok(Some((Entry { node, attr }, open))),
            Err(e) => {
                let _ = self.close(cx, open);
                Err(e)
            }
        }
    }

    /// Adds the entries of a listing after a cookie to `out`; returns true at the end.
    pub(super) fn give(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        listing: &Listing,
        from: u64,
        out: &mut DirBuf,
    ) -> Result<bool> {
        for (number, name, kind) in listing.after(from)? {
            if is_reserved(dir, name) {
                continue;
            }
            let listed = self.listed(cx, dir, name, kind, out.wants_attr())?;
            let Some((node, kind, attr)) = listed else {
                continue;
            };
            if !out.push(Cookie(number), node, kind, name, attr) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns the node of a listed name, with its attributes if they are wanted; `None` if the
    /// name is gone.
    fn listed(
        &self,
        cx: &Ctx<'_>,
        dir: u64,
        name: &[u8],
        kind: u8,
        wants_attr: bool,
    ) -> Result<Option<(NodeId, FileKind, Option<Attr>)>> {
        let told = convert::file_kind(kind.into()).ok();
        let known = self.tree.known(dir, name);
        let is_known = known.is_some_and(|node| self.tree.kind(node).ok() == told);
        // With hard links, two names may lead to one node.
        let is_one = told == Some(FileKind::Dir) || !self.caps.has(Caps::HARD_LINKS);
        let (attr, seen) = match told.filter(|_| !wants_attr && (is_known || is_one)) {
            Some(kind) => (
                None,
                Seen {
                    kind,
                    identity: (0, 0),
                },
            ),
            None => match self.look(cx, &self.tree.path_in(dir, name)?) {
                Ok((attr, seen)) => (Some(attr), seen),
                Err(e) if e == Kind::NotFound => return Ok(None),
                Err(e) => return Err(e),
            },
        };
        let node = self.tree.enter(dir, name, seen, false)?;
        let attr = attr.filter(|_| wants_attr).map(|attr| self.of(node, attr));
        let node = NodeId::new(node, 0).ok_or(Kind::Stale)?;
        Ok(Some((node, seen.kind, attr.transpose()?)))
    }

    /// Lets the plug-in close its handle. The caller must hold `turn`.
    fn close_handle(&self, cx: &Ctx<'_>, node: u64, handle: u64) -> Result<()> {
        let Some(f) = self.table.close else {
            return Ok(());
        };
        let path = self.tree.path(node).and_then(text).ok();
        let at = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
        self.calls
            .done("close", cx, |fs, c| unsafe { f(fs, c, at, handle) })
    }

    /// Ends an open that was removed from the table.
    pub(super) fn end(&self, cx: &Ctx<'_>, open: &Open) -> Result<()> {
        let closed = match open.handle {
            Some(handle) => {
                let _turn = self.turn.read();
                self.close_handle(cx, open.node, handle)
            }
            None => Ok(()),
        };
        let gone = self.let_go(cx, open.node);
        closed.and(gone)
    }
}
