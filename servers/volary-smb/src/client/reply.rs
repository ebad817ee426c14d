//! [`Reply`]: a reply to be sent to the client.

use super::Logon;
use crate::wire::{Body, Header};
use std::sync::Arc;

/// A client that broke the protocol, or is gone. Its connection must end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Broken;

/// A reply, before it is signed and sent.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) header: Header,
    pub(crate) body: Body,
    pub(crate) security: Security,
}

/// How a reply is signed or encrypted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Security {
    /// The session whose keys are used.
    pub(crate) logon: Option<Arc<Logon>>,
    pub(crate) sign: bool,
    pub(crate) seal: bool,
}
