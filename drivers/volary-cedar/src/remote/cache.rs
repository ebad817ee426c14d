//! What an attached volume does for nodes of the remote, each call under the lock.

use crate::attached::attrs::Attrs;
use crate::attached::open_files::OpenFiles;
use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::{node_id, uid_of};
use crate::change::sealing::Sealing;
use crate::name_table::entry::{Entry as Named, Head, Part, Place, Seen, dir_prefix};
use crate::remote::link::Links;
use crate::remote::link::Path;
use crate::tree::btree::Tree;
use std::collections::BTreeSet;
use volary_core::{Attr, Ctx, Entry, FileKind, Kind, Mode, Name, NodeId, OpenId, Result};

/// Names of a directory that are looked at together.
const SOME: usize = 256;

/// Nodes of the remote, as an attached volume has them.
pub(crate) struct FarNodes<'a> {
    files: &'a mut Files,
}

impl<'a> FarNodes<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Returns what is known of a node, if it is one of the remote.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn far(&mut self, node: NodeId) -> Result<Option<Head>> {
        Ok(Some(Attrs::of(self.files).head(node)?).filter(|head| head.far.is_some()))
    }

    /// Returns what a name in a directory leads to, if that is a node of the remote.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn far_at(&mut self, dir: NodeId, name: Name<'_>) -> Result<Option<Head>> {
        match Nodes::of(self.files).find(uid_of(dir)?, name.as_bytes())? {
            Some((_, Named::Head(head))) => Ok(Some(head).filter(|head| head.far.is_some())),
            _ => Ok(None),
        }
    }

    /// Returns the way to a node of the remote.
    ///
    /// # Errors
    /// As [`far_path`](Links::far_path).
    pub(crate) fn far_path(&mut self, uid: u64) -> Result<Path> {
        Links::of(self.files).far_path(uid)
    }

    /// Notes what the remote says of a node.
    ///
    /// # Errors
    /// `Stale` if that is of another kind; as a change.
    pub(crate) fn note_far(&mut self, cx: &Ctx<'_>, uid: u64, far: &Attr) -> Result<Head> {
        self.files.change(cx.now, |c| {
            let (place, head) = Nodes::of(c).home(uid)?;
            match head.kind == far.kind && head.far.is_some() {
                true => Links::of(c).note_far(&place, &head, far),
                false => Err(Kind::Stale.into()),
            }
        })
    }

    /// Notes a name that a directory of the remote has.
    ///
    /// # Errors
    /// `NameTooLong`; as a change.
    pub(crate) fn record(
        &mut self,
        cx: &Ctx<'_>,
        dir: u64,
        name: &[u8],
        far: &Attr,
    ) -> Result<Entry> {
        let recorded = self
            .files
            .change(cx.now, |c| Links::of(c).record(dir, name, far, cx.now));
        let head = match recorded {
            Err(e) if e == Kind::NotEmpty => {
                Links::of(self.files).forget_name(dir, name, cx.now)?;
                self.files
                    .change(cx.now, |c| Links::of(c).record(dir, name, far, cx.now))?
            }
            recorded => recorded?,
        };
        Attrs::of(self.files).entry(&head)
    }

    /// Forgets the names of a directory of the remote but those of the nodes `seen`, and
    /// notes that all names are here then, as of `far`.
    ///
    /// # Errors
    /// As a change.
    pub(crate) fn end_listing(
        &mut self,
        cx: &Ctx<'_>,
        dir: u64,
        seen: &BTreeSet<u64>,
        far: &Attr,
    ) -> Result<()> {
        let mut from = dir_prefix(dir);
        loop {
            let names = self.some_names(dir, &from)?;
            let Some((last, _)) = names.last() else {
                break;
            };
            from = crate::change::cookies::past_name(dir, &last.name);
            for (place, uid) in names {
                if !seen.contains(&uid) {
                    Links::of(self.files).forget_name(dir, &place.name, cx.now)?;
                }
            }
        }
        self.note_far(cx, dir, far)?;
        self.files
            .change(cx.now, |c| Links::of(c).mark_whole(dir, cx.now))
    }

    fn some_names(&mut self, dir: u64, from: &[u8]) -> Result<Vec<(Place, u64)>> {
        let prefix = dir_prefix(dir);
        let mut found = Vec::new();
        Tree::of(&mut self.files.core).scan(from, &mut |key, value| {
            if !key.starts_with(&prefix) || found.len() == SOME {
                return false;
            }
            let pair = Place::of_key(key).zip(Named::decode(value));
            found.extend(pair.map(|(place, entry)| (place, entry.uid())));
            true
        })?;
        Ok(found)
    }

    /// Notes the target of a symlink of the remote, unless that was seen otherwise since.
    ///
    /// # Errors
    /// `TooBig`; as a change.
    pub(crate) fn note_target(
        &mut self,
        cx: &Ctx<'_>,
        uid: u64,
        seen: &Seen,
        target: &[u8],
    ) -> Result<()> {
        self.files.change(cx.now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            let same = head.far.is_some_and(|far| far.seen == *seen);
            if head.kind != FileKind::Symlink || !same {
                return Ok(());
            }
            Nodes::of(c).set_parts(&mut head, Part::Target, target)?;
            head.size = target.len() as u64;
            Nodes::of(c).keep(&place, head)?;
            Links::of(c).mark_whole(uid, cx.now)
        })
    }

    /// Returns whether all of a node of the remote is here, as it was seen; if so, that it is used
    /// is noted, where there is room for that.
    ///
    /// # Errors
    /// `Stale`, `Corrupt`, `Io`.
    pub(crate) fn use_whole(&mut self, cx: &Ctx<'_>, uid: u64) -> Result<bool> {
        let (_, head) = Nodes::of(self.files).home(uid)?;
        if !head.far.is_some_and(|far| far.whole) {
            return Ok(false);
        }
        if self.files.core.writable().is_ok() {
            match self
                .files
                .change(cx.now, |c| Links::of(c).note_use(uid, cx.now))
            {
                Err(e) if e != Kind::NoSpace => return Err(e),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Reads; none if the file is one of the remote whose content is not here.
    ///
    /// # Errors
    /// As reading.
    pub(crate) fn read_if_here(
        &mut self,
        open: OpenId,
        offset: u64,
        buf: &mut [u8],
    ) -> Result<Option<usize>> {
        let node = node_id(OpenFiles::of(self.files).node(open)?)?;
        match Attrs::of(self.files).head(node)?.is_away() {
            true => Ok(None),
            false => OpenFiles::of(self.files).read(open, offset, buf).map(Some),
        }
    }

    // ---- Copies ----

    /// Makes room to copy a file of `size` bytes. Returns false if there is
    /// not enough, even if all copies are evicted.
    ///
    /// # Errors
    /// As a change.
    pub(crate) fn make_room_far(&mut self, cx: &Ctx<'_>, size: u64) -> Result<bool> {
        let pages = self.files.core.layout.pages_for(size);
        match pages > self.files.core.layout.data_pages() {
            true => Ok(false),
            false => Links::of(self.files).make_room_far(pages, cx.now),
        }
    }

    /// Begins a copy of a file of the remote, of `size` bytes; it is written through the open. If that is
    /// closed before the [end](Self::end_copy), nothing is left of it.
    ///
    /// # Errors
    /// As a change.
    pub(crate) fn begin_copy(&mut self, cx: &Ctx<'_>, of: u64, size: u64) -> Result<OpenId> {
        let uid = self
            .files
            .change(cx.now, |c| Links::of(c).begin_copy(of, size, cx.now))?;
        Ok(OpenFiles::of(self.files).add(uid, Mode::Write))
    }

    /// Gives what a copy holds to the file of the remote that it is of. False if that was
    /// seen otherwise meanwhile. The open is still to be closed.
    ///
    /// # Errors
    /// As a change.
    pub(crate) fn end_copy(
        &mut self,
        cx: &Ctx<'_>,
        copy: OpenId,
        of: u64,
        seen: &Seen,
    ) -> Result<bool> {
        let uid = OpenFiles::of(self.files).node(copy)?;
        let sums = self.files.seals.waiting.remove(&uid);
        let done = self
            .files
            .change(cx.now, |c| Links::of(c).end_copy(uid, of, seen, cx.now))?;
        if done && let Some(sums) = sums {
            self.files.seals.waiting.insert(of, sums);
            Sealing::of(self.files).seal(of, cx.now)?;
        }
        Ok(done)
    }

    /// Links a file or directory to one of the remote.
    ///
    /// # Errors
    /// As [`link_far`](Links::link_far).
    pub(crate) fn link_far(
        &mut self,
        cx: &Ctx<'_>,
        node: NodeId,
        path: &[u8],
        far: &Attr,
    ) -> Result<()> {
        let uid = uid_of(node)?;
        self.files
            .change(cx.now, |c| Links::of(c).link_far(uid, path, far, cx.now))
    }

    /// Forgets all names in a directory of the remote.
    ///
    /// # Errors
    /// As a change.
    pub(crate) fn forget_names_in(&mut self, cx: &Ctx<'_>, dir: u64) -> Result<()> {
        Links::of(self.files).forget_names_in(dir, cx.now)
    }
}
