//! The functions that both kinds of table have.

use crate::abi::{VolaryAttach, VolaryCaps, VolaryContext, VolaryHost};
use std::ffi::c_void;

/// The functions for the volume as a whole, which both kinds of table have.
#[derive(Clone, Copy)]
pub(crate) struct Hooks {
    pub(crate) fs: *mut c_void,
    pub(crate) attach: Option<
        unsafe extern "C" fn(
            *mut c_void,
            *const VolaryContext,
            *const VolaryHost,
            *const VolaryAttach,
        ) -> i32,
    >,
    pub(crate) release: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(crate) caps: Option<unsafe extern "C" fn(*mut c_void, *mut VolaryCaps) -> i32>,
    pub(crate) connect:
        Option<unsafe extern "C" fn(*mut c_void, *const VolaryContext, *mut *mut c_void) -> i32>,
    pub(crate) disconnect: Option<unsafe extern "C" fn(*mut c_void, *mut c_void)>,
}
