//! [`Claim`]: identifies an open, so that a client can find it again.

use std::time::Duration;

/// What identifies an open, besides its id.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// The user who opened it.
    pub(crate) user: String,
    /// The client's GUID.
    pub(crate) client: [u8; 16],
    pub(crate) guid: Option<[u8; 16]>,
    pub(crate) app: Option<[u8; 16]>,
    /// How long it is kept without a connection, or `None` if it is not durable.
    pub(crate) time: Option<Duration>,
}

/// Identifies a CREATE. It includes the user, so that a user who learns another's GUID cannot
/// interfere.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CreateName {
    pub(crate) user: String,
    /// The client's GUID.
    pub(crate) client: [u8; 16],
    pub(crate) guid: [u8; 16],
}

impl Claim {
    pub(crate) fn name(&self) -> Option<CreateName> {
        Some(CreateName {
            user: self.user.clone(),
            client: self.client,
            guid: self.guid?,
        })
    }
}
