//! The promises of a volume while a script ran, and whether the state after a power cut keeps them.

use crate::disks::trace::Moment;
use crate::script::tree::{Node, Tree, split};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The promise of a volume for a power cut. In any case, the volume must be sound, and no file may
/// hold bytes that were not written to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// Each change since the last sync was made or not, independently of the others. All else is as
    /// it was synced. A file that was moved since has one name or the other.
    Synced,
    /// The state after some operation since the last sync: all operations before it are there, and
    /// none after it.
    Prefix,
}

/// The volume's tree after each operation of a script.
#[derive(Clone, Debug)]
pub struct History {
    /// The tree before the first operation.
    pub before: Tree,
    /// The tree after each operation.
    pub after: Vec<Tree>,
    /// Which operations make all earlier changes durable.
    pub durable: Vec<bool>,
    /// The operation that ended the attachment.
    pub detached: Option<usize>,
}

/// A directory, by its number, and a name in it.
type Place = (u32, String);

/// The states of one node between the last sync and a power cut.
#[derive(Default)]
struct Known {
    is_dir: bool,
    /// Its places, each with the indexes of the trees in which it was there.
    places: BTreeMap<Place, Vec<usize>>,
    /// A file's versions.
    contents: Vec<Arc<Vec<u8>>>,
    /// In how many trees it exists.
    count: usize,
}

type Nodes = BTreeMap<u32, Known>;

impl History {
    /// Returns the volume's trees since the last completed sync.
    fn window(&self, at: Moment) -> Vec<&Tree> {
        let mut ended = self.durable.iter().take(at.ended);
        let synced = ended.rposition(|durable| *durable);
        let first = match synced {
            None => vec![&self.before],
            Some(_) => Vec::new(),
        };
        let since = self.after.iter().take(at.began);
        first
            .into_iter()
            .chain(since.skip(synced.unwrap_or(0)))
            .collect()
    }

    /// Returns whether the attachment has ended.
    pub fn is_detached(&self, at: Moment) -> bool {
        self.detached.is_some_and(|op| at.ended > op)
    }

    /// Checks whether the tree that was found keeps the promise.
    ///
    /// # Errors
    /// Says which file or directory is wrong, and how.
    pub fn judge(&self, found: &Tree, promise: Promise, at: Moment) -> Result<(), String> {
        let window = self.window(at);
        let nodes = nodes(&window);
        match promise {
            Promise::Synced => each_change_or_not(found, &window, &nodes),
            Promise::Prefix => is_one_of(found, &window, &nodes),
        }
    }
}

fn nodes(window: &[&Tree]) -> Nodes {
    let mut nodes = Nodes::new();
    for (time, tree) in window.iter().enumerate() {
        for (path, node) in *tree {
            let (dir, name) = split(path);
            let parent = match tree.get(dir) {
                Some(Node::Dir(number)) => *number,
                _ => 0,
            };
            let (Node::Dir(number) | Node::File(number, _)) = node;
            let known = nodes.entry(*number).or_default();
            let times = known.places.entry((parent, name.to_owned()));
            times.or_default().push(time);
            known.count += 1;
            match node {
                Node::Dir(_) => known.is_dir = true,
                Node::File(_, content) => known.contents.push(content.clone()),
            }
        }
    }
    nodes
}

/// Returns whether this content is possible for a file. It must consist of the file's own bytes or
/// zeros, have a length between its shortest and longest, and keep all bytes that never changed.
fn fits(content: &[u8], tag: u32, file: &Known) -> bool {
    // Most contents are the same as at some time.
    if file.contents.iter().any(|then| **then == content) {
        return true;
    }
    let lengths = || file.contents.iter().map(|c| c.len());
    let (least, most) = (lengths().min().unwrap_or(0), lengths().max().unwrap_or(0));
    let own = tag.to_le_bytes();
    let own = content.chunks(own.len()).all(|found| {
        let alike = |(found, own): (&u8, &u8)| *found == 0 || found == own;
        found.iter().zip(&own).all(alike)
    });
    let Some((first, others)) = file.contents.split_first() else {
        return false;
    };
    let kept = others.iter().fold(first.len(), |len, other| {
        let pairs = first.iter().zip(other.iter()).take(len);
        pairs.take_while(|(a, b)| a == b).count()
    });
    let same = content
        .iter()
        .zip(first.iter())
        .take(kept)
        .all(|(a, b)| a == b);
    own && same && (least..=most).contains(&content.len())
}

/// Checks that each change was made or not. Every node that was found must have been in its
/// directory. Every node that existed all the time must be found in one of its places.
fn each_change_or_not(found: &Tree, window: &[&Tree], nodes: &Nodes) -> Result<(), String> {
    // The directories that each path may be.
    let mut dirs: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::from([("", BTreeSet::from([0]))]);
    let mut seen = BTreeSet::new();
    for (path, node) in found {
        let parents = dirs.get(split(path).0).cloned().unwrap_or_default();
        let here: Vec<u32> = nodes
            .iter()
            .filter(|(_, known)| was_here(known, &parents, path, found, nodes))
            .map(|(number, _)| *number)
            .collect();
        let is = |number: &u32| nodes.get(number).is_some_and(|k| may_be(node, *number, k));
        let these: BTreeSet<u32> = here.iter().copied().filter(is).collect();
        if these.is_empty() {
            return Err(strange(path, node, here.is_empty()));
        }
        seen.extend(these.iter().copied());
        if let Node::Dir(_) = node {
            dirs.insert(path, these);
        }
    }
    for (number, known) in nodes {
        if known.count >= window.len() && !seen.contains(number) {
            let names: Vec<&String> = known.places.keys().map(|(_, name)| name).collect();
            return Err(format!("{names:?}: was synced, and is lost"));
        }
    }
    Ok(())
}

/// Returns whether the node that was found may be a state of this one.
fn may_be(found: &Node, number: u32, known: &Known) -> bool {
    match found {
        Node::Dir(_) => known.is_dir,
        Node::File(_, content) => !known.is_dir && fits(content, number, known),
    }
}

/// Returns whether a node was in one of these directories by the name of this path, or by a long
/// name that FAT's short name (`ALONGN~1.TXT`) replaces. The long name is lost if only the sector
/// of the short one was written. It is then missing, or belongs to another node that had the place
/// before or after this one.
fn was_here(
    known: &Known,
    parents: &BTreeSet<u32>,
    path: &str,
    found: &Tree,
    nodes: &Nodes,
) -> bool {
    let (dir, name) = split(path);
    let head = name.split_once('~').and_then(|(head, _)| head.get(..2));
    let stands_for = |place: &Place| {
        let long = &place.1;
        let same = |head: &str| long.get(..2).is_some_and(|h| h.eq_ignore_ascii_case(head));
        let whole = || found.get(&format!("{dir}/{long}"));
        let is_others = |whole: &Node| {
            let mut all = nodes.iter();
            all.any(|(n, other)| may_be(whole, *n, other) && took_turns(place, known, other, nodes))
        };
        head.is_some_and(same) && whole().is_none_or(is_others)
    };
    let mut places = known.places.keys();
    places.any(|place| parents.contains(&place.0) && (place.1 == name || stands_for(place)))
}

/// Returns whether two nodes were in a place at different times, with the place empty in between.
/// So neither replaced the other in one step.
fn took_turns(place: &Place, a: &Known, b: &Known, nodes: &Nodes) -> bool {
    let times = |known: &Known| known.places.get(place).cloned().unwrap_or_default();
    let taken: BTreeSet<usize> = nodes.values().flat_map(times).collect();
    let apart = |i: usize, j: usize| (i.min(j)..i.max(j)).any(|time| !taken.contains(&time));
    let later = times(b);
    !std::ptr::eq(a, b) && times(a).iter().any(|i| later.iter().any(|j| apart(*i, *j)))
}

fn strange(path: &str, node: &Node, never: bool) -> String {
    match node {
        Node::Dir(_) => format!("{path}: a directory that was never there"),
        Node::File(..) if never => format!("{path}: a file that was never there"),
        Node::File(_, content) => {
            let len = content.len();
            let start = content.get(..8.min(len)).unwrap_or_default();
            format!("{path}: {len} bytes that it never had, beginning with {start:02x?}")
        }
    }
}

/// Checks whether the tree that was found is one of these.
fn is_one_of(found: &Tree, window: &[&Tree], nodes: &Nodes) -> Result<(), String> {
    let differ: Vec<Vec<String>> = window
        .iter()
        .map(|tree| differences(found, tree, nodes))
        .collect();
    match differ.iter().min_by_key(|all| all.len()) {
        Some(none) if none.is_empty() => Ok(()),
        nearest => Err(format!(
            "is none of the {} states since the last sync; of the nearest differ: {}",
            window.len(),
            nearest.map(|all| all.join(", ")).unwrap_or_default()
        )),
    }
}

/// Returns the differences from the expected tree, in words.
fn differences(found: &Tree, expected: &Tree, nodes: &Nodes) -> Vec<String> {
    let lost = expected.keys().filter(|path| !found.contains_key(*path));
    let lost = lost.map(|path| format!("{path} (not there)"));
    let strange = found.iter().filter_map(|(path, node)| {
        let words = match (node, expected.get(path)) {
            (_, None) => "new".to_owned(),
            (Node::Dir(_), Some(Node::Dir(_))) => return None,
            (Node::File(_, content), Some(Node::File(tag, expected))) => {
                let own = nodes.get(tag).is_some_and(|f| fits(content, *tag, f));
                match content.len() == expected.len() {
                    true if own => return None,
                    true => "content".to_owned(),
                    false => format!("{} bytes, not {}", content.len(), expected.len()),
                }
            }
            _ => "of another kind".to_owned(),
        };
        Some(format!("{path} ({words})"))
    });
    lost.chain(strange).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::op::{Op, Ops};
    use crate::script::tree::{apply, content};

    #[test]
    fn a_short_name_stands_for_a_long_one_that_is_not_there() {
        let told = history("create /a-long-name-of-a-file; write /a-long-name-of-a-file 0 8");
        let whole = ("/a-long-name-of-a-file", content(0x55, 8));
        let alias = ("/A-LONG~1", content(0x55, 8));
        assert!(judge(&told, std::slice::from_ref(&alias), Promise::Synced).is_ok());
        assert!(judge(&told, &[alias, whole], Promise::Synced).is_err());
        let other = ("/OTHERN~1", content(0x55, 8));
        assert!(judge(&told, &[other], Promise::Synced).is_err());
    }

    #[test]
    fn a_short_name_stands_beside_the_long_one_of_a_file_made_after_a_removal() {
        let made = "create /Mixed.Case; write /Mixed.Case 0 8; create /b; sync; ";
        let [again, over] = [
            "unlink /Mixed.Case; create /Mixed.Case; write /Mixed.Case 0 4",
            "rename /b /Mixed.Case; write /Mixed.Case 0 4",
        ]
        .map(|then| history(&format!("{made}{then}")));
        let old = content(0x55, 8);
        let [new, moved] = [5, 2].map(|i| content(0x55 + i * 256, 4));
        for (told, short, whole, is) in [
            (&again, &old, &new, true),
            (&again, &new, &old, true),
            (&again, &old, &old, false),
            (&again, &new, &new, false),
            (&over, &old, &moved, false),
            (&over, &moved, &old, false),
        ] {
            let found = [
                ("/MIXED~1.CAS", short),
                ("/Mixed.Case", whole),
                ("/b", &Vec::new()),
            ];
            let found = found.map(|(path, content)| (path, content.clone()));
            let kept = judge(told, &found, Promise::Synced);
            assert_eq!(kept.is_ok(), is, "{short:x?} {whole:x?}: {kept:?}");
        }
    }

    fn history(text: &str) -> History {
        let ops: Ops = text.parse().unwrap();
        let mut tree = Tree::new();
        let mut after = Vec::new();
        for (i, op) in ops.0.iter().enumerate() {
            assert!(apply(&mut tree, op, 0x55 + (i as u32) * 256));
            after.push(tree.clone());
        }
        History {
            before: Tree::new(),
            after,
            durable: ops.0.iter().map(|op| *op == Op::Sync).collect(),
            detached: None,
        }
    }

    fn judge(history: &History, found: &[(&str, Vec<u8>)], promise: Promise) -> Result<(), String> {
        let file = |(p, c): &(&str, Vec<u8>)| (p.to_string(), Node::File(0, Arc::new(c.clone())));
        let found = found.iter().map(file).collect();
        let count = history.after.len();
        let at = Moment {
            began: count,
            ended: count,
        };
        history.judge(&found, promise, at)
    }

    #[test]
    fn what_was_synced_is_there_and_what_was_not_may_be() {
        let told = history("create /a; write /a 0 8; sync; create /b; write /a 8 8");
        for (a, b, is) in [
            (Some(8), false, true),
            (Some(16), true, true),
            (Some(12), true, true),
            (Some(4), false, false),
            (Some(20), false, false),
            (None, true, false),
        ] {
            let mut found = Vec::new();
            found.extend(a.map(|len| ("/a", content(0x55, len))));
            found.extend(b.then(|| ("/b", Vec::new())));
            let kept = judge(&told, &found, Promise::Synced);
            assert_eq!(kept.is_ok(), is, "{a:?} {b}: {kept:?}");
        }
    }

    #[test]
    fn a_prefix_has_all_operations_up_to_a_moment() {
        let told = history("create /a; create /b; unlink /a");
        let [a, b] = ["/a", "/b"].map(|p| (p, Vec::new()));
        for (found, is) in [
            (vec![], true),
            (vec![a.clone()], true),
            (vec![a, b.clone()], true),
            (vec![b], true),
        ] {
            assert_eq!(judge(&told, &found, Promise::Prefix).is_ok(), is);
        }
        let told = history("create /a; create /b; sync");
        let found = [("/a", Vec::new())];
        assert!(judge(&told, &found, Promise::Prefix).is_err());
        let told = history("create /a; create /b");
        let found = [("/b", Vec::new())];
        assert!(judge(&told, &found, Promise::Prefix).is_err());
        assert!(judge(&told, &found, Promise::Synced).is_ok());
    }

    #[test]
    fn bytes_of_others_are_seen_and_a_moved_file_is_somewhere() {
        let told = history("create /a; write /a 0 8; sync; rename /a /b");
        let own = content(0x55, 8);
        assert!(judge(&told, &[("/b", own.clone())], Promise::Synced).is_ok());
        assert!(judge(&told, &[("/a", own)], Promise::Synced).is_ok());
        assert!(judge(&told, &[], Promise::Synced).is_err());
        let stale = vec![0xdb; 8];
        assert!(judge(&told, &[("/a", stale)], Promise::Synced).is_err());
    }
}
