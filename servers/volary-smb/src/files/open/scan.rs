//! [`Scan`]: how far an open directory has been listed.

use crate::files::wildcard::Pattern;
use volary_core::Cookie;

/// How far an open directory has been listed.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) pattern: Pattern,
    /// How many of `.` and `..` have been given.
    pub(crate) dots: u8,
    pub(crate) place: Cookie,
    /// Whether anything has been given.
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
