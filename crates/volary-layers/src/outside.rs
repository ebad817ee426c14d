//! What layers need of the world outside.

use crate::Pace;
use std::io::Write;
use std::sync::Arc;
use volary_core::{Error, Kind, Result};

/// What layers need of the world outside, handed in by whoever makes a stack of
/// them by name. What is not given here is refused.
pub trait Outside: Send + Sync {
    /// Takes a line of the `trace` layer, without its end.
    fn trace(&self, line: &str) {
        let _ = line;
    }

    /// Opens a file of the host, to add lines at its end.
    ///
    /// # Errors
    /// Of the host, naming the file.
    fn append(&self, path: &str) -> Result<Box<dyn Write + Send>> {
        let _ = path;
        Err(missing("files"))
    }

    /// Returns a clock that only goes forward.
    ///
    /// # Errors
    /// `Unsupported` if there is none.
    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Err(missing("a clock"))
    }

    /// Returns a passphrase: the first line of the file at `path`, or, without a path,
    /// the one that was given to the program. Whoever is asked for one that `is_new`
    /// is asked twice.
    ///
    /// # Errors
    /// Of the host; `Invalid` for a file on which others have rights, and without any, saying
    /// how to give one.
    fn passphrase(&self, path: Option<&str>, is_new: bool) -> Result<Vec<u8>> {
        let _ = (path, is_new);
        Err(missing("a passphrase"))
    }

    /// Fills `bytes` with what nobody can guess.
    ///
    /// # Errors
    /// Of the host.
    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        let _ = bytes;
        Err(missing("random numbers"))
    }
}

/// A world in which there is nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nothing;

impl Outside for Nothing {}

fn missing(what: &str) -> Error {
    let words = format!("this layer needs {what}, and this program gives none");
    Error::note(Kind::Unsupported, words)
}
