//! Files that grow at the same time, by where they land: room is kept ahead of each.

use crate::volumes::{attach, fsck_fat, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{BlockDevice, Create, Ctx, Fs, Mode, Name, NodeId, OpenId, SetAttr};
use volary_testkit::turns::{Turns, age, most_runs, runs};
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;

/// One of each kind, with the bytes of a cluster.
const KINDS: [(Shape, usize); 3] = [
    (
        shape("fat12", 4 * MIB).made("cluster=2k,root-entries=1024"),
        2048,
    ),
    (
        shape("fat16", 32 * MIB).made("cluster=2k,root-entries=4096"),
        2048,
    ),
    (shape("fat32", 64 * MIB).made("cluster=512"), 512),
];

/// Returns the most runs of files that grow on a volume; what they hold and what fsck says is looked
/// at too.
fn grow(shape: &Shape, how: &Turns, aged: Option<usize>) -> usize {
    as_root(|cx| {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        if let Some(unit) = aged {
            age(&fs, cx, fs.root(), unit);
        }
        let files = how.run(&fs, cx, fs.root());
        let most = most_runs(&fs, cx, &files);
        how.check(&fs, cx, &files);
        fs.detach(cx).expect("detach");
        fsck_fat(&*dev).expect("clean");
        println!("{} {how:?}: at most {most} runs", shape.name());
        most
    })
}

#[test]
fn three_files_that_grow_in_turns_by_one_cluster_lie_in_few_runs() {
    for (shape, cluster) in &KINDS {
        let most = grow(shape, &Turns::new(3, 200, *cluster), None);
        assert!(most <= 8, "{}: {most} runs", shape.name());
    }
}

#[test]
fn sixteen_files_that_grow_in_turns_lie_in_few_runs() {
    for (shape, cluster) in &KINDS[1..] {
        let most = grow(shape, &Turns::new(16, 200, *cluster), None);
        assert!(most <= 8, "{}: {most} runs", shape.name());
    }
}

#[test]
fn files_that_grow_by_large_pieces_lie_in_few_runs() {
    for (shape, _) in &KINDS[1..] {
        for files in [3, 16] {
            let most = grow(shape, &Turns::new(files, 25, 64 << 10), None);
            assert!(most <= 8, "{}: {most} runs", shape.name());
        }
    }
}

#[test]
fn pieces_in_any_order_and_calls_of_fsync_make_no_more_runs() {
    for (shape, cluster) in &KINDS {
        let gathered = Turns {
            gathered: 32,
            sync_each: 1,
            ..Turns::new(3, 200, *cluster)
        };
        let most = grow(shape, &gathered, None);
        assert!(most <= 8, "{}: {most} runs", shape.name());
    }
}

#[test]
fn on_a_volume_that_aged_files_use_up_each_hole() {
    for (shape, cluster) in &KINDS[..2] {
        let how = Turns::new(3, 50, *cluster);
        let most = grow(shape, &how, Some(*cluster));
        // The holes are of four clusters and a half, by and large.
        assert!(most <= 16, "{}: {most} runs", shape.name());
    }
}

#[test]
fn a_full_volume_is_filled_to_its_last_cluster() {
    for (shape, cluster) in &KINDS[..2] {
        as_root(|cx| {
            let dev = shape.device();
            let fs = attach(dev.clone(), "");
            let free = fs.statfs(cx).expect("statfs").free;
            let how = Turns::new(3, free as usize / cluster, *cluster);
            let all = how.open(&fs, cx, fs.root());
            how.grow(&fs, cx, &all).expect_err("no more room");
            assert_eq!(fs.statfs(cx).expect("statfs").free, 0);
            fs.detach(cx).expect("detach");
            fsck_fat(&*dev).expect("clean");
        });
    }
}

fn new(fs: &Fs, cx: &Ctx<'_>, text: &str) -> (NodeId, OpenId) {
    let name = Name::new(text.as_bytes()).expect("a name");
    let made = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    (entry.node, open)
}

/// Returns a new file of one cluster, and where that is.
fn one(fs: &Fs, cx: &Ctx<'_>, text: &str, cluster: usize) -> u64 {
    let (node, open) = new(fs, cx, text);
    fs.write(cx, open, Some(0), &vec![1; cluster])
        .expect("write");
    fs.close(cx, open).expect("close");
    runs(fs, cx, node)[0].0
}

#[test]
fn what_is_kept_is_given_back_at_the_last_close_and_never_counts_as_used() {
    let (shape, cluster) = &KINDS[1];
    let unit = *cluster as u64;
    as_root(|cx| {
        let fs = attach(shape.device(), "");
        let before = fs.statfs(cx).expect("statfs").free;
        let (node, open) = new(&fs, cx, "grows");
        let second = fs.open(cx, node, Mode::Read).expect("open");
        for i in 0..2 {
            let data = vec![1; *cluster];
            fs.write(cx, open, Some(i * unit), &data).expect("write");
        }
        let end = runs(&fs, cx, node)[0].0 + 2 * unit;
        assert_eq!(fs.statfs(cx).expect("statfs").free, before - 2 * unit);
        let beside = one(&fs, cx, "beside", *cluster);
        assert!(beside >= end + 16 * unit, "{beside} is in the way of {end}");
        fs.close(cx, open).expect("close");
        let still = one(&fs, cx, "still", *cluster);
        assert!(still > beside, "it is open");
        fs.close(cx, second).expect("close");
        assert_eq!(one(&fs, cx, "after", *cluster), end, "the lowest free");
    });
}

#[test]
fn a_file_that_is_cut_or_idle_keeps_nothing() {
    let (shape, cluster) = &KINDS[1];
    let unit = *cluster as u64;
    as_root(|cx| {
        let fs = attach(shape.device(), "");
        let (node, open) = new(&fs, cx, "grows");
        let grow = |at: u64| {
            let data = vec![1; *cluster];
            fs.write(cx, open, Some(at * unit), &data).expect("write");
        };
        grow(0);
        grow(1);
        let start = runs(&fs, cx, node)[0].0;
        fs.setattr(cx, node, &SetAttr::size(unit)).expect("cut");
        fs.sync(cx).expect("sync");
        let lowest = one(&fs, cx, "a", *cluster);
        assert_eq!(lowest, start + unit, "behind what is left of it");
        grow(1);
        let kept = runs(&fs, cx, node)[1].0 + unit;
        assert_ne!(one(&fs, cx, "b", *cluster), kept);
        let mut later = *cx;
        later.now.secs += 1000;
        let (other, of_other) = new(&fs, cx, "other");
        for at in 0..2 {
            fs.write(&later, of_other, Some(at * unit), &vec![1; *cluster])
                .expect("write");
        }
        assert!(!runs(&fs, cx, other).is_empty());
        assert_eq!(one(&fs, cx, "c", *cluster), kept, "it was idle");
    });
}

/// Returns all bytes of a device.
fn bytes(dev: &MemDevice) -> Vec<u8> {
    let mut all = vec![0; dev.geometry().size as usize];
    dev.read_at(0, &mut all).expect("read");
    all
}

#[test]
fn the_same_writers_leave_the_same_bytes() {
    let (shape, cluster) = &KINDS[0];
    let images = [0, 1].map(|_| {
        as_root(|cx| {
            let dev: Arc<MemDevice> = shape.device();
            let fs = attach(dev.clone(), "");
            age(&fs, cx, fs.root(), *cluster);
            Turns::new(5, 20, *cluster).run(&fs, cx, fs.root());
            fs.detach(cx).expect("detach");
            bytes(&dev)
        })
    });
    assert!(images[0] == images[1]);
}
