//! Reads arguments and writes results by pointers.

use crate::abi::{VolaryAttr, VolaryContext, VolaryNode};
use crate::convert::{self, to_attr};
use crate::slot::bytes;
use std::ffi::{c_char, c_void};
use volary_core::{Attr, Kind, Name, NodeId, Result};

pub(super) type Fs = *mut c_void;
pub(super) type Cx = *const VolaryContext;
pub(super) type Chars = *const c_char;

pub(super) fn node(n: VolaryNode) -> Result<NodeId> {
    convert::node(n).map_err(|_| Kind::Stale.into())
}

/// # Safety
/// There are `len` bytes at `at`.
pub(super) unsafe fn name<'a>(at: Chars, len: usize) -> Result<Name<'a>> {
    Ok(Name::new(unsafe { bytes(at.cast(), len) })?)
}

/// Writes attributes to `out`.
///
/// # Safety
/// `out` has room for them.
pub(super) unsafe fn give(out: *mut VolaryAttr, attr: &Attr) -> i32 {
    unsafe { out.write(to_attr(attr)) };
    0
}

/// Writes bytes, if there is room, and returns their number.
///
/// # Safety
/// `buf` has `room` bytes.
pub(super) unsafe fn give_bytes(found: &[u8], buf: *mut c_void, room: usize) -> i64 {
    if found.len() <= room && !found.is_empty() {
        unsafe { std::ptr::copy_nonoverlapping(found.as_ptr(), buf.cast(), found.len()) };
    }
    found.len() as i64
}
