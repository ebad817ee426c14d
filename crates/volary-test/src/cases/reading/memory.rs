//! Memory that is given back.

use super::seen::{Seen, sample};
use crate::memory::{Used, takes_no_more};
use crate::reference::LARGE;
use crate::suite::{Case, case_list};
use std::collections::BTreeMap;
use volary_core::FileKind;

case_list! {
    about Close;
    reading_again_and_again_takes_no_more_memory;
}

fn reading_again_and_again_takes_no_more_memory(c: &Case) {
    let all = sample(c, c.manifest());
    let nodes: BTreeMap<_, _> = all.iter().map(|seen| (&seen.path[..], seen.node)).collect();
    let used = |seen: &Seen<'_>| {
        let (dir, name) = crate::manifest::split(&seen.path);
        Used {
            dir: nodes[dir],
            name: name.to_vec(),
            kind: seen.want.kind,
        }
    };
    let some = |kind, most| {
        let quick = move |seen: &&Seen<'_>| {
            seen.want.kind == kind
                && !seen.path.is_empty()
                && seen.attr.size < LARGE
                && c.manifest().names(&seen.path).len() <= 100
        };
        all.iter().filter(quick).take(most)
    };
    let some = [
        (FileKind::File, 40),
        (FileKind::Dir, 10),
        (FileKind::Symlink, 5),
    ]
    .into_iter()
    .flat_map(|(kind, most)| some(kind, most));
    let some: Vec<_> = some.map(used).collect();
    match some.is_empty() {
        true => c.skip("the volume holds nothing"),
        false => takes_no_more(c, &some),
    }
}
