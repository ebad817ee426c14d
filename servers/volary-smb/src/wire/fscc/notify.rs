//! `FILE_NOTIFY_INFORMATION` (MS-FSCC 2.7.1).

use crate::wire::{Out, out::len32};

/// What happened to an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Added = 1,
    Removed = 2,
    Modified = 3,
    RenamedOld = 4,
    RenamedNew = 5,
}

/// Returns the encoded list of changes, if it fits into `max` bytes.
pub(crate) fn list(changes: &[(Action, Vec<u8>)], max: usize) -> Option<Vec<u8>> {
    let mut out = Out::new();
    let mut last = None;
    for (action, name) in changes {
        out.align(4);
        let start = out.len();
        if let Some(last) = last {
            out.put_u32(last, len32(start.saturating_sub(last)));
        }
        last = Some(start);
        out.u32(0).u32(*action as u32).len32(name.len()).bytes(name);
        if out.len() > max {
            return None;
        }
    }
    Some(out.done())
}
