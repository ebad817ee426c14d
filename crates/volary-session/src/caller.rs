//! [`NEVER`]: the [`Cancel`] of callers that cannot be cancelled.

use volary_core::Cancel;

/// A flag that nobody sets, for callers without a cancel of their own.
pub(crate) static NEVER: Cancel = Cancel::new();
