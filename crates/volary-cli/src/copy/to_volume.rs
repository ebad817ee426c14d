//! Writes trees into a volume.

use super::How;
use super::stream::{Meta, Sink};
use crate::exit::{Done, Exit, Fail};
use crate::volumes::{At, join};
use volary::{
    Caps, Create, Error, FileKind, Kind, Mode, NodeId, OpenId, Session, SetAttr, SetTime,
};

/// Writes into a directory of a volume.
pub(crate) struct VolumeSink<'a> {
    session: Session,
    how: &'a How,
    caps: Caps,
    /// The directories that are open, the innermost last; the first is the
    /// place that the user named.
    dirs: Vec<Dir>,
    /// The path of the innermost, for messages.
    at: At,
    file: Option<Writing>,
    /// Whether the source is in the same volume.
    same_volume: bool,
    /// Files that were written, for the message when the volume is full.
    count: u64,
}

struct Dir {
    node: NodeId,
    /// Made just now: nothing is in it but what was copied.
    is_new: bool,
    meta: Option<Meta>,
    /// Length of the path above it.
    above: usize,
}

/// A file that more is to come of.
struct Writing {
    open: OpenId,
    node: NodeId,
    name: Vec<u8>,
    offset: u64,
    meta: Meta,
    is_new: bool,
}

impl<'a> VolumeSink<'a> {
    /// A sink that writes into the directory `dir`, which is at `at`.
    pub(crate) fn new(
        session: Session,
        dir: NodeId,
        at: At,
        how: &'a How,
        same_volume: bool,
    ) -> Self {
        let caps = session.caps();
        let base = Dir {
            node: dir,
            is_new: false,
            meta: None,
            above: 0,
        };
        Self {
            session,
            how,
            caps,
            dirs: vec![base],
            at,
            file: None,
            same_volume,
            count: 0,
        }
    }

    fn dir(&self) -> (NodeId, bool) {
        self.dirs
            .last()
            .map_or((self.session.root(), false), |d| (d.node, d.is_new))
    }

    fn fail(&self, name: &[u8], e: &Error) -> Fail {
        let at = self.at.join(name);
        match e.kind() {
            Kind::NoSpace => Fail::new(
                Exit::Stopped,
                format!(
                    "{at}: no space left on the volume; stopped, with {} files copied; \
                     delete something, or make a larger volume",
                    self.count
                ),
            ),
            Kind::ReadOnly => Fail::new(Exit::Stopped, format!("{at}: {e}")),
            Kind::Exists if self.dir().1 && !self.caps.has(Caps::CASE_SENSITIVE) => Fail::new(
                Exit::Failed,
                format!("{at}: a name that differs in case only was copied before; left out"),
            ),
            _ => Fail::at(at, e),
        }
    }

    fn attr(&self, meta: &Meta) -> SetAttr {
        let owner = self.how.owner(meta);
        let mut set = SetAttr::owned(meta.mode, owner.0, owner.1);
        set.dos = meta.dos.filter(|_| meta.kind == FileKind::File);
        set
    }

    fn times(meta: &Meta) -> SetAttr {
        SetAttr {
            atime: Some(SetTime::To(meta.atime)),
            mtime: Some(SetTime::To(meta.mtime)),
            ..SetAttr::default()
        }
    }

    /// Makes the file, or opens what is there. `None` if it is to be left.
    fn open(&self, name: &[u8], meta: &Meta) -> Result<Option<Writing>, Error> {
        let (dir, dir_is_new) = self.dir();
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
                if self.same_volume && meta.node == Some(there.node) {
                    return Err(Error::note(Kind::Invalid, "would be copied over itself"));
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
        let (name, meta) = (name.to_vec(), *meta);
        Ok(Some(Writing {
            open,
            node: entry.node,
            name,
            offset: 0,
            meta,
            is_new,
        }))
    }

    /// Writes; the file is closed after its last part, and taken away if
    /// something fails.
    fn write(&mut self, mut file: Writing, data: &[u8], more: bool) -> Done {
        let session = &self.session;
        let written = match data {
            [] => Ok(file.offset),
            data => session.write(file.open, Some(file.offset), data),
        };
        match written {
            Ok(end) if more => {
                file.offset = end;
                self.file = Some(file);
                Ok(())
            }
            Ok(_) => {
                let set = session.setattr(file.node, &Self::times(&file.meta));
                let closed = session.close(file.open);
                match set.map(drop).and(closed) {
                    Ok(()) => {
                        self.count += 1;
                        Ok(())
                    }
                    Err(e) => self.take_away(&file, &e),
                }
            }
            Err(e) => {
                // The write's own error is the one to tell.
                let _ = session.close(file.open);
                self.take_away(&file, &e)
            }
        }
    }

    /// No half file is left under a name that was free.
    fn take_away(&self, file: &Writing, e: &Error) -> Done {
        if file.is_new && self.session.unlink(self.dir().0, &file.name).is_ok() {
            return Err(self.fail(&file.name, e));
        }
        let fail = self.fail(&file.name, e);
        let line = format!("{}; what is there of it is not whole", fail.line);
        Err(Fail::new(fail.exit, line))
    }
}

impl Sink for VolumeSink<'_> {
    fn enter(&mut self, name: &[u8], meta: &Meta) -> Done {
        let (dir, dir_is_new) = self.dir();
        let set = self.attr(meta);
        let (node, is_new) = match self.session.mkdir(dir, name, &set) {
            Ok(entry) => (entry.node, true),
            Err(e) if e.kind() == Kind::Exists && !dir_is_new => {
                let there = self
                    .session
                    .lookup(dir, name)
                    .map_err(|e| self.fail(name, &e))?;
                if there.attr.kind != FileKind::Dir {
                    return Err(self.fail(name, &Kind::NotDir.into()));
                }
                (there.node, false)
            }
            Err(e) => return Err(self.fail(name, &e)),
        };
        let above = self.at.path.len();
        self.at.path = join(&self.at.path, name);
        self.dirs.push(Dir {
            node,
            is_new,
            meta: Some(*meta),
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
        let set = dir.meta.filter(|_| dir.is_new || self.how.preserve);
        let done = set.map(|meta| self.session.setattr(dir.node, &Self::times(&meta)));
        let done = done
            .transpose()
            .map(drop)
            .map_err(|e| Fail::at(&self.at, &e));
        self.at.path.truncate(dir.above);
        done
    }

    fn file(&mut self, name: &[u8], meta: &Meta, data: &[u8], more: bool) -> Done {
        match self.open(name, meta).map_err(|e| self.fail(name, &e))? {
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

    fn broken(&mut self) {
        if let Some(file) = self.file.take() {
            // The source has said what is wrong.
            let _ = self.session.close(file.open);
            if file.is_new {
                let _ = self.session.unlink(self.dir().0, &file.name);
            }
        }
    }

    fn symlink(&mut self, name: &[u8], meta: &Meta, target: &[u8]) -> Done {
        if !self.caps.has(Caps::SYMLINKS) {
            let line = format!(
                "{}: a symlink, which this volume cannot keep; left out (cp -L copies what it \
                 leads to)",
                self.at.join(name)
            );
            return Err(Fail::new(Exit::Failed, line));
        }
        let made = self.replacing(name, meta, |s, dir| {
            s.session.symlink(dir, name, target, &s.attr(meta))
        })?;
        self.set_times(name, made, meta)
    }

    fn special(&mut self, name: &[u8], meta: &Meta) -> Done {
        let made = self.replacing(name, meta, |s, dir| {
            s.session
                .mknod(dir, name, meta.kind, meta.rdev, &s.attr(meta))
        })?;
        self.set_times(name, made, meta)
    }
}

impl VolumeSink<'_> {
    /// Makes something, in place of what is there unless that is to be left.
    fn replacing(
        &self,
        name: &[u8],
        meta: &Meta,
        make: impl Fn(&Self, NodeId) -> Result<volary::Entry, Error>,
    ) -> Done<Option<NodeId>> {
        let (dir, _) = self.dir();
        let again = |e: Error| {
            if e.kind() != Kind::Exists {
                return Err(e);
            }
            let there = self.session.lookup(dir, name)?;
            if self.how.keeps(there.attr.mtime, meta.mtime) {
                return Ok(None);
            }
            self.session.unlink(dir, name)?;
            make(self, dir).map(Some)
        };
        let made = make(self, dir)
            .map(Some)
            .or_else(again)
            .map_err(|e| self.fail(name, &e))?;
        Ok(made.map(|entry| entry.node))
    }

    fn set_times(&mut self, name: &[u8], node: Option<NodeId>, meta: &Meta) -> Done {
        let Some(node) = node else { return Ok(()) };
        let set = self.session.setattr(node, &Self::times(meta));
        set.map_err(|e| self.fail(name, &e))?;
        self.count += 1;
        Ok(())
    }
}
