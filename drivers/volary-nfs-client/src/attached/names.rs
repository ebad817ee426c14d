//! Making, removing and renaming entries.

use crate::attached::hidden::HiddenFiles;
use crate::attached::tree::{Place, RACES_MAX, Tree};
use crate::calls::entries::At;
use crate::calls::export::{Export, Who};
use crate::content::attrs::TARGET_MAX;
use crate::content::behind::Behind;
use crate::known::node::Node;
use crate::opens::open::Opens;
use crate::wire::proto::{Sattr, number_of, procedure};
use parking_lot::RwLock;
use std::sync::Arc;
use volary_core::{Create, Entry, FileKind, Kind, Mode, OpenId, RenameFlags, Result, SetAttr};
use volary_rpc::Output;

/// The operations that change names.
pub(crate) struct Names {
    export: Arc<Export>,
    behind: Arc<Behind>,
    pub(crate) tree: Tree,
    pub(crate) hidden: HiddenFiles,
    opens: Arc<Opens>,
    /// Write-locked while a name must stay free between two calls.
    naming: RwLock<()>,
}

impl Names {
    pub(crate) fn new(
        export: Arc<Export>,
        behind: Arc<Behind>,
        tree: Tree,
        hidden: HiddenFiles,
        opens: Arc<Opens>,
    ) -> Self {
        Self {
            export,
            behind,
            tree,
            hidden,
            opens,
            naming: RwLock::new(()),
        }
    }

    /// See [`create`](volary_core::FileSystem::create).
    pub(crate) fn create_file(
        &self,
        who: Who<'_>,
        place: Place<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.export.check_writable()?;
        let sattr = for_new(who, place.dir, set)?;
        let (size, sattr) = sattr.without_size();
        let (entries, attrs) = (&self.tree.entries, &self.tree.attrs);
        let at = place.at();
        let naming = self.naming.read();
        for _ in 0..RACES_MAX {
            if how != Create::New {
                match entries.look_up(who, at) {
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
            match entries.make(who, procedure::CREATE, at, put) {
                Err(e) if e == Kind::Exists && how != Create::New => {}
                Err(e) => return Err(e),
                Ok(node) => {
                    drop(naming);
                    if let Some(size) = size.filter(|&size| size > 0) {
                        attrs.set(who, &node, &SetAttr::size(size))?;
                    }
                    let entry = attrs.entry(who, &node)?;
                    return Ok((entry, self.opens.add(node, Mode::ReadWrite)));
                }
            }
        }
        Err(Kind::Busy.into())
    }

    fn open_found(&self, who: Who<'_>, node: &Arc<Node>, how: Create) -> Result<(Entry, OpenId)> {
        match node.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        let attrs = &self.tree.attrs;
        let _stays = node.going.read();
        if how == Create::Truncate {
            attrs.set(who, node, &SetAttr::size(0))?;
        } else {
            self.export.fetch_attr(who, node)?;
        }
        let entry = attrs.entry(who, node)?;
        Ok((entry, self.opens.add(Arc::clone(node), Mode::ReadWrite)))
    }

    /// Makes a node, and returns its entry.
    fn make(
        &self,
        who: Who<'_>,
        procedure: u32,
        place: Place<'_>,
        write: impl Fn(&mut Output),
    ) -> Result<Entry> {
        let _naming = self.naming.read();
        let node = self.tree.entries.make(who, procedure, place.at(), write)?;
        self.tree.attrs.entry(who, &node)
    }

    /// See [`mkdir`](volary_core::FileSystem::mkdir).
    pub(crate) fn make_dir(&self, who: Who<'_>, place: Place<'_>, set: &SetAttr) -> Result<Entry> {
        self.export.check_writable()?;
        let sattr = for_new(who, place.dir, set)?;
        let put = |out: &mut Output| sattr.write(out);
        self.make(who, procedure::MKDIR, place, put)
    }

    /// See [`mknod`](volary_core::FileSystem::mknod).
    pub(crate) fn make_node(
        &self,
        who: Who<'_>,
        place: Place<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.export.check_writable()?;
        let is_device = matches!(kind, FileKind::CharDevice | FileKind::BlockDevice);
        if !is_device && !matches!(kind, FileKind::Fifo | FileKind::Socket) {
            return Err(Kind::Invalid.into());
        }
        let sattr = for_new(who, place.dir, set)?;
        let put = |out: &mut Output| {
            out.u32(number_of(kind));
            sattr.write(out);
            if is_device {
                out.u64(rdev);
            }
        };
        self.make(who, procedure::MKNOD, place, put)
    }

    /// See [`symlink`](volary_core::FileSystem::symlink).
    pub(crate) fn make_symlink(
        &self,
        who: Who<'_>,
        place: Place<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.export.check_writable()?;
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        let sattr = for_new(who, place.dir, set)?;
        let put = |out: &mut Output| {
            sattr.write(out);
            out.opaque(target);
        };
        self.make(who, procedure::SYMLINK, place, put)
    }

    /// See [`link`](volary_core::FileSystem::link).
    pub(crate) fn link_node(
        &self,
        who: Who<'_>,
        node: &Arc<Node>,
        place: Place<'_>,
    ) -> Result<Entry> {
        self.export.check_writable()?;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        self.behind.settle(node)?;
        let _naming = self.naming.read();
        let at @ At { dir, name } = place.at();
        self.tree.entries.link(who, node, at)?;
        let names = &self.tree.entries.names;
        names.note(dir.id, dir.epoch(), name, node.id);
        self.tree.attrs.entry(who, node)
    }

    /// See [`unlink`](volary_core::FileSystem::unlink).
    pub(crate) fn remove_file(&self, who: Who<'_>, place: Place<'_>) -> Result<()> {
        self.export.check_writable()?;
        let at = place.at();
        let node = self.tree.find(who, place)?;
        if node.kind == FileKind::Dir {
            return Err(Kind::IsDir.into());
        }
        let _naming = self.naming.read();
        let _alone = node.going.write();
        if self.hidden.would_go(who, &node)? {
            return self.hidden.hide(who, at, &node);
        }
        self.remove(who, procedure::REMOVE, at, &node)
    }

    /// Removes a name, by REMOVE or RMDIR, and its cached data.
    fn remove(&self, who: Who<'_>, procedure: u32, at: At<'_>, node: &Node) -> Result<()> {
        let done = self.tree.entries.remove(who, procedure, at);
        self.tree.entries.names.forget(at.dir.id, at.name);
        node.expire();
        done?.removed()
    }

    /// See [`rmdir`](volary_core::FileSystem::rmdir).
    pub(crate) fn remove_dir(&self, who: Who<'_>, place: Place<'_>) -> Result<()> {
        self.export.check_writable()?;
        let at = place.at();
        let node = self.tree.find(who, place)?;
        if node.kind != FileKind::Dir {
            return Err(Kind::NotDir.into());
        }
        let _naming = self.naming.read();
        let hidden = self.hidden.under(node.id);
        let remove = || self.remove(who, procedure::RMDIR, at, &node);
        match remove() {
            Err(e) if e == Kind::NotEmpty && !hidden.is_empty() => {
                self.hidden.move_all(who, &hidden, &node, at.dir)?;
                remove()
            }
            done => done,
        }
    }

    /// See [`rename`](volary_core::FileSystem::rename).
    pub(crate) fn move_name(
        &self,
        who: Who<'_>,
        from: Place<'_>,
        to: Place<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        if flags == RenameFlags::SWAP {
            return Err(Kind::Unsupported.into());
        }
        self.export.check_writable()?;
        let entries = &self.tree.entries;
        let moved = self.tree.find(who, from)?;
        let (from, to) = (from.at(), to.at());
        let (shared, alone) = if flags == RenameFlags::KEEP {
            (None, Some(self.naming.write()))
        } else {
            (Some(self.naming.read()), None)
        };
        let there = match entries.look_up(who, to) {
            Ok(there) => Some(there),
            Err(e) if e == Kind::NotFound => None,
            Err(e) => return Err(e),
        };
        let _alone = there.as_ref().map(|there| there.going.write());
        let mut kept = None;
        if let Some(there) = &there {
            // Without an existing target, the server itself reports this error.
            if moved.kind == FileKind::Dir && self.tree.is_below(who, to.dir, &moved)? {
                return Err(Kind::Invalid.into());
            }
            if flags == RenameFlags::KEEP {
                return Err(Kind::Exists.into());
            }
            match (moved.kind == FileKind::Dir, there.kind == FileKind::Dir) {
                (true, false) => return Err(Kind::NotDir.into()),
                (false, true) => return Err(Kind::IsDir.into()),
                _ => {}
            }
            // A rename onto the same node replaces nothing; the server may only change the case of
            // the name.
            if there.id != moved.id && self.hidden.would_go(who, there)? {
                self.hidden.keep_replaced(who, to, there)?;
                kept = Some(there);
            }
        }
        let hidden = there.as_ref().map(|there| self.hidden.under(there.id));
        let mut done = entries.rename(who, from, to);
        if let (Err(e), Some(there), Some(hidden)) = (&done, &there, hidden)
            && *e == Kind::NotEmpty
            && !hidden.is_empty()
        {
            self.hidden.move_all(who, &hidden, there, to.dir)?;
            done = entries.rename(who, from, to);
        }
        moved.expire();
        there.iter().for_each(|there| there.expire());
        drop((shared, alone));
        if let (Err(_), Some(kept)) = (&done, kept) {
            // The replacement failed, and the file keeps its name; the caller gets that error.
            let _ = self.hidden.let_go(who, kept);
        }
        done?;
        entries.names.forget(from.dir.id, from.name);
        entries
            .names
            .note(to.dir.id, to.dir.epoch(), to.name, moved.id);
        Ok(())
    }
}

/// Returns the attributes for a new node. The caller's own ids are left out: the server may know
/// the caller by other ids, and may let only root name any.
fn for_new(who: Who<'_>, dir: &Node, set: &SetAttr) -> Result<Sattr> {
    const SET_GID: u32 = 0o2000;
    let mut sattr = Sattr::new(set)?;
    let above = dir.last_fattr();
    let inherits = above.mode & SET_GID != 0;
    let gid = if inherits { above.gid } else { who.cred.gid };
    sattr.uid = sattr.uid.filter(|&uid| uid != who.cred.uid);
    sattr.gid = sattr.gid.filter(|&own| own != gid);
    Ok(sattr)
}
