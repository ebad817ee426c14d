//! Compares the entries of directories with the names in the files' records.

use super::path::path;
use super::records::{All, RESERVED};
use super::tree::Tree;
use crate::directory::dir::{Directory, I30};
use crate::disk::ondisk::{kind, number};
use crate::files::node::Node;
use crate::store::Store;
use std::collections::BTreeSet;
use volary_core::{Finding, Result};
use volary_ondisk::reporter::{Reporter, damage, ends, met};

/// Checks all directories.
///
/// # Errors
/// `Interrupted`; `Io`.
pub(super) fn check(store: &Store, all: &mut All, findings: &mut Reporter<'_>) -> Result<()> {
    let dirs: Vec<u64> = all
        .nodes
        .iter()
        .filter(|(_, seen)| seen.is_dir)
        .map(|(number, _)| *number)
        .collect();
    let count = dirs.len() as u64;
    for (number, done) in dirs.iter().zip(0..) {
        findings.progress("directories", done, count)?;
        directory(store, *number, done, count, all, findings)?;
    }
    names(all, findings);
    paths(&dirs, all, findings);
    Ok(())
}

/// Checks a directory, when `done` of the `count` directories are done.
fn directory(
    store: &Store,
    number: u64,
    done: u64,
    count: u64,
    all: &mut All,
    findings: &mut Reporter<'_>,
) -> Result<()> {
    let read = Node::of(store.mft(), number).and_then(|node| {
        // `$Extend/$Secure` and similar records are indexes of other things than names.
        match node.is_dir() && node.has(kind::INDEX_ROOT) && !has_names(&node) {
            true => Ok(None),
            false => Directory::of(store.mft(), &node).map(Some),
        }
    });
    match read {
        Ok(Some(dir)) => Tree::new(store, all, findings, dir.index(), done, count).check(),
        Ok(None) => Ok(()),
        Err(e) if ends(&e) => Err(e),
        Err(e) => {
            all.is_partial = true;
            let path = path(store.mft(), all, number, None);
            findings.tell(&Finding {
                code: "directory",
                path: Some(path),
                ..met(&e)
            });
            Ok(())
        }
    }
}

fn has_names(node: &Node) -> bool {
    node.names_of(kind::INDEX_ROOT)
        .iter()
        .any(|name| *name == I30)
}

/// Compares the names in each file's record with the entries of directories.
fn names(all: &All, findings: &mut Reporter<'_>) {
    let files = all
        .nodes
        .iter()
        .filter(|(number, _)| !RESERVED.contains(number));
    for (number, seen) in files.filter(|(_, seen)| !seen.is_named_as_listed()) {
        // If some directories could not be read, their entries are missing here.
        if all.is_partial {
            return;
        }
        let (own, listed) = seen.counts();
        let (code, words) = match listed {
            0 => ("lost", format!("no directory has record {number}")),
            _ => (
                "names",
                format!(
                    "record {number} has {own} names, directories {listed}, and they are not the same"
                ),
            ),
        };
        findings.tell(&Finding {
            code,
            ..damage(seen.at, words)
        });
    }
}

/// Checks that the parents of each directory lead to the root.
fn paths(dirs: &[u64], all: &All, findings: &mut Reporter<'_>) {
    let mut good = BTreeSet::from([number::ROOT]);
    for dir in dirs.iter().filter(|dir| !RESERVED.contains(dir)) {
        let (mut way, mut at) = (BTreeSet::new(), *dir);
        while !good.contains(&at) && way.insert(at) {
            at = all.nodes.get(&at).map_or(0, |seen| seen.parent);
        }
        let is_good = good.contains(&at);
        // The directories on the way count as good from here on, so that only the first is
        // reported.
        good.append(&mut way);
        let is_listed = all
            .nodes
            .get(dir)
            .filter(|seen| seen.parent != 0 && !is_good);
        if let Some(seen) = is_listed.filter(|_| !all.is_partial) {
            let words = format!("no path leads to directory {dir}");
            findings.tell(&Finding {
                code: "lost",
                ..damage(seen.at, words)
            });
        }
    }
}
