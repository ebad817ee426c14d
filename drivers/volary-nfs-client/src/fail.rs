//! What goes wrong between us and the server, in words.

use std::fmt::Display;
use std::io;
use volary_core::{Error, Kind};
use volary_rpc::Garbage;

/// Returns the server cannot be reached, or failed.
pub(crate) fn io(cause: impl Into<String>) -> Error {
    Error::note(Kind::Io, cause)
}

/// Returns what the host says of a socket, and of whom.
pub(crate) fn socket(doing: &str, at: impl Display, e: &io::Error) -> Error {
    io(format!("{doing} {at}: {e}"))
}

/// Returns a reply that contradicts the protocol or itself.
pub(crate) fn nonsense(
    what: &'static str,
    found: impl Display,
    expected: impl Into<String>,
) -> Error {
    Error::corrupt(what, 0, found.to_string(), expected)
}

/// Returns a reply that does not decode.
pub(crate) fn garbage(_: Garbage) -> Error {
    nonsense("reply", "bytes that do not decode", "what RFC 1813 says")
}
