//! CHANGE_NOTIFY (MS-SMB2 3.3.5.19, MS-FSA 2.1.5.11): directories that clients watch.
//!
//! The first request on an open determines what is watched. It also determines how much is stored
//! between requests: as much as its reply may hold. [`open::watches`](super::open) decides which
//! watches are told of a change.

use super::access;
use super::call::Call;
use super::open::{File, Watch};
use crate::answer::{Answer, Failure};
use crate::wire::{Cursor, FileId, Status};
use std::sync::Arc;

const WATCH_TREE: u16 = 1;

/// Answers CHANGE_NOTIFY.
pub(crate) fn change_notify(call: &mut Call<'_>) -> Answer {
    let mut c = Cursor::new(call.body);
    if c.u16()? != 32 {
        return Err(Status::INVALID_PARAMETER.into());
    }
    let (flags, max) = (c.u16()?, c.u32()?);
    let id = FileId::read(&mut c)?;
    let filter = c.u32()?;
    let file = call.named(id)?;
    if !file.is_dir() || max > call.link.io_max() {
        return Err(Status::INVALID_PARAMETER.into());
    }
    file.need_any(access::READ_DATA)?;
    if call.tree.session.delete_pending(file.open) {
        return Err(Status::DELETE_PENDING.into());
    }
    let max = usize::try_from(max).unwrap_or(0);
    let watch = watch_of(call, &file, filter, flags & WATCH_TREE != 0, max)?;
    watch.ask(call.wait, max)
}

/// Returns the file's watch, and creates it if necessary.
///
/// # Errors
/// `INSUFFICIENT_RESOURCES` if the user has as many watches as permitted.
fn watch_of(
    call: &Call<'_>,
    file: &Arc<File>,
    filter: u32,
    tree: bool,
    max: usize,
) -> Result<Arc<Watch<File>>, Failure> {
    let mut slot = file.watch.lock();
    if let Some(watch) = &*slot {
        return Ok(Arc::clone(watch));
    }
    let taken = call.logon.budget.watches.take(call.link.limits().watches);
    let watches = &call.tree.common.watches;
    let taken = taken.ok_or(Status::INSUFFICIENT_RESOURCES)?;
    let (node, bytes) = (file.node, &watches.bytes);
    let watch = Watch::new(file, node, filter, tree, max, bytes, taken);
    let watch = Arc::new(watch);
    watches.add(&watch, file);
    *slot = Some(Arc::clone(&watch));
    Ok(watch)
}
