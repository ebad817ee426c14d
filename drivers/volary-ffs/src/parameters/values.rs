//! Checked values of options that `make` and `tune` share.

use crate::disk::ondisk::VOLNAME;
use volary_core::{Error, Kind, Options, Result};

/// Returns the error for a value that is out of range.
pub(crate) fn invalid(words: impl Into<String>) -> Error {
    Error::note(Kind::Invalid, words)
}

/// Returns a number within a range that fits into `i32`. Returns `None` if the option is not given.
///
/// # Errors
/// `Invalid`.
pub(crate) fn small(
    options: &Options,
    name: &str,
    range: std::ops::RangeInclusive<u64>,
) -> Result<Option<i32>> {
    let Some(n) = options.number(name)? else {
        return Ok(None);
    };
    let words = || invalid(format!("{name}={n}: {} to {}", range.start(), range.end()));
    let fits = i32::try_from(n).ok().filter(|_| range.contains(&n));
    fits.ok_or_else(words).map(Some)
}

/// Returns a label as stored, without the NULs behind it.
///
/// # Errors
/// `Invalid` for a label that is too long, or has a NUL.
pub(crate) fn label(text: &str) -> Result<Vec<u8>> {
    let label = text.as_bytes();
    if label.len() >= VOLNAME.len() || label.contains(&0) {
        let most = VOLNAME.len() - 1;
        return Err(invalid(format!(
            "the label has {} bytes: at most {most}",
            label.len()
        )));
    }
    Ok(label.to_vec())
}
