//! [`SetXattr`]: whether an extended attribute is made, or replaced.

use volary_core::{Kind, Result};

/// What [`Session::setxattr`](crate::Session::setxattr) does about an attribute that is there, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetXattr {
    /// Sets it either way.
    Any,
    /// Answers `Exists` if it is there.
    New,
    /// Answers `NoXattr` if it is not there.
    Replace,
}

impl SetXattr {
    /// Checks what was found of the attribute.
    ///
    /// # Errors
    /// `Exists`; what kept it from being found.
    pub(crate) fn check<T>(self, found: Result<T>) -> Result<()> {
        match (self, found) {
            (Self::New, Ok(_)) => Err(Kind::Exists.into()),
            (Self::Replace, Err(e)) => Err(e),
            _ => Ok(()),
        }
    }
}
