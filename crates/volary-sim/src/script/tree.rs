//! The content of a volume, found or expected.

use crate::script::op::Op;
use std::collections::BTreeMap;
use std::sync::Arc;
use volary_core::{Cookie, Ctx, DirBuf, FileKind, Fs, Mode, Name, NodeId};

/// The limits for reading a volume: nested directories, entries of one, and bytes of a file.
const DEPTH_MAX: usize = 100;
const ENTRIES_MAX: usize = 10_000;
const SIZE_MAX: u64 = 16 << 20;

/// A node that was found, or is expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Node {
    /// A directory; if it is expected, with a number that no other node has.
    Dir(u32),
    /// A file with its content; if it is expected, with the four bytes that only its content has.
    File(u32, Arc<Vec<u8>>),
}

/// All nodes but the root, by path.
pub type Tree = BTreeMap<String, Node>;

/// Returns a path's directory, `""` for the root, and its name there.
pub fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Returns the content of a file: its four bytes repeated.
pub fn content(tag: u32, len: usize) -> Vec<u8> {
    tag.to_le_bytes().into_iter().cycle().take(len).collect()
}

/// Applies an operation to a tree; `tag` is for a new node. Returns false, and changes nothing, if
/// the operation is impossible.
pub fn apply(tree: &mut Tree, op: &Op, tag: u32) -> bool {
    let is_dir = |tree: &Tree, p: &str| p.is_empty() || matches!(tree.get(p), Some(Node::Dir(_)));
    let free = |tree: &Tree, p: &str| {
        let other = |q: &String| q.eq_ignore_ascii_case(p);
        is_dir(tree, split(p).0) && !tree.keys().any(other)
    };
    match op {
        Op::Create(path) if free(tree, path) => {
            tree.insert(path.clone(), Node::File(tag, Arc::default()));
        }
        Op::Mkdir(path) if free(tree, path) => {
            tree.insert(path.clone(), Node::Dir(tag));
        }
        Op::Rmdir(path) if !path.is_empty() && is_dir(tree, path) && is_empty(tree, path) => {
            tree.remove(path);
        }
        Op::Unlink(path) if matches!(tree.get(path), Some(Node::File(..))) => {
            tree.remove(path);
        }
        Op::Write(path, at, len) => {
            let Some(Node::File(tag, old)) = tree.get_mut(path) else {
                return false;
            };
            let (at, mut new) = (*at as usize, old.to_vec());
            new.resize(new.len().max(at + len), 0);
            for (to, byte) in new.iter_mut().skip(at).zip(content(*tag, *len)) {
                *to = byte;
            }
            *old = Arc::new(new);
        }
        Op::Truncate(path, len) => {
            let Some(Node::File(_, old)) = tree.get_mut(path) else {
                return false;
            };
            let mut new = old.to_vec();
            new.resize(*len as usize, 0);
            *old = Arc::new(new);
        }
        Op::Rename(from, to) => return rename(tree, from, to),
        Op::Sync | Op::Detach => {}
        Op::Fsync(path) if is_dir(tree, path) || tree.contains_key(path) => {}
        _ => return false,
    }
    true
}

/// Returns whether a directory is empty.
fn is_empty(tree: &Tree, dir: &str) -> bool {
    let below = format!("{dir}/");
    !tree.keys().any(|path| path.starts_with(&below))
}

fn rename(tree: &mut Tree, from: &str, to: &str) -> bool {
    let Some(node) = tree.get(from).cloned() else {
        return false;
    };
    let below = format!("{from}/");
    let parent = split(to).0;
    let over = tree.iter().find(|(p, _)| p.eq_ignore_ascii_case(to));
    let fits = match over {
        None => true,
        Some((p, Node::File(..))) => p == to && matches!(node, Node::File(..)),
        Some((p, Node::Dir(_))) => p == to && matches!(node, Node::Dir(_)) && is_empty(tree, p),
    };
    let there = parent.is_empty() || matches!(tree.get(parent), Some(Node::Dir(_)));
    if from == to || !fits || !there || to.starts_with(&below) {
        return false;
    }
    move_to(tree, from, to);
    true
}

/// Moves a node, and all below it, to another path.
fn move_to(tree: &mut Tree, from: &str, to: &str) {
    let below = format!("{from}/");
    if let Some(node) = tree.remove(from) {
        tree.insert(to.to_owned(), node);
    }
    let inside: Vec<String> = tree
        .keys()
        .filter(|p| p.starts_with(&below))
        .cloned()
        .collect();
    for path in inside {
        if let Some(node) = tree.remove(&path) {
            let rest = path.strip_prefix(&below).unwrap_or_default();
            tree.insert(format!("{to}/{rest}"), node);
        }
    }
}

/// Reads all of a volume.
///
/// # Errors
/// A description: an error of the volume, a name that is listed twice, or more content than a small
/// volume holds.
pub fn read(fs: &Fs, cx: &Ctx<'_>) -> Result<Tree, String> {
    let mut tree = Tree::new();
    let mut todo = vec![(String::new(), fs.root())];
    while let Some((path, dir)) = todo.pop() {
        if path.matches('/').count() > DEPTH_MAX {
            return Err(format!("{path}: directories go too deep"));
        }
        let entries = list(fs, cx, dir).map_err(|e| format!("{path}/: {e}"))?;
        if entries.len() > ENTRIES_MAX {
            return Err(format!("{path}: {} entries", entries.len()));
        }
        for (name, node, kind) in entries {
            let below = format!("{path}/{name}");
            let found = if kind == FileKind::Dir {
                todo.push((below.clone(), node));
                Node::Dir(0)
            } else {
                let bytes = read_file(fs, cx, dir, &name);
                let bytes = bytes.map_err(|e| format!("{below}: {e}"))?;
                Node::File(0, Arc::new(bytes))
            };
            if tree.insert(below.clone(), found).is_some() {
                return Err(format!("{below} is listed twice"));
            }
        }
    }
    Ok(tree)
}

type Listed = Vec<(String, NodeId, FileKind)>;

fn list(fs: &Fs, cx: &Ctx<'_>, dir: NodeId) -> volary_core::Result<Listed> {
    let open = fs.open(cx, dir, Mode::Read)?;
    let mut all = Listed::new();
    let mut from = Cookie::START;
    let mut buf = DirBuf::new(64, 64 * 256, false);
    let result = loop {
        buf.clear();
        let ended = match fs.readdir(cx, open, from, &mut buf) {
            Ok(ended) => ended,
            Err(e) => break Err(e),
        };
        for entry in buf.iter() {
            let name = String::from_utf8_lossy(entry.name).into_owned();
            all.push((name, entry.node, entry.kind));
        }
        match buf.last_cookie() {
            Some(last) if !ended && all.len() <= ENTRIES_MAX => from = last,
            _ => break Ok(all),
        }
    };
    let closed = fs.close(cx, open);
    let all = result?;
    closed.map(|()| all)
}

fn read_file(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, name: &str) -> volary_core::Result<Vec<u8>> {
    let entry = fs.lookup(cx, dir, Name::new(name.as_bytes())?)?;
    let size = entry.attr.size.min(SIZE_MAX);
    let mut bytes = vec![0; size as usize];
    let open = fs.open(cx, entry.node, Mode::Read)?;
    let read = fs.read(cx, open, 0, &mut bytes);
    let closed = fs.close(cx, open);
    fs.forget(entry.node, 1);
    bytes.truncate(read?);
    closed.map(|()| bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::op::Ops;

    fn run(text: &str) -> (Tree, Vec<bool>) {
        let ops: Ops = text.parse().unwrap();
        let mut tree = Tree::new();
        let did = ops.0.iter().map(|op| apply(&mut tree, op, 7)).collect();
        (tree, did)
    }

    #[test]
    fn a_directory_takes_the_place_of_an_empty_one() {
        let ops: Ops = "mkdir /a; mkdir /b; create /b/x; rename /b /a"
            .parse()
            .unwrap();
        let mut tree = Tree::new();
        assert!((1..).zip(&ops.0).all(|(tag, op)| apply(&mut tree, op, tag)));
        assert!(tree.keys().eq(["/a", "/a/x"]));
        for refused in ["mkdir /c; rename /c /a", "create /f; rename /f /c"] {
            let ops: Ops = refused.parse().unwrap();
            let done: Vec<bool> = ops.0.iter().map(|op| apply(&mut tree, op, 9)).collect();
            assert_eq!(done, [true, false], "{refused}");
        }
    }

    #[test]
    fn operations_that_cannot_be_done_change_nothing() {
        let (tree, did) = run(
            "create /d/a; mkdir /d; create /d/a; mkdir /D; rmdir /d; rename /d /d/e; \
             unlink /d; create /b; rename /d /b; rename /b /d; truncate /c 4",
        );
        let done: Vec<usize> = (0..did.len()).filter(|&i| did[i]).collect();
        assert_eq!(done, [1, 2, 7]);
        assert_eq!(tree.keys().collect::<Vec<_>>(), ["/b", "/d", "/d/a"]);
    }

    #[test]
    fn a_renamed_directory_takes_along_what_is_in_it() {
        let (tree, _) = run("mkdir /d; create /d/a; write /d/a 4 8; mkdir /e; rename /d /e/f");
        let file = Node::File(7, Arc::new([vec![0; 4], content(7, 8)].concat()));
        assert_eq!(tree.get("/e/f/a"), Some(&file));
        assert_eq!(tree.len(), 3);
    }
}
