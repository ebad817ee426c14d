//! Reads trees of a volume.

use super::stream::{Meta, Outlet};
use crate::exit::{Done, Exit, Fail};
use crate::row::{self, Seen};
use crate::volumes::At;
use std::sync::atomic::{AtomicBool, Ordering};
use volary::{Attr, FileKind, Follow, Mode, Session};

/// Reads trees of a volume into an [`Outlet`].
pub(crate) struct VolumeSource<'a, 'scope, 'env> {
    to: &'a mut Outlet<'scope, 'env>,
    session: Session,
    /// Go into directories.
    recursive: bool,
    /// Follow symlinks that the user names.
    follow: bool,
    /// Set when something was left out.
    failed: &'a AtomicBool,
    seen: Seen,
}

impl<'a, 'scope, 'env> VolumeSource<'a, 'scope, 'env> {
    /// A source that reads into `to`.
    pub(crate) fn new(
        to: &'a mut Outlet<'scope, 'env>,
        session: Session,
        recursive: bool,
        follow: bool,
        failed: &'a AtomicBool,
    ) -> Self {
        Self {
            to,
            session,
            recursive,
            follow,
            failed,
            seen: Seen::default(),
        }
    }

    /// Reads what is at a place, as `name`; with no name, what is in the
    /// directory that is there.
    ///
    /// # Errors
    /// What stops the copy; what is left out has its line and sets `failed`.
    pub(crate) fn tree(&mut self, at: &At, name: Option<&[u8]>) -> Done {
        let follow = if self.follow || !self.recursive {
            Follow::Yes
        } else {
            Follow::No
        };
        let read = match self.session.walk(&at.path, follow) {
            Err(e) => Err(Fail::at(at, &e)),
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

    /// Reads the node at a place; that has the same path after as before.
    fn node(&mut self, at: &mut At, attr: &Attr, name: &[u8]) -> Done {
        let meta = meta(attr);
        let done = match attr.kind {
            FileKind::File => self.content(at, attr, name),
            FileKind::Dir if !self.recursive => Err(Fail::new(
                Exit::Failed,
                format!("{at}: is a directory; use cp -r"),
            )),
            FileKind::Dir => {
                self.to.enter(name, meta)?;
                let done = self.below(at, attr);
                self.or_left_out(done)?;
                self.to.leave()
            }
            FileKind::Symlink => match self.session.readlink(attr.node) {
                Ok(target) => self.to.symlink(name, meta, &target),
                Err(e) => Err(Fail::at(&*at, &e)),
            },
            _ => self.to.special(name, meta),
        };
        self.or_left_out(done)
    }

    fn below(&mut self, at: &mut At, dir: &Attr) -> Done {
        self.seen.enter(at, dir)?;
        for row in row::read_dir(&self.session, dir, at)? {
            let above = at.enter(&row.name);
            self.node(at, &row.attr, &row.name)?;
            at.path.truncate(above);
        }
        Ok(())
    }

    fn content(&mut self, at: &At, attr: &Attr, name: &[u8]) -> Done {
        let Self { to, session, .. } = self;
        let fail = |e: volary::Error| Fail::at(at, &e);
        let open = session.open_seen(attr, None, Mode::Read).map_err(fail)?;
        let done = to.file(name, meta(attr), &mut |offset, room| {
            session.read(open, offset, room).map_err(fail)
        });
        let closed = session.close(open).map_err(fail);
        done.and(closed)
    }

    /// Reports what is left out, and goes on.
    fn or_left_out(&self, done: Done) -> Done {
        match done {
            Err(fail) if fail.exit != Exit::Stopped => {
                fail.report();
                self.failed.store(true, Ordering::Relaxed);
                Ok(())
            }
            done => done,
        }
    }
}

fn meta(attr: &Attr) -> Meta {
    Meta {
        kind: attr.kind,
        mode: attr.mode,
        uid: attr.uid,
        gid: attr.gid,
        len: Some(attr.size),
        rdev: attr.rdev,
        atime: attr.atime,
        mtime: attr.mtime,
        dos: attr.dos,
        node: Some(attr.node),
    }
}
