//! Requests about files: what the session is asked for, and how its answers are
//! told.

use crate::call::{Answer, Call};
use crate::conn::{Logon, Tree};
use crate::wire::Status;
use std::sync::Arc;

/// What is open in a tree.
#[derive(Debug, Default)]
pub(crate) struct FileTable;

/// Commands that are not answered yet.
fn unanswered(_call: &Call<'_>) -> Answer {
    Err(Status::NOT_SUPPORTED.into())
}

pub(crate) fn create(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn close(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn flush(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn read(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn write(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn lock(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn ioctl(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn query_directory(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn change_notify(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn query_info(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn set_info(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

pub(crate) fn oplock_break(call: &mut Call<'_>) -> Answer {
    unanswered(call)
}

/// Closes what is open in the tree.
pub(crate) fn end_tree(_tree: &Arc<Tree>) {}

/// Closes what the logon has open, in trees that have not been ended.
pub(crate) fn end_logon(_logon: &Arc<Logon>) {}
