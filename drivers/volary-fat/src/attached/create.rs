//! Making files, directories and other nodes.

use crate::attached::entries::Located;
use crate::attached::file::{File, put_new};
use crate::attached::node::Node;
use crate::attached::operations::Attached;
use crate::base::epoch::Step;
use crate::base::store::Store;
use crate::directory::dir::Dir;
use crate::unix::devices::device_text;
use crate::unix::paper::EXTENDED;
use crate::unix::which::Unix;
use crate::volume::ondisk::{DOT, DOT_DOT, DirEntry, ENTRY_LEN, Short, attr};
use std::sync::Arc;
use volary_block::Stage;
use volary_core::{
    Create, Ctx, Entry, Error, FileKind, Kind, Mode, Name, NodeId, OpenId, Result, SetAttr,
};
use zerocopy::IntoBytes;

/// Longest target of a symlink: what POSIX systems take.
const TARGET_MAX: usize = 4095;

impl Attached {
    pub(crate) fn create_file(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.store.writable()?;
        let parent = self.tree.dir(dir)?;
        let mut body = self.tree.write_dir(&parent)?;
        let dir = body.dir_mut()?;
        let folded = self.tree.entries.folded(name);
        if let Some(found) = self.tree.entries.locate(dir, &folded)? {
            if how == Create::New || self.tree.is_owner_table(dir.first, found.span.slot) {
                return Err(Kind::Exists.into());
            }
            let node = self.tree.node_of(&found)?;
            let open = self.open_file(&node, Mode::ReadWrite)?;
            drop(body);
            if how == Create::Truncate
                && let Err(e) = File::new(&self.commits, &node).set_size(cx, 0)
            {
                let _ = self.close_open(open);
                return Err(e);
            }
            return Ok((self.tree.attrs.entry(&node), open));
        }
        let entry = self
            .tree
            .attrs
            .new_entry(&self.commits, cx, FileKind::File, 0, set)?;
        let node = self.add(cx, &parent, dir, name.as_bytes(), entry)?;
        let open = self.add_open(node.clone(), Mode::ReadWrite);
        drop(body);
        if let Some(size) = set.size.filter(|&s| s > 0) {
            File::new(&self.commits, &node).set_size(cx, size)?;
        }
        Ok((self.tree.attrs.entry(&node), open))
    }

    /// Opens a regular file.
    fn open_file(&self, node: &Arc<Node>, mode: Mode) -> Result<OpenId> {
        match node.kind {
            FileKind::File => Ok(self.add_open(node.clone(), mode)),
            FileKind::Dir => Err(Kind::IsDir.into()),
            _ => Err(Kind::Invalid.into()),
        }
    }

    /// Adds an entry to a directory that is locked and does not have the name.
    fn add(
        &self,
        cx: &Ctx<'_>,
        parent: &Arc<Node>,
        dir: &mut Dir,
        name: &[u8],
        entry: DirEntry,
    ) -> Result<Arc<Node>> {
        check_has_name(parent)?;
        let mut slots = self.tree.entries.plan(dir, name, &entry)?;
        let located = self.commits.change(|epoch| {
            let located =
                self.tree
                    .entries
                    .insert(&self.tree.attrs, dir, epoch, &mut slots, false)?;
            self.commits.modified(parent, cx.now);
            Ok(located)
        })?;
        self.tree.node_of(&located)
    }

    /// Adds a file under a short name, whatever the names of the mount.
    pub(crate) fn add_short(
        &self,
        parent: &Arc<Node>,
        short: Short,
        entry: DirEntry,
    ) -> Result<Located> {
        let mut body = self.tree.write_dir(parent)?;
        let dir = body.dir_mut()?;
        let mut entry = entry;
        entry.DIR_Name = short;
        self.commits.change(|epoch| {
            self.tree
                .entries
                .insert_short(&self.tree.attrs, dir, epoch, &entry)
        })
    }

    /// Makes a node that is no regular file, with its content.
    fn make(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        mut entry: DirEntry,
        content: &[u8],
    ) -> Result<Entry> {
        let parent = self.tree.dir(dir)?;
        let mut body = self.tree.write_dir(&parent)?;
        let dir = body.dir_mut()?;
        if self
            .tree
            .entries
            .locate(dir, &self.tree.entries.folded(name))?
            .is_some()
        {
            return Err(Kind::Exists.into());
        }
        let runs = put_new(&self.commits, content)?;
        entry.set_first_cluster(runs.first().unwrap_or(0), self.store.layout.is_fat32());
        if !entry.is_dir() {
            entry.DIR_FileSize.set(content.len() as u32);
        }
        let added = self.add(cx, &parent, dir, name.as_bytes(), entry);
        if added.is_err() {
            self.store.give_back(runs.as_slice(), None);
        }
        Ok(self.tree.attrs.entry(&*added?))
    }

    pub(crate) fn make_symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.store.writable()?;
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        let mut set = *set;
        set.mode = set.mode.or(Some(0o777));
        let entry = self
            .tree
            .attrs
            .new_entry(&self.commits, cx, FileKind::Symlink, 0, &set)?;
        self.make(cx, dir, name, entry, target)
    }

    pub(crate) fn make_special(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.store.writable()?;
        let text = device_text(kind, rdev).unwrap_or_default();
        let in_entry = self.tree.attrs.unix == Unix::Paper;
        if in_entry && (rdev >> 32 > 0xffff || rdev & 0xffff_ffff > 0xffff) {
            return Err(Kind::Invalid.into());
        }
        let rdev = if text.is_empty() { 0 } else { rdev };
        let entry = self
            .tree
            .attrs
            .new_entry(&self.commits, cx, kind, rdev, set)?;
        let content = if in_entry { &[] } else { text.as_bytes() };
        self.make(cx, dir, name, entry, content)
    }

    pub(crate) fn make_dir(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        set: &SetAttr,
    ) -> Result<Entry> {
        self.store.writable()?;
        let parent = self.tree.dir(dir)?;
        let entry = self
            .tree
            .attrs
            .new_entry(&self.commits, cx, FileKind::Dir, 0, set)?;
        let mut body = self.tree.write_dir(&parent)?;
        let dir = body.dir_mut()?;
        check_has_name(&parent)?;
        if self
            .tree
            .entries
            .locate(dir, &self.tree.entries.folded(name))?
            .is_some()
        {
            return Err(Kind::Exists.into());
        }
        let mut slots = self.tree.entries.plan(dir, name.as_bytes(), &entry)?;
        let located = self.commits.change(|epoch| {
            let runs = self.store.take_clusters(1, None)?;
            let first = runs.first().unwrap_or(0);
            let mut like = entry;
            let entries = &self.tree.entries;
            let renewed = entries.renew_dir(&self.tree.attrs, first, &mut slots, &mut like);
            let dots = renewed.map_err(Into::into);
            let dots = dots.and_then(|()| put_dots(&self.store, first, dir.first, &like));
            let done = dots.and_then(|()| {
                epoch.bear(first);
                slots.set_first_cluster(first, self.store.layout.is_fat32());
                // Its place is the cluster, whatever slot it gets.
                self.tree
                    .entries
                    .insert(&self.tree.attrs, dir, epoch, &mut slots, true)
            });
            if done.is_err() {
                self.store.give_back(runs.as_slice(), None);
            } else {
                self.commits.modified(&parent, cx.now);
            }
            done
        })?;
        Ok(self.tree.attrs.entry(&*self.tree.node_of(&located)?))
    }
}

/// Fills a new directory's cluster: `.`, `..` and zeros.
fn put_dots(store: &Store, first: u32, parent: u32, like: &DirEntry) -> Step<()> {
    let fat32 = store.layout.is_fat32();
    let mut dot = *like;
    dot.DIR_Name = DOT;
    dot.DIR_Attr = attr::DIRECTORY | like.DIR_Attr & EXTENDED;
    dot.set_first_cluster(first, fat32);
    let mut dot_dot = dot;
    dot_dot.DIR_Name = DOT_DOT;
    dot_dot.set_first_cluster(parent, fat32);
    let mut bytes = vec![0; store.layout.cluster_len as usize];
    let two = [dot, dot_dot];
    for (to, from) in bytes.iter_mut().zip(two.as_bytes()) {
        *to = *from;
    }
    let place = store.layout.cluster_offset(first);
    Ok(store.cache.write(place, &bytes, Stage::DATA)?)
}

/// Fails if the directory was removed: nothing can be made in it.
pub(crate) fn check_has_name(dir: &Node) -> Result<()> {
    if dir.meta.lock().gone {
        return Err(Error::note(Kind::NotFound, "the directory was removed"));
    }
    Ok(())
}

const _: () = assert!(2 * ENTRY_LEN <= 512);
