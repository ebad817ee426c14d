//! [`Claim`]: what a client may call an open by, to find it again.

use std::time::Duration;

/// What a client may call an open by beside its id.
#[derive(Clone, Debug)]
pub(crate) struct Claim {
    /// Who opened it.
    pub(crate) user: String,
    /// The client's machine.
    pub(crate) client: [u8; 16],
    pub(crate) guid: Option<[u8; 16]>,
    pub(crate) app: Option<[u8; 16]>,
    /// How long it is kept without a connection; none if it is not durable.
    pub(crate) time: Option<Duration>,
}

/// What a CREATE is called by. The user is part of it: whoever learns what another calls theirs by
/// is not in their way.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CreateName {
    pub(crate) user: String,
    /// The client's machine.
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
