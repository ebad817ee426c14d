//! Errors between this client and the server, in words.

use std::fmt::Display;
use std::io;
use volary_core::{Error, Kind};
use volary_rpc::Garbage;

/// Returns the error for a server that cannot be reached, or has failed.
pub(crate) fn io(cause: impl Into<String>) -> Error {
    Error::note(Kind::Io, cause)
}

/// Returns the error for a failed call on a socket, with the peer's address.
pub(crate) fn socket(doing: &str, at: impl Display, e: &io::Error) -> Error {
    io(format!("{doing} {at}: {e}"))
}

/// Returns the error for a reply that contradicts the protocol or itself.
pub(crate) fn nonsense(
    what: &'static str,
    found: impl Display,
    expected: impl Into<String>,
) -> Error {
    Error::corrupt(what, 0, found.to_string(), expected)
}

/// Returns the error for a reply that does not decode.
pub(crate) fn garbage(_: Garbage) -> Error {
    nonsense("reply", "bytes that do not decode", "what RFC 1813 says")
}
