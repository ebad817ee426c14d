//! Types with too many methods, or with methods in too many files: nobody can say what such a type is for.

use super::{files_below, relative};
use crate::run::root;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Methods that a type may have, and files in which they may stand.
const METHODS_MAX: usize = 40;
const FILES_MAX: usize = 5;

/// Types that have more: methods, files, and why they are left. They may become fewer, and are lowered here then.
const TYPES: &[(&str, &str, usize, usize, &str)] = &[
    (
        "crates/volary-block",
        "Cache",
        66,
        7,
        "what all drivers call: reads, writes, stages of a commit, reading ahead, over one table of pages",
    ),
    (
        "crates/volary-session",
        "Session",
        165,
        13,
        "the public interface: a method for each thing that a server asks; state is in parts below",
    ),
    (
        "crates/volary-test",
        "Case",
        50,
        1,
        "the words of the suite: a short method for each operation, over one volume",
    ),
];

/// Methods and files of each type of a crate that is defined once there.
type Types = BTreeMap<String, (usize, BTreeSet<String>)>;

#[test]
fn types_have_no_more_methods_than_they_had() {
    let mut wrong = Vec::new();
    let mut known = TYPES.iter().collect::<Vec<_>>();
    for dir in ["crates", "drivers", "servers"] {
        for entry in std::fs::read_dir(root().join(dir)).expect("crates") {
            let path = entry.expect("entry").path();
            let name = relative(&path);
            for (of, (methods, files)) in types(&path.join("src")) {
                if methods <= METHODS_MAX && files.len() <= FILES_MAX {
                    continue;
                }
                let count = (methods, files.len());
                known.retain(|row| (row.0, row.1) != (name.as_str(), of.as_str()));
                let row = TYPES.iter().find(|row| (row.0, row.1) == (&name, &of));
                if row.is_none_or(|row| (row.2, row.3) != count) {
                    wrong.push(format!(
                        "    (\"{name}\", \"{of}\", {}, {}),",
                        count.0, count.1
                    ));
                }
            }
        }
    }
    wrong.extend(known.iter().map(|row| format!("no more: {row:?}")));
    assert!(
        wrong.is_empty(),
        "give parts of these a type of their own, or write fewer into TYPES:\n{}",
        wrong.join("\n")
    );
}

/// Returns the types of a crate. Methods of traits do not count: the trait asks for them.
fn types(src: &Path) -> Types {
    let mut defined: BTreeMap<String, usize> = BTreeMap::new();
    let mut all = Types::new();
    for file in files_below(src, "rs") {
        let text = std::fs::read_to_string(&file).expect("source");
        let parsed = syn::parse_file(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        for item in &parsed.items {
            match item {
                syn::Item::Struct(item) => *defined.entry(item.ident.to_string()).or_default() += 1,
                syn::Item::Enum(item) => *defined.entry(item.ident.to_string()).or_default() += 1,
                syn::Item::Impl(item) if item.trait_.is_none() => {
                    let Some(of) = name_of(&item.self_ty) else {
                        continue;
                    };
                    let is_method = |item: &&syn::ImplItem| matches!(item, syn::ImplItem::Fn(_));
                    let (methods, files) = all.entry(of).or_default();
                    *methods += item.items.iter().filter(is_method).count();
                    files.insert(relative(&file));
                }
                _ => {}
            }
        }
    }
    all.retain(|of, _| defined.get(of) == Some(&1));
    all
}

/// Returns the last word of a type's path.
fn name_of(of: &syn::Type) -> Option<String> {
    let syn::Type::Path(path) = of else {
        return None;
    };
    Some(path.path.segments.last()?.ident.to_string())
}
