//! Errors of benchmarks.

use crate::exit::{Exit, Fail};

/// Returns the error of a benchmark that could not be run.
pub(super) fn failed(e: impl std::fmt::Display) -> Fail {
    Fail::new(Exit::Failed, format!("bench: {e:#}"))
}
