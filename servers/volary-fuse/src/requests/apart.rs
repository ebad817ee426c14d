//! Requests that may have to wait for another client to give up a lease. They then run on their own
//! threads, so that no other request waits.

use crate::kernel::errno::{errno_of_flags, errno_of_maker};
use crate::requests::attrs::Changes;
use crate::requests::caller::Caller;
use crate::requests::counts::RequestKind as Kind;
use crate::requests::names::{At, Making};
use crate::requests::reply::{plain, reply_empty, reply_empty_with, reply_open};
use crate::requests::server::Server;
use fuser::{
    FileHandle, INodeNo, RenameFlags, ReplyAttr, ReplyCreate, ReplyEmpty, ReplyEntry, ReplyOpen,
    Request,
};
use std::ffi::OsString;
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use volary_core::{NodeId, Result};

/// A request's turn on its thread, from its arrival until it is answered or passed to another
/// thread. Afterwards, the thread stays awake for the next request, if this pays.
pub(crate) struct Turn<'a> {
    caller: Caller,
    server: &'a Server,
}

impl Deref for Turn<'_> {
    type Target = Caller;
    fn deref(&self) -> &Caller {
        &self.caller
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if let Some(kernel) = self.server.kernel.get() {
            self.server.linger.end_on(kernel);
        }
    }
}

/// The server, in the form that the FUSE library calls.
pub(crate) struct Served(pub(crate) Arc<Server>);

impl Deref for Served {
    type Target = Server;
    fn deref(&self) -> &Server {
        &self.0
    }
}

/// An entry that is named by a request which may go to another thread.
struct OwnAt {
    parent: INodeNo,
    name: OsString,
}

impl OwnAt {
    fn of(at: At<'_>) -> Self {
        Self {
            parent: at.parent,
            name: at.name.to_owned(),
        }
    }

    fn as_at(&self) -> At<'_> {
        At {
            parent: self.parent,
            name: &self.name,
        }
    }
}

impl Served {
    /// Begins the turn of a request.
    pub(crate) fn turn(&self, req: &Request) -> Turn<'_> {
        self.linger.begin();
        Turn {
            caller: Caller::of(req),
            server: self,
        }
    }

    pub(crate) fn open_apart(&self, req: &Caller, node: INodeNo, flags: i32, reply: ReplyOpen) {
        let waits = self.may_wait(self.node(node));
        self.work(waits, req, move |server, req| {
            let answer = server.answer(Kind::Open, || server.open_file(req, node, flags));
            if answer.is_ok() && server.told.hears_no_changes() {
                server.look_anew(node);
            }
            reply_open(reply, answer, server.told.file_flags(node));
        });
    }

    pub(crate) fn open_dir_apart(&self, req: &Caller, node: INodeNo, reply: ReplyOpen) {
        let waits = self.may_wait(self.node(node));
        self.work(waits, req, move |server, req| {
            let answer = server.answer(Kind::OpenDir, || server.open_dir(req, node));
            reply_open(reply, answer, server.told.dir_flags(node));
        });
    }

    /// Creates a file.
    pub(crate) fn create_apart(
        &self,
        req: &Caller,
        at: At<'_>,
        mode: u32,
        umask: u32,
        flags: i32,
        reply: ReplyCreate,
    ) {
        let own = OwnAt::of(at);
        self.work(self.may_wait_at(at), req, move |server, req| {
            let making = Making {
                parent: own.parent,
                name: &own.name,
                mode,
                umask,
            };
            let answer = server.answer(Kind::Create, || server.make_file(req, &making, flags));
            server.told.reply_created(reply, answer);
        });
    }

    pub(crate) fn link_apart(&self, req: &Caller, node: INodeNo, at: At<'_>, reply: ReplyEntry) {
        let own = OwnAt::of(at);
        self.work(self.may_wait(self.node(node)), req, move |server, req| {
            let (parent, name) = (own.parent, &own.name);
            let answer = server.answer(Kind::Link, || server.make_link(req, node, parent, name));
            server.told.reply_entry(reply, answer, errno_of_maker);
        });
    }

    pub(crate) fn unlink_apart(&self, req: &Caller, at: At<'_>, reply: ReplyEmpty) {
        let own = OwnAt::of(at);
        self.work(self.may_wait_at(at), req, move |server, req| {
            let (parent, name) = (own.parent, &own.name);
            let answer = server.answer(Kind::Unlink, || server.remove_name(req, parent, name));
            reply_empty(reply, answer);
        });
    }

    pub(crate) fn rmdir_apart(&self, req: &Caller, at: At<'_>, reply: ReplyEmpty) {
        let own = OwnAt::of(at);
        self.work(self.may_wait_at(at), req, move |server, req| {
            let (parent, name) = (own.parent, &own.name);
            let answer = server.answer(Kind::RmDir, || server.remove_dir(req, parent, name));
            reply_empty(reply, answer);
        });
    }

    pub(crate) fn rename_apart(
        &self,
        req: &Caller,
        from: At<'_>,
        to: At<'_>,
        flags: RenameFlags,
        reply: ReplyEmpty,
    ) {
        let waits = self.may_wait_at(from) || self.may_wait_at(to);
        let (from, to) = (OwnAt::of(from), OwnAt::of(to));
        self.work(waits, req, move |server, req| {
            let (from, to) = (from.as_at(), to.as_at());
            let answer = server.answer(Kind::Rename, || server.move_name(req, from, to, flags));
            let errno = if flags.is_empty() {
                plain
            } else {
                errno_of_flags
            };
            reply_empty_with(reply, answer, errno);
        });
    }

    pub(crate) fn setattr_apart(
        &self,
        req: &Caller,
        node: INodeNo,
        open: Option<FileHandle>,
        changes: Changes,
        reply: ReplyAttr,
    ) {
        let waits = changes.size.is_some() && self.may_wait(self.node(node));
        self.work(waits, req, move |server, req| {
            let answer = server.answer(Kind::SetAttr, || {
                server.change_attr(req, node, open, &changes)
            });
            server.told.reply_attr(reply, answer);
        });
    }

    /// Does the work here, or on its own thread if it may wait.
    fn work(
        &self,
        waits: bool,
        req: &Caller,
        work: impl FnOnce(&Server, &Caller) + Send + 'static,
    ) {
        if !waits {
            return work(self, req);
        }
        let (server, caller) = (Arc::clone(&self.0), req.clone());
        let started = self.waiters.run(req.pid, move |cancel| {
            let cancel = Some(Arc::clone(cancel));
            work(&server, &Caller { cancel, ..caller });
        });
        // If it was dropped with the work, the reply was an I/O error.
        drop(started);
    }

    /// Returns whether an operation may have to wait for another client to give up a lease on the
    /// node.
    fn may_wait(&self, node: Result<NodeId>) -> bool {
        if self.volume.lease_count() == 0 {
            return false;
        }
        let own = self.sessions.own();
        node.is_ok_and(|node| own.would_wait(node, true) || own.would_wait_for_name(node))
    }

    /// Does the same as [`may_wait`](Self::may_wait) for the node that a name leads to.
    fn may_wait_at(&self, at: At<'_>) -> bool {
        if self.volume.lease_count() == 0 {
            return false;
        }
        let found = self.node(at.parent).and_then(|dir| {
            let own = self.sessions.own();
            own.lookup(dir, at.name.as_bytes())
        });
        self.may_wait(found.map(|entry| entry.node))
    }
}
