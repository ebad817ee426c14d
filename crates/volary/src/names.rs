//! Checks of names that are added to a registry.

use volary_core::{Error, Kind, Result};

/// # Errors
/// `Invalid`.
pub(crate) fn check_name(what: &str, name: &str) -> Result<()> {
    let is_plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let is_part = |b: u8| is_plain(b) || b"-+_.".contains(&b);
    match name.as_bytes() {
        [first, rest @ ..] if is_plain(*first) && rest.iter().all(|b| is_part(*b)) => Ok(()),
        _ => Err(bad_name(what, name)),
    }
}

pub(crate) fn bad_name(what: &str, name: &str) -> Error {
    let name = volary_core::escape_short(name.as_bytes());
    Error::note(
        Kind::Invalid,
        format!(
            "{what} '{name}' cannot be added: that is no name; take lower-case letters and digits"
        ),
    )
}

pub(crate) fn taken(what: &str, name: &str) -> Error {
    let words = format!("{what} '{name}' cannot be added: that name is taken");
    Error::note(Kind::Invalid, words)
}
