//! The end of what is open.

use super::common::Common;
use super::table::File;
use super::tree::Tree;
use crate::wire::Status;
use crate::wire::create::option;
use std::sync::Arc;
use volary_core::Result as CoreResult;

/// Ends a file that has been taken out of its tree's table.
pub(crate) fn end(tree: &Arc<Tree>, file: &Arc<File>) -> CoreResult<()> {
    let common = &tree.common;
    let watch = file.watch.lock().take();
    if let Some(watch) = watch {
        common.watches.remove(&watch);
        watch.end(Status::NOTIFY_CLEANUP);
    }
    file.send_away();
    let closed = tree.session.close(file.open);
    if let Some(key) = file.lease {
        common.leave_lease(key);
    }
    common.leave(file);
    if file.is_dir() && file.options & option::DELETE_ON_CLOSE != 0 {
        tell_deletion(tree, file);
    }
    tree.session.volume().wake_waiting();
    closed
}

/// Whoever watches a directory that is about to go is told so.
pub(crate) fn tell_deletion(tree: &Tree, file: &File) {
    for other in tree.common.of_node(file.node) {
        let watch = other.watch.lock().clone();
        if let Some(watch) = watch.filter(|_| tree.session.delete_pending(other.open)) {
            watch.end(Status::DELETE_PENDING);
        }
    }
}

/// Closes what is open in the tree; what is open durably is kept if the user may
/// come `back`.
pub(crate) fn end_tree(tree: &Arc<Tree>, back: bool) {
    for file in tree.files.take_all() {
        if back && tree.common.durables.keep(tree, &file) {
            continue;
        }
        // Nobody is left to be told.
        let _ = end(tree, &file);
    }
    if tree.common.is_idle() {
        tree.common.known.forget_all();
    }
}

/// Ends what is kept for clients that are away.
pub(crate) fn end_durables(common: &Common) {
    common.durables.end_all();
}
