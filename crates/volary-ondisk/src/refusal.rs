//! Refusals of drivers that only read.

use volary_core::{Error, Kind};

/// Returns the refusal to make a volume of a format, and names the programs that can.
pub fn not_made(format: &str, makers: &str) -> Error {
    let words = format!("{format} volumes are read here, not made; make one with {makers}");
    Error::note(Kind::Unsupported, words)
}

/// Returns the refusal to change a volume of a format. `who` says what can, if anything does.
pub fn not_changed(format: &str, who: Option<&str>) -> Error {
    let who = who.map(|who| format!("; {who}")).unwrap_or_default();
    let words = format!("{format} volumes take no changes here{who}");
    Error::note(Kind::Unsupported, words)
}
