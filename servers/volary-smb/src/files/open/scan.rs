//! [`Scan`]: the state of a listing of an open directory.

use crate::files::wildcard::Pattern;
use volary_core::Cookie;

/// The state of a listing of an open directory.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) pattern: Pattern,
    /// How many of `.` and `..` have been listed.
    pub(crate) dots: u8,
    pub(crate) place: Cookie,
    /// Whether anything has been listed.
    pub(crate) found: bool,
    pub(crate) ended: bool,
}

impl Scan {
    pub(crate) fn new(pattern: &str) -> Self {
        Self {
            pattern: Pattern::new(pattern),
            dots: 0,
            place: Cookie::START,
            found: false,
            ended: false,
        }
    }
}
