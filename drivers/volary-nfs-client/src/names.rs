//! Names: found, made, removed and moved.

use crate::attrs::TARGET_MAX;
use crate::node::Node;
use crate::proto::{Sattr, error_of, number_of, procedure, status};
use crate::volume::{Changed, Volume, Who, after_status};
use crate::{fail, proto};
use std::sync::Arc;
use volary_core::{
    Create, Entry, FileKind, Kind, Mode, Name, OpenId, RenameFlags, Result, SetAttr,
};
use volary_rpc::Output;

/// How often a name is tried again that others make and remove meanwhile.
const RACES_MAX: u32 = 16;

/// A place for a name.
pub(crate) type Place<'a> = (&'a Arc<Node>, Name<'a>);

impl Volume {
    pub(crate) fn entry(self: &Arc<Self>, who: Who<'_>, node: &Arc<Node>) -> Result<Entry> {
        let attr = self.attr_of(who, node)?;
        Ok(Entry {
            node: node.id,
            attr,
        })
    }

    /// See [`lookup`](volary_core::FileSystem::lookup).
    pub(crate) fn find_entry(self: &Arc<Self>, who: Who<'_>, place: Place<'_>) -> Result<Entry> {
        let (dir, name) = place;
        let mut entry = Err(Kind::Stale.into());
        for _ in 0..RACES_MAX {
            let found = self.find(who, place)?;
            entry = self.entry(who, &found);
            if !matches!(&entry, Err(e) if *e == Kind::Stale) {
                break;
            }
            // What was there is gone; there may be another by now.
            self.nodes.unname(dir.id, name.as_bytes());
        }
        entry
    }

    /// Returns what a name leads to: as remembered while nobody else has changed the
    /// directory, and otherwise as the server says.
    ///
    /// # Errors
    /// `NotDir`, `NotFound`.
    pub(crate) fn find(&self, who: Who<'_>, (dir, name): Place<'_>) -> Result<Arc<Node>> {
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if dir.attr(self.options.cache).is_some()
            && let Some(node) = self.nodes.named(dir, name.as_bytes())
        {
            return Ok(node);
        }
        let node = self.look_up(who, dir, name.as_bytes())?;
        if self.is_hidden_here(dir, name.as_bytes(), &node) {
            return Err(Kind::NotFound.into());
        }
        Ok(node)
    }

    /// Returns whether a name is one by which an open file is kept.
    fn is_hidden_here(&self, dir: &Node, name: &[u8], node: &Node) -> bool {
        let hidden = node.hidden.lock();
        let here = hidden.as_ref();
        here.is_some_and(|hidden| hidden.dir == dir.id && hidden.name == name)
    }

    /// See [`parent`](volary_core::FileSystem::parent).
    pub(crate) fn above(&self, who: Who<'_>, dir: &Arc<Node>) -> Result<Arc<Node>> {
        if dir.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        if dir.id == self.root {
            return Ok(Arc::clone(dir));
        }
        let above = self.look_up(who, dir, b"..")?;
        if above.kind != FileKind::Dir {
            return Err(fail::nonsense("..", "no directory", "a directory"));
        }
        Ok(above)
    }

    /// See [`create`](volary_core::FileSystem::create).
    pub(crate) fn create_file(
        self: &Arc<Self>,
        who: Who<'_>,
        (dir, name): Place<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.check_writable()?;
        let sattr = self.for_new(who, dir, set)?;
        let (size, sattr) = sattr.without_size();
        let naming = self.naming.read();
        for _ in 0..RACES_MAX {
            if how != Create::New {
                match self.look_up(who, dir, name.as_bytes()) {
                    Ok(node) => return self.open_found(who, &node, how),
                    Err(e) if e == Kind::NotFound => {}
                    Err(e) => return Err(e),
                }
            }
            let put = |out: &mut Output| {
                const GUARDED: u32 = 1;
                out.u32(GUARDED);
                sattr.write(out);
            };
            match self.make(who, procedure::CREATE, dir, name.as_bytes(), put) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                Err(e) => return Err(e),
                Ok(node) => {
                    drop(naming);
                    if let Some(size) = size.filter(|&size| size > 0) {
                        self.set_attr(who, &node, &SetAttr::size(size))?;
                    }
                    let entry = self.entry(who, &node)?;
                    return Ok((entry, self.opens.add(node, Mode::ReadWrite)));
                }
            }
        }
        Err(Kind::Busy.into())
    }

    fn open_found(
        self: &Arc<Self>,
        who: Who<'_>,
        node: &Arc<Node>,
        how: Create,
    ) -> Result<(Entry, OpenId)> {
        match node.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        let _stays = node.going.read();
        if how == Create::Truncate {
            self.set_attr(who, node, &SetAttr::size(0))?;
        } else {
            self.fetch_attr(who, node)?;
        }
        let entry = self.entry(who, node)?;
        Ok((entry, self.opens.add(Arc::clone(node), Mode::ReadWrite)))
    }

    /// Returns what a new node is made with. The caller's own ids are left to the server:
    /// it may know the caller by others, and may let only root name any.
    fn for_new(&self, who: Who<'_>, dir: &Node, set: &SetAttr) -> Result<Sattr> {
        const SET_GID: u32 = 0o2000;
        let mut sattr = Sattr::new(set)?;
        let above = dir.last_fattr();
        let inherits = above.mode & SET_GID != 0;
        let gid = if inherits { above.gid } else { who.cred.gid };
        sattr.uid = sattr.uid.filter(|&uid| uid != who.cred.uid);
        sattr.gid = sattr.gid.filter(|&own| own != gid);
        Ok(sattr)
    }

    /// See [`mkdir`](volary_core::FileSystem::mkdir).
    pub(crate) fn make_dir(
        self: &Arc<Self>,
        who: Who<'_>,
        (dir, name): Place<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_writable()?;
        let sattr = self.for_new(who, dir, set)?;
        let _naming = self.naming.read();
        let put = |out: &mut Output| sattr.write(out);
        let node = self.make(who, procedure::MKDIR, dir, name.as_bytes(), put)?;
        self.entry(who, &node)
    }

    /// See [`mknod`](volary_core::FileSystem::mknod).
    pub(crate) fn make_node(
        self: &Arc<Self>,
        who: Who<'_>,
        (dir, name): Place<'_>,
        (kind, rdev): (FileKind, u64),
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_writable()?;
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        if !is_device && !matches!(kind, FileKind::Fifo | FileKind::Socket) {
            return Err(Kind::Invalid.into());
        }
        let sattr = self.for_new(who, dir, set)?;
        let _naming = self.naming.read();
        let put = |out: &mut Output| {
            out.u32(number_of(kind));
            sattr.write(out);
            if is_device {
                out.u64(rdev);
            }
        };
        let node = self.make(who, procedure::MKNOD, dir, name.as_bytes(), put)?;
        self.entry(who, &node)
    }

    /// See [`symlink`](volary_core::FileSystem::symlink).
    pub(crate) fn make_symlink(
        self: &Arc<Self>,
        who: Who<'_>,
        (dir, name): Place<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.check_writable()?;
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        let sattr = self.for_new(who, dir, set)?;
        let _naming = self.naming.read();
        let put = |out: &mut Output| {
            sattr.write(out);
            out.opaque(target);
        };
        let node = self.make(who, procedure::SYMLINK, dir, name.as_bytes(), put)?;
        self.entry(who, &node)
    }

    /// See [`link`](volary_core::FileSystem::link).
    pub(crate) fn link_node(
        self: &Arc<Self>,
        who: Who<'_>,
        node: &Arc<Node>,
        (dir, name): Place<'_>,
    ) -> Result<Entry> {
        self.check_writable()?;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        self.settle(node)?;
        let _naming = self.naming.read();
        self.link_call(who, node, dir, name.as_bytes())?;
        self.nodes
            .name(dir.id, dir.epoch(), name.as_bytes(), node.id);
        self.entry(who, node)
    }

    /// LINK.
    pub(crate) fn link_call(
        &self,
        who: Who<'_>,
        node: &Arc<Node>,
        dir: &Arc<Node>,
        name: &[u8],
    ) -> Result<()> {
        let (of_node, of_dir) = (node.begin_change(), dir.begin_change());
        let put = |out: &mut Output| {
            node.fh.write(out);
            dir.fh.write(out);
            out.opaque(name);
        };
        let (status, done) = self.nfs(who, procedure::LINK, put)?;
        let mut input = after_status(&done);
        let after = proto::Fattr::read_maybe(&mut input).map_err(fail::garbage)?;
        let wcc = proto::Wcc::read(&mut input).map_err(fail::garbage)?;
        of_node.end(&proto::Wcc {
            before: None,
            after,
        })?;
        of_dir.end(&wcc)?;
        match status {
            status::OK => Ok(()),
            status => Err(error_of(status)),
        }
    }

    /// See [`unlink`](volary_core::FileSystem::unlink).
    pub(crate) fn remove_file(self: &Arc<Self>, who: Who<'_>, place: Place<'_>) -> Result<()> {
        self.check_writable()?;
        let (dir, name) = place;
        let node = self.find(who, place)?;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let _naming = self.naming.read();
        let _alone = node.going.write();
        if self.would_go(who, &node)? {
            return self.hide(who, place, &node);
        }
        let done = self.remove_name(who, procedure::REMOVE, dir, name.as_bytes());
        self.nodes.unname(dir.id, name.as_bytes());
        node.expire();
        done?.removed()
    }

    /// REMOVE or RMDIR.
    pub(crate) fn remove_name(
        &self,
        who: Who<'_>,
        procedure: u32,
        dir: &Arc<Node>,
        name: &[u8],
    ) -> Result<Changed> {
        self.change(who, procedure, dir, |out| {
            dir.fh.write(out);
            out.opaque(name);
        })
    }

    /// See [`rmdir`](volary_core::FileSystem::rmdir).
    pub(crate) fn remove_dir(self: &Arc<Self>, who: Who<'_>, place: Place<'_>) -> Result<()> {
        self.check_writable()?;
        let (dir, name) = place;
        let node = self.find(who, place)?;
        if node.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let _naming = self.naming.read();
        let hidden = self.hidden.under(node.id);
        let remove = || {
            let done = self.remove_name(who, procedure::RMDIR, dir, name.as_bytes());
            self.nodes.unname(dir.id, name.as_bytes());
            node.expire();
            done?.removed()
        };
        match remove() {
            Err(e) if e == Kind::NotEmpty && !hidden.is_empty() => {
                self.move_hidden(who, &hidden, (&node, dir))?;
                remove()
            }
            done => done,
        }
    }

    /// See [`rename`](volary_core::FileSystem::rename).
    pub(crate) fn move_name(
        self: &Arc<Self>,
        who: Who<'_>,
        from: Place<'_>,
        to: Place<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::SWAP {
            return Err(Kind::Unsupported.into());
        }
        self.check_writable()?;
        let moved = self.find(who, from)?;
        let (shared, alone) = if flags == RenameFlags::KEEP {
            (None, Some(self.naming.write()))
        } else {
            (Some(self.naming.read()), None)
        };
        let there = match self.look_up(who, to.0, to.1.as_bytes()) {
            Ok(there) => Some(there),
            Err(e) if e == Kind::NotFound => None,
            Err(e) => return Err(e),
        };
        let _alone = there.as_ref().map(|there| there.going.write());
        let mut kept = None;
        if let Some(there) = &there {
            // Else the server says so.
            if moved.kind == FileKind::Dir && self.is_below(who, to.0, &moved)? {
                return Err(Kind::Invalid.into());
            }
            if flags == RenameFlags::KEEP {
                return Err(Kind::Exists.into());
            }
            if there.id == moved.id {
                return Ok(());
            }
            match (moved.kind == FileKind::Dir, there.kind == FileKind::Dir) {
                (true, false) => return Err(Kind::NotDir.into()),
                (false, true) => return Err(Kind::IsDir.into()),
                _ => {}
            }
            if self.would_go(who, there)? {
                self.keep_replaced(who, to, there)?;
                kept = Some(there);
            }
        }
        let places = ((from.0, from.1.as_bytes()), (to.0, to.1.as_bytes()));
        let hidden = there.as_ref().map(|there| self.hidden.under(there.id));
        let mut done = self.rename_call(who, places.0, places.1);
        if let (Err(e), Some(there), Some(hidden)) = (&done, &there, hidden)
            && *e == Kind::NotEmpty
            && !hidden.is_empty()
        {
            self.move_hidden(who, &hidden, (there, to.0))?;
            done = self.rename_call(who, places.0, places.1);
        }
        moved.expire();
        there.iter().for_each(|there| there.expire());
        drop((shared, alone));
        if let (Err(_), Some(kept)) = (&done, kept) {
            // It has its name still; what is told is why.
            let _ = self.let_go(who, kept);
        }
        done?;
        self.nodes.unname(from.0.id, places.0.1);
        self.nodes.name(to.0.id, to.0.epoch(), places.1.1, moved.id);
        Ok(())
    }

    /// Returns whether `dir` is `above` or in it, as far as the server tells.
    fn is_below(&self, who: Who<'_>, dir: &Arc<Node>, above: &Node) -> Result<bool> {
        // As deep as a path can be; a server whose `..` has no end stops here.
        const DEPTH_MAX: u32 = 4096;
        let mut at = Arc::clone(dir);
        for _ in 0..DEPTH_MAX {
            if at.id == above.id {
                return Ok(true);
            }
            if at.id == self.root {
                return Ok(false);
            }
            let next = self.above(who, &at)?;
            if next.id == at.id {
                return Ok(false);
            }
            at = next;
        }
        Err(fail::nonsense(
            "..",
            "a way without end",
            "a way to the root",
        ))
    }

    /// RENAME.
    pub(crate) fn rename_call(
        &self,
        who: Who<'_>,
        (from, name): (&Arc<Node>, &[u8]),
        (to, new_name): (&Arc<Node>, &[u8]),
    ) -> Result<()> {
        let of_from = from.begin_change();
        let of_to = (from.id != to.id).then(|| to.begin_change());
        let put = |out: &mut Output| {
            from.fh.write(out);
            out.opaque(name);
            to.fh.write(out);
            out.opaque(new_name);
        };
        let (status, done) = self.nfs(who, procedure::RENAME, put)?;
        let mut input = after_status(&done);
        let first = proto::Wcc::read(&mut input).map_err(fail::garbage)?;
        let second = proto::Wcc::read(&mut input).map_err(fail::garbage)?;
        of_from.end(&first)?;
        if let Some(of_to) = of_to {
            of_to.end(&second)?;
        }
        match status {
            status::OK => Ok(()),
            status::NOENT if done.is_resent => Ok(()),
            status => Err(error_of(status)),
        }
    }
}
