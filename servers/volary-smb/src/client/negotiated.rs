//! [`Negotiated`]: the result of a connection's negotiation.

use crate::crypto::{Algorithm, Cipher, Preauth};
use crate::wire::Dialect;
use crate::wire::negotiate::Request;

/// The result of a negotiation.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) dialect: Dialect,
    pub(crate) client_guid: [u8; 16],
    /// The capabilities that the server announced.
    pub(crate) capabilities: u32,
    /// The client's request, which is validated later.
    pub(crate) asked: Request,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing: Algorithm,
    /// The hash over the request and the response.
    pub(crate) preauth: Preauth,
    pub(crate) io_max: u32,
}
