//! [`Call`]: who calls, and how.

use crate::owner::Caller;
use std::net::SocketAddr;
use volary_session::Party;

/// A call, apart from its arguments.
pub(crate) struct Call {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) procedure: u32,
    pub(crate) caller: Caller,
    /// Whose the locks are that it takes or ends.
    pub(crate) party: Party,
}
