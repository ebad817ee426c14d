//! Making and removing names.

use crate::attached::{Attached, Unix, dir_of, dir_of_mut};
use crate::commit::{Epoch, Step};
use crate::devices::device_text;
use crate::dir::Dir;
use crate::locate::Located;
use crate::node::{Body, Node};
use crate::ondisk::{DirEntry, ENTRY_LEN, attr};
use crate::runs::Runs;
use crate::short::{DOT, DOT_DOT, Short};
use std::sync::Arc;
use volary_block::Stage;
use volary_core::{
    Create, Ctx, Entry, Error, FileKind, Kind, Mode, Name, NodeId, OpenId, Result, SetAttr,
};
use zerocopy::IntoBytes;

/// Longest target of a symlink: what POSIX systems take.
const TARGET_MAX: usize = 4095;

impl Attached {
    /// The directory of an id, which must have a name still.
    pub(crate) fn dir(&self, id: NodeId) -> Result<Arc<Node>> {
        let node = self.resolve(id)?;
        if !node.is_dir() {
            return Err(Kind::NotDir.into());
        }
        Ok(node)
    }

    /// A name in its folded form.
    pub(crate) fn folded(&self, name: Name<'_>) -> Vec<u8> {
        let mut folded = Vec::with_capacity(name.as_bytes().len());
        self.names.fold(name.as_bytes(), &mut folded);
        folded
    }

    pub(crate) fn lookup_entry(&self, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let node = self.dir(dir)?;
        let body = self.read_index(&node)?;
        let dir = dir_of(&body)?;
        let found = self.locate_shown(dir, &self.folded(name))?;
        self.entry(&*self.node_of(&found)?)
    }

    /// A node as `lookup` gives it.
    pub(crate) fn entry(&self, node: &Node) -> Result<Entry> {
        Ok(Entry {
            node: node.id,
            attr: self.attr(node),
        })
    }

    pub(crate) fn create_file(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        self.writable()?;
        let parent = self.dir(dir)?;
        let mut body = self.write_dir(&parent)?;
        let dir = dir_of_mut(&mut body)?;
        let folded = self.folded(name);
        if let Some(found) = self.locate(dir, &folded)? {
            if how == Create::New || self.owners.is_table(dir.first, found.span.slot) {
                return Err(Kind::Exists.into());
            }
            let node = self.node_of(&found)?;
            let open = self.open_file(&node, Mode::ReadWrite)?;
            drop(body);
            if how == Create::Truncate
                && let Err(e) = self.set_size(cx, &node, 0)
            {
                let _ = self.close_open(open);
                return Err(e);
            }
            return Ok((self.entry(&node)?, open));
        }
        let entry = self.new_entry(cx, FileKind::File, 0, set)?;
        let node = self.add(cx, &parent, dir, name.as_bytes(), entry)?;
        let open = self.add_open(node.clone(), Mode::ReadWrite);
        drop(body);
        if let Some(size) = set.size.filter(|&s| s > 0) {
            self.set_size(cx, &node, size)?;
        }
        Ok((self.entry(&node)?, open))
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
        let mut slots = self.plan(dir, name, &entry)?;
        let located = self.change(|epoch| {
            let located = self.insert(dir, epoch, &mut slots, false)?;
            self.modified(parent, cx.now);
            Ok(located)
        })?;
        self.node_of(&located)
    }

    /// Adds a file under a short name, whatever the names of the mount.
    pub(crate) fn add_short(
        &self,
        parent: &Arc<Node>,
        short: Short,
        entry: DirEntry,
    ) -> Result<Located> {
        let mut body = self.write_dir(parent)?;
        let dir = dir_of_mut(&mut body)?;
        let mut entry = entry;
        entry.DIR_Name = short;
        self.change(|epoch| self.insert_short(dir, epoch, &entry))
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
        let parent = self.dir(dir)?;
        let mut body = self.write_dir(&parent)?;
        let dir = dir_of_mut(&mut body)?;
        if self.locate(dir, &self.folded(name))?.is_some() {
            return Err(Kind::Exists.into());
        }
        let runs = self.put_content(content)?;
        entry.set_first_cluster(runs.first().unwrap_or(0), self.layout.is_fat32());
        if !entry.is_dir() {
            entry.DIR_FileSize.set(content.len() as u32);
        }
        let added = self.add(cx, &parent, dir, name.as_bytes(), entry);
        if added.is_err() {
            self.give_back(runs.as_slice(), None);
        }
        self.entry(&*added?)
    }

    /// Takes clusters for a content that nothing leads to yet, and writes it.
    fn put_content(&self, content: &[u8]) -> Result<Runs> {
        if content.is_empty() {
            return Ok(Runs::default());
        }
        let cluster = self.layout.cluster_len as usize;
        let count = content.len().div_ceil(cluster);
        let runs = self.change(|_| self.take_clusters(count as u32, None))?;
        let written = self.write_new(&runs, content);
        if let Err(e) = written {
            self.give_back(runs.as_slice(), None);
            return Err(e);
        }
        Ok(runs)
    }

    fn write_new(&self, runs: &Runs, content: &[u8]) -> Result<()> {
        let cluster = self.layout.cluster_len as usize;
        for (i, part) in content.chunks(cluster).enumerate() {
            let (first, _) = runs.find(i as u32).ok_or(Kind::Corrupt)?;
            let mut whole = vec![0; cluster];
            for (to, from) in whole.iter_mut().zip(part) {
                *to = *from;
            }
            let place = self.layout.cluster_offset(first);
            self.cache.write(place, &whole, Stage::DATA)?;
        }
        Ok(())
    }

    pub(crate) fn make_symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        self.writable()?;
        if target.len() > TARGET_MAX {
            return Err(Kind::NameTooLong.into());
        }
        let mut set = *set;
        set.mode = set.mode.or(Some(0o777));
        let entry = self.new_entry(cx, FileKind::Symlink, 0, &set)?;
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
        self.writable()?;
        let text = device_text(kind, rdev).unwrap_or_default();
        let in_entry = self.unix == Unix::Paper;
        if in_entry && (rdev >> 32 > 0xffff || rdev & 0xffff_ffff > 0xffff) {
            return Err(Kind::Invalid.into());
        }
        let rdev = if text.is_empty() { 0 } else { rdev };
        let entry = self.new_entry(cx, kind, rdev, set)?;
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
        self.writable()?;
        let parent = self.dir(dir)?;
        let entry = self.new_entry(cx, FileKind::Dir, 0, set)?;
        let mut body = self.write_dir(&parent)?;
        let dir = dir_of_mut(&mut body)?;
        check_has_name(&parent)?;
        if self.locate(dir, &self.folded(name))?.is_some() {
            return Err(Kind::Exists.into());
        }
        let mut slots = self.plan(dir, name.as_bytes(), &entry)?;
        let located = self.change(|epoch| {
            let runs = self.take_clusters(1, None)?;
            let first = runs.first().unwrap_or(0);
            let mut like = entry;
            let renewed = self.renew_dir(first, &mut slots, &mut like);
            let dots = renewed.map_err(Into::into);
            let dots = dots.and_then(|()| self.put_dots(first, dir.first, &like));
            let done = dots.and_then(|()| {
                epoch.bear(first);
                slots.set_first_cluster(first, self.layout.is_fat32());
                // Its place is the cluster, whatever slot it gets.
                self.insert(dir, epoch, &mut slots, true)
            });
            if done.is_err() {
                self.give_back(runs.as_slice(), None);
            } else {
                self.modified(&parent, cx.now);
            }
            done
        })?;
        self.entry(&*self.node_of(&located)?)
    }

    /// Fills a new directory's cluster: `.`, `..` and zeros.
    fn put_dots(&self, first: u32, parent: u32, like: &DirEntry) -> Step<()> {
        let fat32 = self.layout.is_fat32();
        let mut dot = *like;
        dot.DIR_Name = DOT;
        dot.DIR_Attr = attr::DIRECTORY | like.DIR_Attr & crate::paper::EXTENDED;
        dot.set_first_cluster(first, fat32);
        let mut dot_dot = dot;
        dot_dot.DIR_Name = DOT_DOT;
        dot_dot.set_first_cluster(parent, fat32);
        let mut bytes = vec![0; self.layout.cluster_len as usize];
        let two = [dot, dot_dot];
        for (to, from) in bytes.iter_mut().zip(two.as_bytes()) {
            *to = *from;
        }
        let place = self.layout.cluster_offset(first);
        Ok(self.cache.write(place, &bytes, Stage::DATA)?)
    }

    pub(crate) fn unlink_file(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.writable()?;
        let parent = self.dir(dir)?;
        let mut body = self.write_dir(&parent)?;
        let dir = dir_of_mut(&mut body)?;
        let found = self.locate_shown(dir, &self.folded(name))?;
        if found.entry.is_dir() {
            return Err(Kind::IsDir.into());
        }
        let node = self.node_of(&found)?;
        let mut content = node.body.write();
        self.take_away(cx, (&parent, dir), &found, (&node, &mut content))
    }

    /// Removes an entry of a directory, and with it the node that it leads to.
    fn take_away(
        &self,
        cx: &Ctx<'_>,
        (parent, dir): (&Arc<Node>, &mut Dir),
        found: &Located,
        (node, content): (&Arc<Node>, &mut Body),
    ) -> Result<()> {
        self.load_all(content)?;
        self.change(|epoch| {
            check_left(content, epoch)?;
            self.erase(dir, found.span, dir.stage(epoch))?;
            self.modified(parent, cx.now);
            self.lose_name(cx, node, content);
            Ok(())
        })?;
        self.left(node, found);
        if !node.is_open() {
            self.nodes.remove(node.id);
        }
        Ok(())
    }

    /// Reads the whole chain of a file.
    pub(crate) fn load_all(&self, body: &mut Body) -> Result<()> {
        match body {
            Body::File(runs) => runs.load_all(&self.table),
            Body::Dir(dir) => dir.runs.load_all(&self.table),
        }
    }

    /// Notes that a node has lost its name; unless it is open, its clusters
    /// are given back. Its chain must be known as a whole.
    pub(crate) fn lose_name(&self, cx: &Ctx<'_>, node: &Node, body: &mut Body) {
        let mut meta = node.meta.lock();
        meta.gone = true;
        meta.dirty = false;
        meta.change = self.next_change();
        meta.ctime = cx.now;
        let runs = match body {
            Body::File(runs) => runs,
            Body::Dir(dir) => {
                dir.index = None;
                &mut dir.runs
            }
        };
        if node.is_open() {
            return;
        }
        self.give_back(runs.as_slice(), None);
        *runs = Runs::default();
    }

    pub(crate) fn remove_dir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        self.writable()?;
        let _tree = self.tree.lock();
        let parent = self.dir(dir)?;
        let mut body = self.write_dir(&parent)?;
        let dir = dir_of_mut(&mut body)?;
        let found = self.locate_shown(dir, &self.folded(name))?;
        if !found.entry.is_dir() {
            return Err(Kind::NotDir.into());
        }
        let node = self.node_of(&found)?;
        let mut content = self.write_dir(&node)?;
        check_empty(dir_of(&content)?)?;
        self.take_away(cx, (&parent, dir), &found, (&node, &mut content))
    }

    /// Notes that a node is not at its place any more.
    pub(crate) fn left(&self, node: &Arc<Node>, from: &Located) {
        let key = from.place.key();
        if !node.is_dir() {
            self.nodes.moved(node, key, None);
        }
        if self.unix == Unix::Paper {
            self.nodes.leave(key);
        }
    }

    /// Ends an open. The clusters of a node without a name are given back with
    /// its last.
    ///
    /// # Errors
    /// `Stale`; what giving them back answers.
    pub(crate) fn close_open(&self, open: OpenId) -> Result<()> {
        let closed = self.opens.remove(open)?;
        let node = closed.open.node;
        if closed.is_last {
            self.table.give_up(node.id.ino.get());
        }
        if !closed.is_last || !node.meta.lock().gone {
            return Ok(());
        }
        let mut body = node.body.write();
        if node.is_open() {
            return Ok(());
        }
        self.nodes.remove(node.id);
        if self.writable().is_err() {
            return Ok(());
        }
        self.free_content(&mut body)
    }
}

/// Nothing can be made in a directory that was removed.
pub(crate) fn check_has_name(dir: &Node) -> Result<()> {
    if dir.meta.lock().gone {
        return Err(Error::note(Kind::NotFound, "the directory was removed"));
    }
    Ok(())
}

/// Asks for a commit before a directory goes that something was moved out of in this epoch: the new
/// name may be on its way as late as the loss of the directory.
pub(crate) fn check_left(content: &Body, epoch: &Epoch) -> Step<()> {
    match content {
        Body::Dir(dir) => epoch.check_left(dir.first),
        Body::File(_) => Ok(()),
    }
}

/// Whether a directory, with its index, has no entries.
pub(crate) fn check_empty(dir: &Dir) -> Result<()> {
    match &dir.index {
        Some(index) if index.count == 0 => Ok(()),
        _ => Err(Kind::NotEmpty.into()),
    }
}

const _: () = assert!(2 * ENTRY_LEN <= 512);
