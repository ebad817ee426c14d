//! Cases for volumes that are only read: every answer is compared with a manifest.

mod attributes;
mod bytes;
mod claims;
mod ends;
mod listing;
mod memory;
mod names;
mod opens;
mod refusals;
mod seen;
mod threads;

use crate::suite::CaseSpec;

/// Returns all cases, in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = &'static CaseSpec> {
    [
        // First, as what other cases have given back hides what this one takes.
        memory::CASES,
        names::CASES,
        attributes::CASES,
        listing::CASES,
        bytes::CASES,
        opens::CASES,
        claims::CASES,
        refusals::CASES,
        threads::CASES,
        ends::CASES,
    ]
    .into_iter()
    .flatten()
}
