//! [`SetXattr`]: whether setting an extended attribute may make or replace it.

use volary_core::{Kind, Result};

/// What [`Session::setxattr`](crate::Session::setxattr) does if the attribute exists, or does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetXattr {
    /// Sets it in both cases.
    Any,
    /// Answers `Exists` if it exists.
    New,
    /// Answers `NoXattr` if it does not exist.
    Replace,
}

impl SetXattr {
    /// Checks the result of looking the attribute up.
    ///
    /// # Errors
    /// `Exists`; the error of the look-up.
    pub(crate) fn check<T>(self, found: Result<T>) -> Result<()> {
        match (self, found) {
            (Self::New, Ok(_)) => Err(Kind::Exists.into()),
            (Self::Replace, Err(e)) => Err(e),
            _ => Ok(()),
        }
    }
}
