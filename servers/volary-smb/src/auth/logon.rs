//! The input of a logon, and its result.

use crate::config::User;
use volary_core::Time;

/// The longest token that begins an exchange.
pub(super) const FIRST_TOKEN_MAX: usize = 4096;

/// A token that is refused. The client is not told why.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is malformed, or not expected now.
    Malformed,
    /// Either it has not the password of any user, or the message was changed in transit.
    Logon,
}

impl From<crate::wire::Short> for Refused {
    fn from(_: crate::wire::Short) -> Self {
        Self::Malformed
    }
}

/// The user, and the session key that both sides now share.
pub(crate) struct LoggedOn {
    pub(crate) user: usize,
    pub(crate) session_key: [u8; 16],
}

impl std::fmt::Debug for LoggedOn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("LoggedOn").field(&self.user).finish()
    }
}

/// What the server tells clients about itself during a logon.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Host<'a> {
    pub(crate) name: &'a str,
    pub(crate) users: &'a [User],
    pub(crate) now: Time,
    /// Fresh random bytes.
    pub(crate) challenge: [u8; 8],
}
