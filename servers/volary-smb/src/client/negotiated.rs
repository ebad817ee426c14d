//! [`Negotiated`]: what a connection was agreed on.

use crate::crypto::{Algorithm, Cipher, Preauth};
use crate::wire::Dialect;
use crate::wire::negotiate::Request;

/// What was agreed on.
#[derive(Debug)]
pub(crate) struct Negotiated {
    pub(crate) dialect: Dialect,
    pub(crate) client_guid: [u8; 16],
    /// What the server says that it can do.
    pub(crate) capabilities: u32,
    /// What the client said, for its validation.
    pub(crate) asked: Request,
    pub(crate) cipher: Option<Cipher>,
    pub(crate) signing: Algorithm,
    /// Over the request and the response.
    pub(crate) preauth: Preauth,
    pub(crate) io_max: u32,
}
