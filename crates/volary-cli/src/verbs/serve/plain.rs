//! Text of users.

/// Returns text of a user, safe to print.
pub(super) fn plain(text: &str) -> volary::Escaped<'_> {
    volary::escape(text.as_bytes())
}
