//! [`NEVER`]: what callers without a [`Cancel`] are called off by.

use volary_core::Cancel;

/// For callers who never lose interest.
pub(crate) static NEVER: Cancel = Cancel::new();
