//! Reads trees of a volume.

use crate::how::CopyOptions;
use crate::nodes::host_range::{HostRange, Places};
use crate::nodes::ids::Ids;
use crate::nodes::links::Links;
use crate::nodes::place::{At, VolumePlace};
use crate::nodes::xattrs::{ROOM, is_virtual};
use crate::sources::content::{Bytes, Content, Unread};
use crate::sources::from_host::{INTO_IMAGE, Shared};
use crate::stream::{Meta, Outlet};
use crate::told::failure::{And, Done, Failure, Why};
use crate::told::losses::Loss;
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;
use volary_core::{
    Attr, BlockDevice, Caps, Error, Extent, FileKind, Kind, Mode, NodeId, OpenId,
    Place as ExtentPlace,
};
use volary_session::{Ahead, Follow, Listing, PATH_MAX, Session};

/// Reads trees of a volume into an [`Outlet`].
pub(crate) struct VolumeSource<'a, 'scope, 'env> {
    to: &'a mut Outlet<'scope, 'env>,
    session: Session,
    ids: Ids,
    /// The volume's device, if the host may copy from it.
    device: Option<Arc<dyn BlockDevice>>,
    /// Whether to enter directories.
    recursive: bool,
    /// Whether to follow symlinks that the user names.
    follow: bool,
    shared: &'a Shared<'a>,
    links: &'a mut Links,
    /// Directories that were entered. On a damaged volume, one can be in two places, or in itself;
    /// it is entered once.
    seen: HashSet<NodeId>,
    ahead: Ahead,
}

impl<'a, 'scope, 'env> VolumeSource<'a, 'scope, 'env> {
    /// Returns a source that reads from the volume of `place` into `to`.
    pub(crate) fn new(
        to: &'a mut Outlet<'scope, 'env>,
        place: &VolumePlace,
        how: &CopyOptions,
        shared: &'a Shared<'a>,
        links: &'a mut Links,
    ) -> Self {
        Self {
            to,
            ahead: Ahead::new(&place.session),
            session: place.session.clone(),
            ids: place.ids(),
            device: place.device.clone(),
            recursive: how.recursive,
            follow: how.dereference,
            shared,
            links,
            seen: HashSet::new(),
        }
    }

    /// Reads the node at a place, and copies it as `name`. Without a name, reads the entries of the
    /// directory there.
    ///
    /// # Errors
    /// Those that end the copy. Nodes that are left out are reported.
    pub(crate) fn tree(&mut self, at: &At, name: Option<&[u8]>) -> Done {
        let follow = if self.follow || !self.recursive {
            Follow::Yes
        } else {
            Follow::No
        };
        let read = match self.session.walk(&at.path, follow) {
            Err(e) => Err(Failure::at(at, e)),
            Ok(found) => {
                let mut at = at.clone();
                match name {
                    Some(name) => self.node(&mut at, &found.attr, name),
                    None => self.below(&mut at, &found.attr),
                }
            }
        };
        self.or_left_out(read)
    }

    /// Reads the node at `at`. The path of `at` is the same afterwards.
    fn node(&mut self, at: &mut At, attr: &Attr, name: &[u8]) -> Done {
        if self.ids.of(attr.node).is_of(&self.shared.images) {
            let failure = Failure::words(at.to_string(), INTO_IMAGE);
            return self.or_left_out(Err(failure));
        }
        let mut meta = self.meta(attr);
        if self.links.is_made(meta.link) {
            return self.to.link(name, meta);
        }
        if attr.kind == FileKind::Dir && !self.recursive {
            let failure = Failure::new(at.to_string(), Why::Directory);
            return self.or_left_out(Err(failure));
        }
        meta.has_xattrs = self.xattrs(at, attr)?;
        let done = match attr.kind {
            FileKind::File => self.content(at, attr, name, meta),
            FileKind::Dir => {
                self.to.enter(name, meta)?;
                let done = self.below(at, attr);
                self.or_left_out(done)?;
                self.to.leave()
            }
            FileKind::Symlink => match self.session.readlink(attr.node) {
                Ok(target) => self.to.symlink(name, meta, &target),
                Err(e) => Err(Failure::at(&*at, e)),
            },
            _ => self.to.special(name, meta),
        };
        self.or_left_out(done)
    }

    /// Records that a directory is entered.
    ///
    /// # Errors
    /// `Stopped`; an error if it was entered before, or its path is too long.
    fn enter(&mut self, at: &At, dir: &Attr) -> Done {
        self.shared.report.observer.check()?;
        if at.path.len() > PATH_MAX {
            let words = format!("deeper than {PATH_MAX} bytes of path; not entered");
            return Err(Failure::words(&*at.volume, words));
        }
        match self.seen.insert(dir.node) {
            true => Ok(()),
            false => Err(Failure::new(
                at.to_string(),
                Why::Twice(at.volume.to_string()),
            )),
        }
    }

    /// Reads the entries of a directory, as far as they can be read.
    fn below(&mut self, at: &mut At, dir: &Attr) -> Done {
        self.enter(at, dir)?;
        let fail = |at: &At, e: Error| Err(Failure::at(at, e));
        let listing = Listing::read(&self.session, dir.node, Listing::MAX);
        let (rows, mut ready) = (listing.rows.as_slice(), 0);
        for (number, row) in rows.iter().enumerate() {
            if self.recursive && row.attr.kind == FileKind::Dir {
                let rows = rows.get(number..).unwrap_or_default();
                self.ahead.enter(rows, &mut ready);
            }
            let above = at.enter(&row.name);
            self.node(at, &row.attr, &row.name)?;
            at.path.truncate(above);
        }
        for (name, e) in listing.unreadable {
            self.or_left_out(fail(&at.join(&name), e))?;
        }
        listing.end.or_else(|e| fail(at, e))
    }

    fn content(&mut self, at: &At, attr: &Attr, name: &[u8], meta: Meta) -> Done {
        let fail = |e: Error| Failure::at(at, e);
        let open = self.session.open_seen(attr, None, Mode::Read);
        let open = match open {
            Ok(open) => open,
            Err(e) => {
                self.to.nothing();
                return Err(fail(e));
            }
        };
        let bytes = VolumeBytes {
            session: &self.session,
            open,
            node: attr.node,
            len: attr.size,
            at,
            places: self
                .device
                .as_ref()
                .map(|device| Places::new(device, &self.session)),
        };
        let mut content = Content::new(bytes, attr.size, attr.allocated, &self.shared.report);
        let done = self.to.file(name, meta, &mut content);
        let closed = self.session.close(open).map_err(fail);
        done.and(closed)
    }

    fn meta(&mut self, attr: &Attr) -> Meta {
        let keeps_modes = self.shared.shown_modes || self.session.caps().has(Caps::MODES);
        let mut link = None;
        if self.shared.all && attr.kind != FileKind::Dir {
            link = self.links.meet(self.ids.of(attr.node), attr.nlink);
        }
        let mode = match attr.kind {
            _ if keeps_modes => attr.mode,
            FileKind::Dir => 0o777,
            _ if attr.dos.is_some_and(|dos| dos & 1 != 0) => 0o444,
            _ => 0o666,
        };
        Meta {
            kind: attr.kind,
            mode,
            uid: attr.uid,
            gid: attr.gid,
            len: Some(attr.size),
            rdev: attr.rdev,
            atime: attr.atime,
            mtime: attr.mtime,
            dos: attr.dos,
            id: Some(self.ids.of(attr.node)),
            keeps_modes,
            link,
            has_xattrs: false,
        }
    }

    /// Sends the extended attributes of a node; returns whether there are any.
    fn xattrs(&mut self, at: &At, attr: &Attr) -> Done<bool> {
        if !self.shared.all || !self.session.caps().has(Caps::XATTRS) {
            return Ok(false);
        }
        let names = match self.session.listxattr(attr.node) {
            Ok(names) => names,
            Err(e) if e.kind() == Kind::Unsupported => return Ok(false),
            Err(e) => return self.left_out(at, e).map(|()| false),
        };
        let (mut sent, mut room) = (false, ROOM);
        for name in names {
            if is_virtual(&name) {
                self.note_versions(at, attr.node);
                continue;
            }
            match self.session.getxattr(attr.node, &name) {
                Ok(value) if value.len() <= room => {
                    room -= value.len();
                    self.to.xattr(&name, &value)?;
                    sent = true;
                }
                Ok(_) => self.shared.losses.note(Loss::Xattrs, || at.to_string()),
                Err(e) => self.left_out(at, e)?,
            }
        }
        Ok(sent)
    }

    /// Reports older versions, which are not copied.
    fn note_versions(&self, at: &At, node: NodeId) {
        let versions = self.session.getxattr(node, b"user.cedar.versions");
        if versions.is_ok_and(|all| all.contains(&b' ')) {
            self.shared.losses.note(Loss::Versions, || at.to_string());
        }
    }

    fn left_out(&self, at: &At, e: Error) -> Done {
        self.or_left_out(Err(Failure::at(at, e).and(And::WithoutXattrs)))
    }

    /// Reports a node that is left out, and goes on.
    fn or_left_out(&self, done: Done) -> Done {
        match done {
            Err(failure) if !failure.stops() => {
                self.shared.report.failed(&failure);
                Ok(())
            }
            done => done,
        }
    }
}

/// An open file of the volume.
struct VolumeBytes<'a> {
    session: &'a Session,
    open: OpenId,
    node: NodeId,
    /// The file's length when it was opened.
    len: u64,
    at: &'a At,
    /// The places of its bytes, if the host may copy from there.
    places: Option<Places>,
}

impl VolumeBytes<'_> {
    fn unread(&self, e: Error) -> Unread {
        match e.kind() {
            Kind::Corrupt | Kind::Io => Unread::Damage(e.to_string()),
            _ => Unread::Fail(Failure::at(self.at, e)),
        }
    }
}

impl Bytes for VolumeBytes<'_> {
    fn read(&mut self, offset: u64, room: &mut [u8]) -> Result<usize, Unread> {
        let read = self.session.read(self.open, offset, room);
        let n = read.map_err(|e| self.unread(e))?;
        if n > 0 || offset >= self.len {
            return Ok(n);
        }
        // It ends before its length: it was truncated meanwhile, or the rest is lost.
        let now = self.session.getattr(self.node);
        match now.map_err(|e| self.unread(e))?.size {
            size if size <= offset => Ok(0),
            _ => Err(Unread::Damage("the volume has nothing there".into())),
        }
    }

    fn holes(&mut self, range: Range<u64>) -> Option<Vec<(Range<u64>, bool)>> {
        if !self.session.caps().has(Caps::EXTENTS) {
            return None;
        }
        let mut all: Vec<Extent> = Vec::new();
        let len = range.end - range.start;
        let found = self.session.extents(self.open, range.start, len, &mut all);
        match found {
            // The reads tell which part is bad.
            Err(e) if matches!(e.kind(), Kind::Corrupt | Kind::Io) => {
                return Some(vec![(range, false)]);
            }
            Err(_) => return None,
            Ok(()) => {}
        }
        // A volume may end an incomplete answer so: the rest is asked for again.
        if all.len() > 1 {
            all.pop_if(|last| last.place == ExtentPlace::Encoded);
        }
        let stretch = |e: Extent| {
            let end = e.offset.saturating_add(e.len);
            (e.offset..end, e.place == ExtentPlace::Hole)
        };
        Some(all.into_iter().map(stretch).collect())
    }

    fn host_range(&mut self, range: Range<u64>) -> Option<HostRange> {
        let places = self.places.as_mut()?;
        let found = places.find(self.open, self.node, range);
        // After a refusal, places are not asked for again.
        found.unwrap_or_else(|| {
            self.places = None;
            None
        })
    }

    fn place(&self) -> String {
        self.at.to_string()
    }
}
