//! The cases of the conformance suite, by subject.

mod attributes;
mod careful;
mod claims;
mod concurrency;
mod content;
mod create;
mod detach;
mod listing;
mod lookup;
mod memory;
mod names;
mod opens;
mod read_only;
pub(crate) mod reading;
mod remove;
mod rename;
mod rename_flags;
mod space;
mod special;
mod volume;

use crate::suite::CaseSpec;

/// Returns all cases, in the order in which they run.
pub(crate) fn all() -> impl Iterator<Item = &'static CaseSpec> {
    [
        // First, as what other cases have given back hides what this one takes.
        memory::CASES,
        volume::CASES,
        claims::CASES,
        lookup::CASES,
        names::CASES,
        listing::CASES,
        create::CASES,
        special::CASES,
        remove::CASES,
        rename::CASES,
        rename_flags::CASES,
        attributes::CASES,
        opens::CASES,
        content::CASES,
        space::CASES,
        detach::CASES,
        read_only::CASES,
        careful::CASES,
        concurrency::CASES,
    ]
    .into_iter()
    .flatten()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    #[test]
    fn every_case_has_a_name_of_its_own() {
        let mut seen = HashSet::new();
        for case in super::all().chain(super::reading::all()) {
            assert!(seen.insert(case.name), "{} is there twice", case.name);
        }
        assert!(seen.len() >= 100, "only {} cases", seen.len());
    }
}
