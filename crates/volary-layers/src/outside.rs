//! The host services that layers need.

use crate::Pace;
use std::io::Write;
use std::sync::Arc;
use volary_core::{Error, Kind, Result};

/// The host services that layers need, provided by the program that makes a stack of them by name.
/// A service that is not implemented is refused.
pub trait Outside: Send + Sync {
    /// Receives a line of the `trace` layer, without a line end.
    fn trace(&self, line: &str) {
        let _ = line;
    }

    /// Opens a file of the host to append lines.
    ///
    /// # Errors
    /// Those of the host, with the file's name.
    fn append(&self, path: &str) -> Result<Box<dyn Write + Send>> {
        let _ = path;
        Err(missing("files"))
    }

    /// Returns a monotonic clock.
    ///
    /// # Errors
    /// `Unsupported` if there is none.
    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Err(missing("a clock"))
    }

    /// Returns a passphrase: the first line of the file at `path`, or without a path the one that
    /// was given to the program. If a user is asked and the passphrase `is_new`, they must type it
    /// twice.
    ///
    /// # Errors
    /// Those of the host. `Invalid` for a file on which others have rights. `Invalid` if there is
    /// no passphrase, which says how to give one.
    fn passphrase(&self, path: Option<&str>, is_new: bool) -> Result<Vec<u8>> {
        let _ = (path, is_new);
        Err(missing("a passphrase"))
    }

    /// Fills `bytes` with random bytes that nobody can guess.
    ///
    /// # Errors
    /// Of the host.
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        let _ = bytes;
        Err(missing("random numbers"))
    }
}

/// An implementation that provides no services.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Outside for Nothing {}

fn missing(what: &str) -> Error {
    let words = format!("this layer needs {what}, and this program gives none");
    Error::note(Kind::Unsupported, words)
}
