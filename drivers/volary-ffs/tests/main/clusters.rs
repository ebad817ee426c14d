//! Blocks that are moved into clusters before they are written, by where they land.

use crate::laid::{Laid, name};
use crate::lists::without_the_examiners;
use crate::oracle::{by_sleuthkit, on_disk};
use crate::volumes::{clean, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Create, Ctx, Mode, NodeId, OpenId, SetAttr};
use volary_testkit::oracle::{have, sleuthkit};
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::tree::Tree;
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;
const BLOCK: usize = 4096;

/// As many blocks in a row as there are by default, and one: as without clusters.
const IN_ROWS: [Shape; 4] = [
    shape("ffs1", 16 * MIB).made("block=4096,fragment=512"),
    shape("ffs1", 16 * MIB).made("block=4096,fragment=1024,order=big"),
    shape("ffs2", 16 * MIB).made("block=4096,fragment=512"),
    shape("ffs2", 16 * MIB).made("block=4096,fragment=4096,order=big"),
];
const ONE_BY_ONE: [Shape; 4] = [
    shape("ffs1", 16 * MIB).made("block=4096,fragment=512,maxcontig=1"),
    shape("ffs1", 16 * MIB).made("block=4096,fragment=1024,order=big,maxcontig=1"),
    shape("ffs2", 16 * MIB).made("block=4096,fragment=512,maxcontig=1"),
    shape("ffs2", 16 * MIB).made("block=4096,fragment=4096,order=big,maxcontig=1"),
];

/// Returns a new file, open.
fn new(laid: &Laid<'_>, cx: &Ctx<'_>, dir: NodeId, text: &str) -> (NodeId, OpenId) {
    let set = SetAttr::default();
    let made = laid.fs.create(cx, dir, name(text), Create::New, &set);
    let (entry, open) = made.expect("create");
    (entry.node, open)
}

/// Files that grow by one block each in turn; they are what `pattern` gives of their numbers. Each
/// is opened for each block, so that no room is kept ahead.
fn in_turns(laid: &Laid<'_>, cx: &Ctx<'_>, files: u64, blocks: usize) -> Vec<NodeId> {
    let dir = laid.dir(laid.fs.root(), "turns");
    let all: Vec<_> = (0..files)
        .map(|i| new(laid, cx, dir, &format!("turn {i}")))
        .collect();
    for (_, open) in &all {
        laid.fs.close(cx, *open).expect("close");
    }
    let content: Vec<_> = (0..files).map(|i| pattern(i, blocks * BLOCK)).collect();
    for at in (0..blocks).map(|i| i * BLOCK) {
        for ((node, _), content) in all.iter().zip(&content) {
            put(laid, cx, *node, at, &content[at..at + BLOCK]);
        }
    }
    laid.fs.sync(cx).expect("sync");
    all.into_iter().map(|(node, _)| node).collect()
}

/// Writes to a file by an open of its own.
fn put(laid: &Laid<'_>, cx: &Ctx<'_>, node: NodeId, at: usize, part: &[u8]) {
    let open = laid.fs.open(cx, node, Mode::Write).expect("open");
    let end = laid.fs.write(cx, open, Some(at as u64), part);
    assert_eq!(end.expect("write"), (at + part.len()) as u64);
    laid.fs.close(cx, open).expect("close");
}

/// Fills a volume with small files, and takes some away until a tenth is free.
fn age(laid: &Laid<'_>, cx: &Ctx<'_>, seed: u64) {
    let mut rng = Rng::new(seed);
    let mut files = Vec::new();
    let dir = laid.dir(laid.fs.root(), "old");
    for i in 0.. {
        let text = format!("old {i}");
        let blocks = 1 + rng.below(8);
        if laid.file(dir, &text, blocks * BLOCK as u64).is_none() {
            break;
        }
        files.push(text);
    }
    loop {
        let stat = laid.fs.statfs(cx).expect("statfs");
        if stat.free * 10 >= stat.size {
            break;
        }
        let text = files.swap_remove(rng.index(files.len()));
        laid.fs.unlink(cx, dir, name(&text)).expect("unlink");
    }
    laid.fs.sync(cx).expect("sync");
}

/// Holds if each file has what was written to it, and the check finds nothing.
fn whole(dev: Arc<MemDevice>, laid: &Laid<'_>, cx: &Ctx<'_>, files: &[NodeId], blocks: usize) {
    for (node, i) in files.iter().zip(0..) {
        let attr = laid.fs.getattr(cx, *node).expect("attributes");
        let content = crate::content(&laid.fs, &attr);
        assert!(content == pattern(i, blocks * BLOCK), "file {i}");
    }
    laid.fs.detach(cx).expect("detach");
    clean(dev).expect("clean");
}

/// Runs of files that grow in turns, on a volume that is new or has aged.
fn runs(shape: &Shape, aged: bool, files: u64, blocks: usize) -> usize {
    as_root(|cx| {
        let dev = shape.device();
        let laid = Laid::on(dev.clone(), cx);
        if aged {
            age(&laid, cx, 3);
        }
        let all = in_turns(&laid, cx, files, blocks);
        let runs = all.iter().map(|node| laid.runs(*node).len()).sum();
        whole(dev, &laid, cx, &all, blocks);
        runs
    })
}

#[test]
fn files_that_grow_in_turns_are_in_clusters() {
    for (clusters, without) in IN_ROWS.iter().zip(&ONE_BY_ONE) {
        let after = runs(clusters, false, 3, 44);
        let before = runs(without, false, 3, 44);
        println!("{}: {before} runs, in clusters {after}", clusters.name());
        // The blocks of the inode, and two clusters of sixteen.
        assert!(after <= 3 * 3, "{}: {after}", clusters.name());
        assert!(before > 100, "{before}: one by one they would be scattered");
    }
}

#[test]
fn a_volume_that_aged_at_nine_tenths_has_longer_runs() {
    for (clusters, without) in IN_ROWS.iter().zip(&ONE_BY_ONE) {
        let after = runs(clusters, true, 4, 60);
        let before = runs(without, true, 4, 60);
        println!(
            "{}: 240 blocks in {before} runs, in clusters {after}",
            clusters.name()
        );
        assert!(after * 3 < before * 2, "{before} runs, in clusters {after}");
    }
}

#[test]
fn a_file_that_is_written_at_once_lies_in_clusters_at_once() {
    as_root(|cx| {
        let laid = Laid::new(&IN_ROWS[0], cx);
        let dir = laid.dir(laid.fs.root(), "dir");
        // Every other block is free.
        let one = |i: u64| laid.file(dir, &format!("one {i}"), BLOCK as u64);
        let ones: Vec<_> = (0..80).map(|i| one(i).expect("a file")).collect();
        let hole = laid.runs(ones[0]);
        for i in (0..80).step_by(2) {
            let text = format!("one {i}");
            laid.fs.unlink(cx, dir, name(&text)).expect("unlink");
        }
        laid.fs.sync(cx).expect("sync");
        let small = laid.file(dir, "small", BLOCK as u64).expect("a file");
        assert_eq!(laid.runs(small), hole, "one block fits into a hole");
        let file = laid.file(dir, "file", 10 * BLOCK as u64).expect("a file");
        let runs = laid.runs(file);
        assert_eq!(runs.len(), 1, "{runs:?}");
        assert_eq!(laid.groups(file)[0], laid.group_of_inode(file));
    });
}

#[test]
fn blocks_that_the_disk_leads_to_stay() {
    for shape in IN_ROWS {
        as_root(|cx| {
            let dev = shape.device();
            let laid = Laid::on(dev.clone(), cx);
            let dir = laid.dir(laid.fs.root(), "dir");
            let (node, open) = new(&laid, cx, dir, "file");
            let (other, of_other) = new(&laid, cx, dir, "other");
            laid.fs.close(cx, open).expect("close");
            laid.fs.close(cx, of_other).expect("close");
            let content = pattern(0, 9 * BLOCK);
            let mut named = Vec::new();
            for (i, part) in content.chunks(BLOCK).enumerate() {
                put(&laid, cx, node, i * BLOCK, part);
                put(&laid, cx, other, i * BLOCK, part);
                if i < 3 {
                    laid.fs.sync(cx).expect("sync");
                    named = laid.runs(node);
                    assert_eq!(named.len(), i + 1, "one block each time");
                }
            }
            laid.fs.sync(cx).expect("sync");
            let all = laid.runs(node);
            assert_eq!(all[..3], named, "where they were");
            assert_eq!(all.len(), 4, "and one cluster of six: {all:?}");
            whole(dev, &laid, cx, &[node], 9);
        });
    }
}

#[test]
fn what_is_moved_changes_the_file() {
    as_root(|cx| {
        let laid = Laid::new(&IN_ROWS[0], cx);
        let dir = laid.dir(laid.fs.root(), "dir");
        let (node, open) = new(&laid, cx, dir, "file");
        let (_, other) = new(&laid, cx, dir, "other");
        for at in [0, BLOCK as u64] {
            for open in [open, other] {
                let at = Some(at);
                laid.fs.write(cx, open, at, &[1; BLOCK]).expect("write");
            }
        }
        let seen = |laid: &Laid<'_>| {
            let change = laid.fs.getattr(cx, node).expect("attributes").change;
            (change, laid.runs(node))
        };
        let before = seen(&laid);
        assert_eq!(before.1.len(), 2);
        laid.fs.sync(cx).expect("sync");
        let after = seen(&laid);
        assert_eq!(after.1.len(), 1);
        // Extents are true for as long as this stays the same.
        assert_ne!(before.0, after.0);
    });
}

#[test]
fn without_counts_of_clusters_nothing_moves() {
    let old = shape("ffs1", 16 * MIB).made("old,block=4096,fragment=512");
    assert!(runs(&old, false, 3, 44) > 100);
}

#[test]
fn a_rotational_delay_keeps_rows_apart() {
    // Four blocks in a row, and a quarter of a turn of 32 sectors between rows.
    let made = "block=4096,fragment=512,maxcontig=4,rotdelay=4";
    as_root(|cx| {
        let dev = shape("ffs1", 16 * MIB).made(made).device();
        let laid = Laid::on(dev.clone(), cx);
        let all = in_turns(&laid, cx, 2, 12);
        for node in &all {
            let runs = laid.runs(*node);
            let lens: Vec<_> = runs.iter().map(|run| run.2 / BLOCK as u64).collect();
            assert!(lens.iter().all(|len| len % 4 == 0), "{lens:?}");
        }
        whole(dev, &laid, cx, &all, 12);
    });
}

#[test]
fn sleuthkit_reads_what_was_moved() {
    if !have(&[sleuthkit::FLS, sleuthkit::ICAT, sleuthkit::RECOVER]) {
        return;
    }
    for shape in IN_ROWS {
        as_root(|cx| {
            let dev = shape.device();
            let laid = Laid::on(dev.clone(), cx);
            age(&laid, cx, 4);
            in_turns(&laid, cx, 3, 30);
            let ours = Tree::read(&laid.fs, cx).expect("the tree");
            laid.fs.detach(cx).expect("detach");
            let theirs = sleuthkit::tree(on_disk(&dev.to_vec()).path()).expect("sleuthkit");
            let theirs = without_the_examiners(theirs).map(by_sleuthkit);
            theirs.assert_same(&ours.map(by_sleuthkit));
        });
    }
}
