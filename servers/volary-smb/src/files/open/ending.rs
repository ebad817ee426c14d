//! Closes files, and keeps durable opens for disconnected clients.

use super::breaker::Keeper;
use super::common::Common;
use super::durables::Kept;
use super::table::File;
use super::tree::Tree;
use crate::clock::now;
use crate::wire::Status;
use crate::wire::create::option;
use std::sync::Arc;
use std::thread;
use volary_core::Result as CoreResult;
use volary_session::{LeaseBits, LeaseKey, Session};

/// Closes a file that was removed from its tree's table, in the session that opened it.
pub(crate) fn end(common: &Common, session: &Session, file: &Arc<File>) -> CoreResult<()> {
    let watch = file.watch.lock().take();
    if let Some(watch) = watch {
        common.watches.remove(&watch);
        watch.end(Status::NOTIFY_CLEANUP);
    }
    file.send_away();
    let closed = session.close(file.open);
    if let Some(key) = file.lease {
        common.leave_lease(key);
    }
    common.leave(file);
    if file.is_dir() && file.options & option::DELETE_ON_CLOSE != 0 {
        tell_deletion(common, session, file);
    }
    session.volume().wake_waiting();
    closed
}

/// Notifies watches of a directory that is about to be removed.
pub(crate) fn tell_deletion(common: &Common, session: &Session, file: &File) {
    for other in common.of_node(file.node) {
        let watch = other.watch.lock().clone();
        if let Some(watch) = watch.filter(|_| session.delete_pending(other.open)) {
            watch.end(Status::DELETE_PENDING);
        }
    }
}

/// Closes the tree's files. Durable opens are kept if the user may come `back`.
pub(crate) fn end_tree(tree: &Arc<Tree>, back: bool) {
    for file in tree.files.take_all() {
        if back && keep(tree, &file) {
            continue;
        }
        // Nobody is left who could be told of an error.
        let _ = end(&tree.common, &tree.session, &file);
    }
    if tree.common.is_idle() {
        tree.common.known.forget_all();
    }
}

/// Keeps an open that lost its connection, if it is durable. Otherwise returns false, and the
/// caller closes it.
fn keep(tree: &Arc<Tree>, file: &Arc<File>) -> bool {
    let Some(time) = file.claim.as_ref().and_then(|claim| claim.time) else {
        return false;
    };
    if !holds(tree, file) {
        return false;
    }
    file.send_away();
    let durables = &tree.common.durables;
    let home = Arc::clone(tree) as _;
    let max = tree.limits().durable_opens;
    let Some(starts) = durables.keep(home, file, now() + time, max) else {
        return false;
    };
    if starts && !watch(&tree.common) {
        durables.is_left();
        return !durables.let_go(file);
    }
    // Its lease may have been broken before it could be found here.
    holds(tree, file) || !durables.let_go(file)
}

/// Returns whether the open still has what makes it durable, and is not being broken.
fn holds(tree: &Tree, file: &File) -> bool {
    let Some(key) = file.lease.or(file.oplock) else {
        return false;
    };
    let lease = tree.session.lease_state(key);
    lease.is_ok_and(|lease| lease.granted.has(LeaseBits::HANDLE) && !lease.breaking)
}

/// Starts the thread that closes the share's durable opens when their time is over.
fn watch(common: &Arc<Common>) -> bool {
    let common = Arc::clone(common);
    let thread = thread::Builder::new().name("smb durable opens".to_owned());
    let begun = thread.spawn(move || {
        while common.durables.wait() {
            let now = now();
            end_where(&common, |kept| kept.until <= now);
        }
    });
    begun.is_ok()
}

/// Closes an open, whether it is connected or not.
pub(crate) fn end_durable(common: &Common, file: &Arc<File>) {
    end_where(common, |kept| Arc::ptr_eq(&kept.file, file));
    if let Some(tree) = file.tree.upgrade()
        && tree.lets_go(file.id)
    {
        // Nobody is left who could be told of an error.
        let _ = end(common, tree.session(), file);
    }
}

/// Closes all opens that are kept for disconnected clients.
pub(crate) fn end_durables(common: &Common) {
    end_where(common, |_| true);
}

fn end_where(common: &Common, which: impl Fn(&Kept) -> bool) {
    for kept in common.durables.extract(which) {
        // Nobody is left who could be told of an error.
        let _ = end(common, kept.home.session(), &kept.file);
    }
}

impl Keeper for Common {
    fn end_kept(&self, key: LeaseKey) {
        end_where(self, |kept| {
            kept.file.lease == Some(key) || kept.file.oplock == Some(key)
        });
    }
}
