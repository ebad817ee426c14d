//! Writes trees into a volume.

mod linking;

use crate::how::CopyOptions;
use crate::nodes::ids::{HostId, Ids};
use crate::nodes::links::{Made, OTHER_NAME, Spot};
use crate::nodes::place::{At, join};
use crate::nodes::xattrs::{self, Xattr};
use crate::sinks::target::{ITSELF_WORDS, OWN_IMAGE_WORDS, SYMLINK_WORDS, VolumeTarget};
use crate::stream::{Meta, Sink, zeros};
use crate::told::failure::{And, Done, Failure, Why};
use crate::told::losses::{Loss, Losses};
use crate::told::observer::Observer;
use std::collections::HashMap;
use volary_core::{
    Attr, Caps, Create, Entry, Error, FileKind, Kind, Mode, NodeId, OpenId, SetAttr, SetTime, Time,
};
use volary_session::{Session, SetXattr};

/// Writes into a directory of a volume.
pub(crate) struct VolumeSink<'a> {
    session: Session,
    how: &'a CopyOptions,
    caps: Caps,
    /// The open directories, the innermost last; the first is the place that the user named.
    dirs: Vec<Dir>,
    /// The path of the innermost directory, for messages.
    at: At,
    file: Option<Writing>,
    spared: Spared,
    /// Whether the volume can store DOS attributes.
    keeps_dos: bool,
    /// Extended attributes of the next node.
    xattrs: Vec<Xattr>,
    made: Made,
    losses: Losses,
    /// Number of files written, for the message when the volume is full.
    count: u64,
    observer: &'a dyn Observer,
}

/// What else a copy must not write over, besides what it made itself: its sources, and open images.
pub(crate) struct Spared {
    /// The ids of the target's nodes.
    pub(crate) ids: Ids,
    pub(crate) images: Vec<HostId>,
}

struct Dir {
    node: NodeId,
    /// The directory was made by this copy: it holds only copied nodes.
    is_new: bool,
    meta: Option<Meta>,
    xattrs: Vec<Xattr>,
    /// Nodes copied into it, and their names. Only filled if the directory existed before.
    made: HashMap<NodeId, Vec<u8>>,
    /// Length of the path above it.
    above: usize,
}

/// A file that is being written. More content may follow.
struct Writing {
    open: OpenId,
    node: NodeId,
    name: Vec<u8>,
    offset: u64,
    /// The file ends with a hole.
    hole: bool,
    meta: Meta,
    xattrs: Vec<Xattr>,
    is_new: bool,
}

impl<'a> VolumeSink<'a> {
    /// Returns a sink that writes into the directory of a target.
    pub(crate) fn new(
        session: Session,
        target: &VolumeTarget,
        how: &'a CopyOptions,
        spared: Spared,
        made: Made,
        losses: Losses,
        observer: &'a dyn Observer,
    ) -> Self {
        let caps = session.caps();
        let attr = session.getattr(target.dir);
        let keeps_dos = attr.is_ok_and(|attr| attr.dos.is_some());
        let base = Dir {
            node: target.dir,
            is_new: false,
            meta: None,
            xattrs: Vec::new(),
            made: HashMap::new(),
            above: 0,
        };
        Self {
            session,
            how,
            caps,
            dirs: vec![base],
            at: target.at.clone(),
            file: None,
            spared,
            keeps_dos,
            xattrs: Vec::new(),
            made,
            losses,
            count: 0,
            observer,
        }
    }

    fn dir(&self) -> (NodeId, bool) {
        self.dirs
            .last()
            .map_or((self.session.root(), false), |d| (d.node, d.is_new))
    }

    fn fail(&self, name: &[u8], e: Error) -> Failure {
        let at = self.at.join(name);
        match e.kind() {
            Kind::NoSpace => Failure::new(at.to_string(), Why::Full(self.count)),
            Kind::ReadOnly => Failure::at(&at, e).stopping(),
            Kind::Exists if self.dir().1 && !self.caps.has(Caps::CASE_SENSITIVE) => {
                let words = "a name that differs in case only was copied before; left out";
                Failure::words(at.to_string(), words)
            }
            _ => Failure::at(&at, e),
        }
    }

    /// Returns the attributes of a new node.
    fn attr(&self, meta: &Meta) -> SetAttr {
        let owner = self.how.owner(meta);
        let mode = match meta.keeps_modes {
            // Set-uid and set-gid bits were not meant for this new owner.
            true if !self.how.preserve => meta.mode & !0o6000,
            true => meta.mode,
            false => meta.mode & !self.how.umask,
        };
        let mut set = SetAttr::owned(mode, owner.0, owner.1);
        let has_dos = self.keeps_dos && meta.kind == FileKind::File;
        set.dos = meta.dos.filter(|_| has_dos);
        set
    }

    /// Records which attributes of a new node differ from those requested.
    fn compare(&self, name: &[u8], set: &SetAttr, meta: &Meta, made: &Attr) {
        let same = |wanted: Option<u32>, is: u32| wanted.is_none_or(|wanted| wanted == is);
        let is_same = same(set.uid, made.uid)
            && same(set.gid, made.gid)
            && (meta.kind == FileKind::Symlink || same(set.mode, made.mode));
        if meta.keeps_modes && !is_same {
            self.note(Loss::Owners, name);
        }
    }

    fn note(&self, loss: Loss, name: &[u8]) {
        self.losses.note(loss, || self.at.join(name).to_string());
    }

    /// Sets extended attributes, then times. If owner and mode are kept, also sets those of a node
    /// that existed before.
    fn finish(
        &self,
        node: NodeId,
        name: &[u8],
        meta: &Meta,
        xattrs: &[Xattr],
        is_new: bool,
    ) -> Result<(), Error> {
        let mut set = SetAttr {
            atime: Some(SetTime::To(meta.atime)),
            mtime: Some(SetTime::To(meta.mtime)),
            ..SetAttr::default()
        };
        if !is_new && self.how.preserve && meta.keeps_modes && self.caps.has(Caps::MODES) {
            let owned = self.attr(meta);
            (set.uid, set.gid) = (owned.uid, owned.gid);
            set.mode = owned.mode.filter(|_| meta.kind != FileKind::Symlink);
        }
        for (xattr, value) in xattrs {
            match xattrs::dos_of(value).filter(|_| xattr == xattrs::DOS && self.keeps_dos) {
                Some(dos) => set.dos = Some(dos),
                None => self.set_xattr(node, name, xattr, value)?,
            }
        }
        let hiding = meta.dos.unwrap_or(0) & xattrs::DOS_HIDING;
        if hiding != 0 && !self.keeps_dos && self.losses.tells(Loss::Dos) {
            if self.caps.has(Caps::XATTRS) {
                let value = xattrs::dos_value(meta.dos.unwrap_or(0));
                self.set_xattr(node, name, xattrs::DOS, &value)?;
            } else {
                self.note(Loss::Dos, name);
            }
        }
        let set = self.session.setattr(node, &set)?;
        if is_far(set.mtime, meta.mtime, self.caps.time_step) {
            self.note(Loss::Times, name);
        }
        Ok(())
    }

    /// Sets an extended attribute, or records that it cannot be kept.
    ///
    /// # Errors
    /// Those that would affect other attributes too.
    fn set_xattr(&self, node: NodeId, at: &[u8], name: &[u8], value: &[u8]) -> Result<(), Error> {
        let set = self.session.setxattr(node, name, value, SetXattr::Any);
        match set.map_err(|e| (e.kind(), e)) {
            Ok(()) => {}
            Err((Kind::NoSpace | Kind::Quota | Kind::Io | Kind::Corrupt | Kind::ReadOnly, e)) => {
                return Err(e);
            }
            Err(_) if xattrs::is_label(name) => {}
            Err(_) => self.note(Loss::Xattrs, at),
        }
        Ok(())
    }

    /// Makes a file, or opens an existing one. Returns `None` if the existing one must be kept.
    fn open(&mut self, name: &[u8], meta: &Meta) -> Result<Option<Writing>, Error> {
        let (dir, dir_is_new) = self.dir();
        let xattrs = std::mem::take(&mut self.xattrs);
        if meta.len.is_some_and(|len| len > self.caps.size_max) {
            return Err(Kind::TooBig.into());
        }
        let set = self.attr(meta);
        let made = self
            .session
            .create(dir, name, Create::New, Mode::Write, &set);
        let (made, is_new) = match made {
            Err(e) if e.kind() == Kind::Exists && !dir_is_new => {
                let there = self.session.lookup(dir, name)?;
                if self.how.keeps(there.attr.mtime, meta.mtime) {
                    return Ok(None);
                }
                self.spare(&there, meta)?;
                if there.attr.kind == FileKind::Symlink {
                    return Err(Error::note(Kind::SymlinkLoop, SYMLINK_WORDS));
                }
                let how = Create::Truncate;
                (
                    self.session
                        .create(dir, name, how, Mode::Write, &SetAttr::default())?,
                    false,
                )
            }
            made => (made?, true),
        };
        let (entry, open) = made;
        if is_new {
            self.compare(name, &set, meta, &entry.attr);
        }
        self.remember(entry.node, name);
        let (name, meta) = (name.to_vec(), *meta);
        Ok(Some(Writing {
            open,
            node: entry.node,
            name,
            offset: 0,
            hole: false,
            meta,
            xattrs,
            is_new,
        }))
    }

    /// Remembers a node that was made in a directory that existed before.
    fn remember(&mut self, node: NodeId, name: &[u8]) {
        if let Some(dir) = self.dirs.last_mut().filter(|dir| !dir.is_new) {
            dir.made.insert(node, name.to_vec());
        }
    }

    /// Returns the name by which this node was copied here before.
    fn made_as(&self, node: NodeId) -> Option<&[u8]> {
        let dir = self.dirs.last()?;
        dir.made.get(&node).map(Vec::as_slice)
    }

    /// # Errors
    /// `Invalid` or `Exists` if the copy must not replace this node.
    fn spare(&self, there: &Entry, meta: &Meta) -> Result<(), Error> {
        let id = self.spared.ids.of(there.node);
        if meta.id == Some(id) {
            return Err(Error::note(Kind::Invalid, ITSELF_WORDS));
        }
        if id.is_of(&self.spared.images) {
            return Err(Error::note(Kind::Invalid, OWN_IMAGE_WORDS));
        }
        self.check_not_made(there)
    }

    /// # Errors
    /// `Exists` if the existing node is itself a copy made just now: two sources have the same
    /// name.
    fn check_not_made(&self, there: &Entry) -> Result<(), Error> {
        let Some(name) = self.made_as(there.node) else {
            return Ok(());
        };
        let words = format!(
            "{} was copied there before; left out",
            volary_core::escape(name)
        );
        Err(Error::note(Kind::Exists, words))
    }

    /// Writes data. Closes the file after its last part; removes a new file if something fails.
    fn write(&mut self, mut file: Writing, data: &[u8], more: bool) -> Done {
        let written = match data {
            [] => Ok(file.offset),
            data => self.session.write(file.open, Some(file.offset), data),
        };
        match written {
            Ok(end) => {
                file.offset = end;
                file.hole &= data.is_empty();
                self.written(file, more)
            }
            Err(e) => self.failed(&file, e),
        }
    }

    /// Finishes a file if no more content follows.
    fn written(&mut self, file: Writing, more: bool) -> Done {
        if more {
            self.file = Some(file);
            return Ok(());
        }
        let session = &self.session;
        let sized = match file.hole {
            true => session
                .setattr(file.node, &SetAttr::size(file.offset))
                .map(drop),
            false => Ok(()),
        };
        let set = sized.and_then(|()| {
            self.finish(file.node, &file.name, &file.meta, &file.xattrs, file.is_new)
        });
        let closed = session.close(file.open);
        match set.and(closed) {
            Ok(()) => {
                self.count += 1;
                if let Some(link) = file.meta.link {
                    self.made.made(link, Spot::Node(file.node));
                }
                Ok(())
            }
            Err(e) => self.take_away(&file, e),
        }
    }

    fn failed(&self, file: &Writing, e: Error) -> Done {
        // Only the first error is reported.
        let _ = self.session.close(file.open);
        self.take_away(file, e)
    }

    /// Makes a hole. If the volume has no holes, writes zeros.
    fn make_hole(&mut self, file: &mut Writing, len: u64) -> Result<(), Error> {
        let end = file.offset.checked_add(len).ok_or(Kind::TooBig)?;
        if self.caps.has(Caps::HOLES) {
            file.hole = true;
            file.offset = end;
            return Ok(());
        }
        self.note(Loss::Holes, &file.name);
        // Fails early, rather than writing for an hour and then removing the file.
        if self.session.statfs().is_ok_and(|stat| stat.available < len) {
            return Err(Kind::NoSpace.into());
        }
        while file.offset < end {
            if self.observer.is_stopped() {
                return Err(Kind::Interrupted.into());
            }
            let data = zeros(end - file.offset);
            file.offset = self.session.write(file.open, Some(file.offset), data)?;
        }
        Ok(())
    }

    /// Removes an incomplete file that is new, and returns the failure.
    fn take_away(&self, file: &Writing, e: Error) -> Done {
        if file.is_new && self.session.unlink(self.dir().0, &file.name).is_ok() {
            return Err(self.fail(&file.name, e));
        }
        Err(self.fail(&file.name, e).and(And::NotWhole))
    }
}

impl Sink for VolumeSink<'_> {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        let (dir, dir_is_new) = self.dir();
        let xattrs = std::mem::take(&mut self.xattrs);
        let set = self.attr(meta);
        let (node, is_new) = match self.session.mkdir(dir, name, &set) {
            Ok(entry) => {
                self.compare(name, &set, meta, &entry.attr);
                (entry.node, true)
            }
            Err(e) if e.kind() == Kind::Exists && !dir_is_new => {
                let found = self.session.lookup(dir, name);
                let there = found.map_err(|e| self.fail(name, e))?;
                if there.attr.kind != FileKind::Dir {
                    return Err(self.fail(name, Kind::NotDir.into()));
                }
                self.check_not_made(&there)
                    .map_err(|e| self.fail(name, e))?;
                (there.node, false)
            }
            Err(e) => return Err(self.fail(name, e)),
        };
        self.remember(node, name);
        let above = self.at.path.len();
        self.at.path = join(&self.at.path, name);
        self.dirs.push(Dir {
            node,
            is_new,
            meta: Some(*meta),
            xattrs,
            made: HashMap::new(),
            above,
        });
        Ok(())
    }

    fn leave(&mut self) -> Done {
        if self.dirs.len() < 2 {
            return Ok(());
        }
        let Some(dir) = self.dirs.pop() else {
            return Ok(());
        };
        let whole = self.at.path.clone();
        let name = whole.get(dir.above..).unwrap_or_default();
        let name = name.strip_prefix(b"/").unwrap_or(name);
        self.at.path.truncate(dir.above);
        let meta = dir.meta.filter(|_| dir.is_new || self.how.preserve);
        let done = meta.map(|meta| self.finish(dir.node, name, &meta, &dir.xattrs, dir.is_new));
        let done = done.transpose().map(drop);
        done.map_err(|e| Failure::at(&self.at.with_path(whole.clone()), e))
    }

    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        match self.open(name, meta).map_err(|e| self.fail(name, e))? {
            Some(file) => self.write(file, data, more),
            None => Ok(()),
        }
    }

    fn data(&mut self, data: &[u8], more: bool) -> Done {
        match self.file.take() {
            Some(file) => self.write(file, data, more),
            None => Ok(()),
        }
    }

    fn hole(&mut self, len: u64, more: bool) -> Done {
        let Some(mut file) = self.file.take() else {
            return Ok(());
        };
        match self.make_hole(&mut file, len) {
            Ok(()) => self.written(file, more),
            Err(e) => self.failed(&file, e),
        }
    }

    fn broken(&mut self) -> Done {
        self.xattrs.clear();
        let Some(file) = self.file.take() else {
            return Ok(());
        };
        // The source has reported what is wrong.
        let _ = self.session.close(file.open);
        if file.is_new && self.session.unlink(self.dir().0, &file.name).is_ok() {
            return Ok(());
        }
        let place = self.at.join(&file.name).to_string();
        Err(Failure::words(place, And::NotWhole.words()))
    }

    fn xattr(&mut self, name: &[u8], value: &[u8]) {
        self.xattrs.push((name.to_vec(), value.to_vec()));
    }

    fn link(&mut self, name: &[u8], meta: &Meta) -> Done {
        self.linked(name, meta).unwrap_or_else(|| {
            let place = self.at.join(name).to_string();
            Err(Failure::words(place, OTHER_NAME))
        })
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        if !self.caps.has(Caps::SYMLINKS) {
            let place = self.at.join(name).to_string();
            return Err(Failure::new(place, Why::Symlink));
        }
        let made = self.replacing(name, meta, |s, dir| {
            s.session.symlink(dir, name, target, &s.attr(meta))
        })?;
        self.set_rest(name, made, meta)
    }

    fn special(&mut self, name: &[u8], meta: &Meta) -> Done {
        if let Some(done) = self.linked(name, meta) {
            return done;
        }
        let made = self.replacing(name, meta, |s, dir| {
            s.session
                .mknod(dir, name, meta.kind, meta.rdev, &s.attr(meta))
        })?;
        self.set_rest(name, made, meta)
    }
}

impl VolumeSink<'_> {
    /// Makes a node, and replaces an existing one. Returns `None` if the existing one must be kept.
    fn replacing(
        &self,
        name: &[u8],
        meta: &Meta,
        make: impl Fn(&Self, NodeId) -> Result<Entry, Error>,
    ) -> Done<Option<Entry>> {
        let (dir, dir_is_new) = self.dir();
        let again = |e: Error| {
            if e.kind() != Kind::Exists || dir_is_new {
                return Err(e);
            }
            let there = self.session.lookup(dir, name)?;
            if self.how.keeps(there.attr.mtime, meta.mtime) {
                return Ok(None);
            }
            self.spare(&there, meta)?;
            let made = self.session.replacing(dir, name, || make(self, dir));
            made.map(Some)
        };
        make(self, dir)
            .map(Some)
            .or_else(again)
            .map_err(|e| self.fail(name, e))
    }

    fn set_rest(&mut self, name: &[u8], made: Option<Entry>, meta: &Meta) -> Done {
        let xattrs = std::mem::take(&mut self.xattrs);
        let Some(made) = made else { return Ok(()) };
        self.compare(name, &self.attr(meta), meta, &made.attr);
        let set = self.finish(made.node, name, meta, &xattrs, true);
        set.map_err(|e| self.fail(name, e))?;
        self.remember(made.node, name);
        if let Some(link) = meta.link {
            self.made.made(link, Spot::Node(made.node));
        }
        self.count += 1;
        Ok(())
    }
}

/// Returns whether two times differ by more than the resolution of the volume, in nanoseconds.
fn is_far(a: Time, b: Time, step: u64) -> bool {
    let nanos = |t: Time| i128::from(t.secs) * 1_000_000_000 + i128::from(t.nanos);
    nanos(a).abs_diff(nanos(b)) > u128::from(step)
}
