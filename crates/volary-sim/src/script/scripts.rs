//! Scripts for torturing volumes: all short ones, and random long ones.

use crate::disks::disk::SECTOR;
use crate::rng::Rng;
use crate::script::op::{Op, Ops};
use crate::script::tree::{Node, Tree, apply};

/// The state that [`PAIRED`] starts from. It has a directory with a file of more than a cluster, a
/// short file beside it, an empty directory, and a directory that a few more entries make grow.
pub const PRESET: &str = "mkdir /d; create /a; write /a 0 1400; create /d/b; write /d/b 0 600; \
     mkdir /e; mkdir /full; create /full/1; create /full/2; create /full/3; create /full/4; \
     create /full/5; create /full/6; create /full/a-name-of-three-slots-of-its-own; \
     create /full/7; create /full/8";

/// One operation of each kind that matters, on the state of [`PRESET`].
pub const PAIRED: [&str; 24] = [
    "create /new",
    "create /d/a-long-name-that-takes-three-slots",
    "create /full/9",
    "write /a 1400 600",
    "write /a 0 400",
    "write /a 4000 8",
    "write /d/b 600 2000",
    "truncate /a 0",
    "truncate /a 600",
    "truncate /d/b 3000",
    "unlink /a",
    "unlink /d/b",
    "mkdir /new",
    "mkdir /d/new",
    "mkdir /full/new",
    "rmdir /e",
    "rename /a /new",
    "rename /a /d/a",
    "rename /a /d/b",
    "rename /d/b /a",
    "rename /d/b /d/a-long-name-that-takes-three-slots",
    "rename /d /e/d",
    "rename /full /full2",
    "rename /d/b /full/b",
];

fn paired() -> Result<Vec<Op>, String> {
    PAIRED.iter().map(|op| op.parse()).collect()
}

/// Returns all scripts of two operations of [`PAIRED`], each with or without a sync after it:
/// 2,304.
///
/// # Errors
/// Never: the operations are well formed.
pub fn pairs() -> Result<Vec<Ops>, String> {
    let ops = paired()?;
    let mut all = Vec::new();
    for first in &ops {
        for second in &ops {
            for syncs in 0..4 {
                let mut script = vec![first.clone()];
                script.extend((syncs & 1 != 0).then_some(Op::Sync));
                script.push(second.clone());
                script.extend((syncs & 2 != 0).then_some(Op::Sync));
                all.push(Ops(script));
            }
        }
    }
    Ok(all)
}

/// Returns all scripts of three operations of [`PAIRED`], with a sync at the end: 13,824.
///
/// # Errors
/// Never: the operations are well formed.
pub fn triples() -> Result<Vec<Ops>, String> {
    let ops = paired()?;
    let mut all = Vec::new();
    for a in &ops {
        for b in &ops {
            for c in &ops {
                let three = [a, b, c].map(Clone::clone);
                all.push(Ops(three.into_iter().chain([Op::Sync]).collect()));
            }
        }
    }
    Ok(all)
}

const NAMES: [&str; 6] = [
    "x",
    "B.TXT",
    "a-long-name-that-takes-three-slots",
    "Mixed.Case",
    "another-name-with-a-rather-long-end-in-five-slots-of-a-directory.data",
    "c",
];

/// Returns a random script of `count` operations that are all possible on `tree`. Files stay below
/// about `size_max` bytes.
pub fn random(seed: u64, count: usize, tree: &Tree, size_max: u64) -> Ops {
    let mut rng = Rng::new(seed);
    let mut tree = tree.clone();
    let mut ops = Vec::with_capacity(count);
    for _ in 0..20 * count {
        if ops.len() == count {
            break;
        }
        let op = any(&mut rng, &tree, size_max);
        // Keep the scripts of old seeds the same, for tests that name one.
        if !is_over_a_directory(&op, &tree) && apply(&mut tree, &op, 1) {
            ops.push(op);
        }
    }
    Ops(ops)
}

fn is_over_a_directory(op: &Op, tree: &Tree) -> bool {
    matches!(op, Op::Rename(_, to) if matches!(tree.get(to), Some(Node::Dir(_))))
}

/// Returns a random script of `count` operations. Most are writes of one to three times `step`
/// bytes at the ends of a few files, in turns. So blocks that follow each other in a file are
/// allocated at different times.
pub fn in_turns(seed: u64, count: usize, tree: &Tree, step: u64) -> Ops {
    let mut rng = Rng::new(seed);
    let mut tree = tree.clone();
    let mut ops = Vec::with_capacity(count);
    while ops.len() < count {
        let op = turn(&mut rng, &tree, step);
        if apply(&mut tree, &op, 1) {
            ops.push(op);
        }
    }
    Ops(ops)
}

fn turn(rng: &mut Rng, tree: &Tree, step: u64) -> Op {
    let path = format!("/turn-{}", rng.below(4));
    let end = match tree.get(&path) {
        Some(Node::File(_, content)) => content.len() as u64,
        _ => return Op::Create(path),
    };
    match rng.below(20) {
        0 => Op::Unlink(path),
        1 => Op::Rename(path, format!("/turn-{}", rng.below(4))),
        2 => Op::Truncate(path, 4 * rng.below(end / 4 + 1)),
        3 => Op::Write(path, rng.below(end + 1) / step * step, step as usize),
        4 => Op::Fsync(path),
        5 => Op::Sync,
        _ => {
            let whole = end.next_multiple_of(step);
            Op::Write(path, whole, (step * (1 + rng.below(3))) as usize)
        }
    }
}

fn any(rng: &mut Rng, tree: &Tree, size_max: u64) -> Op {
    let mut dirs = vec![String::new()];
    let is_dir = |(_, node): &(&String, &Node)| matches!(node, Node::Dir(_));
    dirs.extend(tree.iter().filter(is_dir).map(|(path, _)| path.clone()));
    let new = |rng: &mut Rng| format!("{}/{}", rng.pick(&dirs), rng.pick(&NAMES[..]));
    let old = |rng: &mut Rng| match tree.is_empty() {
        true => "/x".to_owned(),
        false => tree
            .keys()
            .nth(rng.index(tree.len()))
            .cloned()
            .unwrap_or_default(),
    };
    let len = match tree.get(&old(&mut rng.clone())) {
        Some(Node::File(_, content)) => content.len() as u64,
        _ => 0,
    };
    match rng.below(100) {
        0..18 => Op::Create(new(rng)),
        18..40 => {
            let path = old(rng);
            let len = 4 * (1 + rng.below(size_max / 16)) as usize;
            let at = [0, len as u64, 4 * rng.below(size_max / 8)];
            Op::Write(path, *rng.pick(&at[..]), len)
        }
        40..50 => Op::Truncate(old(rng), 4 * rng.below(len / 4 + 300)),
        50..58 => Op::Unlink(old(rng)),
        58..64 => Op::Mkdir(new(rng)),
        64..68 => Op::Rmdir(old(rng)),
        68..85 => {
            let to = if rng.one_in(2) { new(rng) } else { old(rng) };
            Op::Rename(old(rng), to)
        }
        85..92 => Op::Fsync(old(rng)),
        _ => Op::Sync,
    }
}

/// Returns a script without operations that write to a sector with bytes of a file. A disk that
/// leaves garbage there destroys them, whatever the driver does.
pub fn without_overwriting(script: Ops, tree: &Tree) -> Ops {
    let mut tree = tree.clone();
    let fits = |op: &Op| {
        let (Op::Write(path, ..) | Op::Truncate(path, _)) = op else {
            return apply(&mut tree, op, 1);
        };
        let len = match tree.get(path) {
            Some(Node::File(_, content)) => content.len() as u64,
            _ => 0,
        };
        let in_new_sectors = match op {
            Op::Write(_, at, _) => *at >= len && len.is_multiple_of(SECTOR as u64),
            Op::Truncate(_, to) => *to <= len || len.is_multiple_of(SECTOR as u64),
            _ => true,
        };
        in_new_sectors && apply(&mut tree, op, 1)
    };
    Ops(script.0.into_iter().filter(fits).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    fn preset() -> Tree {
        let ops: Ops = PRESET.parse().unwrap();
        let mut tree = Tree::new();
        for op in &ops.0 {
            assert!(apply(&mut tree, op, 1), "{op}");
        }
        tree
    }

    #[test]
    fn files_grow_in_turns() {
        for seed in 0..20 {
            let script = in_turns(seed, 60, &Tree::new(), 4096);
            assert_eq!(script.0.len(), 60);
            let mut tree = Tree::new();
            assert!(script.0.iter().all(|op| apply(&mut tree, op, 1)));
            let writes = |op: &&Op| matches!(op, Op::Write(_, at, _) if at % 4096 == 0);
            assert!(script.0.iter().filter(writes).count() > 20, "{script}");
        }
    }

    #[test]
    fn each_operation_of_pairs_can_be_done_at_first() {
        for op in PAIRED {
            assert!(apply(&mut preset(), &op.parse().unwrap(), 2), "{op}");
        }
        assert_eq!(pairs().unwrap().len(), 2304);
    }

    #[test]
    fn triples_are_all_there_is_and_end_with_a_sync() {
        let all: BTreeSet<String> = triples().unwrap().iter().map(Ops::to_string).collect();
        assert_eq!(all.len(), 24 * 24 * 24);
        assert!(all.contains("create /new; rmdir /e; write /a 0 400; sync"));
        assert!(all.iter().all(|script| script.ends_with("; sync")));
    }

    #[test]
    fn no_sector_that_holds_bytes_is_written_again() {
        let script = "write /a 0 4; write /a 1400 8; truncate /a 1024; write /a 1024 4; \
                      write /a 1028 4; truncate /d/b 700; truncate /d/b 0; write /d/b 0 700; sync";
        let left = without_overwriting(script.parse().unwrap(), &preset());
        assert_eq!(
            left.to_string(),
            "truncate /a 1024; write /a 1024 4; truncate /d/b 0; write /d/b 0 700; sync"
        );
    }

    #[test]
    fn random_scripts_have_all_kinds_and_are_the_same_each_time() {
        let script = random(1, 400, &preset(), 4096);
        assert_eq!(script, random(1, 400, &preset(), 4096));
        assert_eq!(script.0.len(), 400);
        let text = script.to_string();
        for kind in [
            "create", "write", "truncate", "unlink", "mkdir", "rmdir", "rename", "fsync", "sync",
        ] {
            assert!(text.contains(&format!("; {kind}")), "{kind}: {text}");
        }
    }
}
