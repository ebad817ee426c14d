//! [`Call`]: the caller of a call, and where it came from.

use super::owner::Caller;
use std::net::SocketAddr;
use volary_session::Party;

/// A call, apart from its arguments.
pub(crate) struct Call {
    pub(crate) peer: SocketAddr,
    pub(crate) local: SocketAddr,
    pub(crate) procedure: u32,
    pub(crate) caller: Caller,
    /// The party to which the locks belong that it takes or ends.
    pub(crate) party: Party,
}
