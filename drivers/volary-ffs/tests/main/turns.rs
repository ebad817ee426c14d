//! Files that grow at the same time, by where they land: room is kept ahead of each.

use crate::laid::name;
use crate::volumes::{attach, clean, shape};
use volary_core::{BlockDevice, Create, Ctx, Fs, Mode, NodeId, OpenId, SetAttr};
use volary_testkit::turns::{Turns, age, most_runs, runs};
use volary_testkit::volumes::{Shape, as_root};

const MIB: u64 = 1 << 20;

/// One of each kind, with the bytes of a block.
const KINDS: [(Shape, usize); 5] = [
    (
        shape("ffs1", 64 * MIB).made("old,block=4096,fragment=1024"),
        4096,
    ),
    (
        shape("ffs1", 64 * MIB).made("block=4096,fragment=512"),
        4096,
    ),
    (
        shape("ffs2", 64 * MIB).made("block=4096,fragment=4096,order=big"),
        4096,
    ),
    (
        shape("ffs2", 256 * MIB).made("block=16384,fragment=2048"),
        16384,
    ),
    (
        shape("ffs2", 256 * MIB).made("block=65536,fragment=8192"),
        65536,
    ),
];

/// Returns the most runs of files that grow on a volume; what they hold and what fsck says is looked
/// at too.
fn grow(shape: &Shape, how: &Turns, aged: Option<usize>) -> usize {
    as_root(|cx| {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        if let Some(unit) = aged {
            let old = fs.mkdir(cx, fs.root(), name("old"), &SetAttr::default());
            age(&fs, cx, old.expect("mkdir").node, unit);
        }
        let files = how.run(&fs, cx, fs.root());
        let most = most_runs(&fs, cx, &files);
        how.check(&fs, cx, &files);
        fs.detach(cx).expect("detach");
        clean(dev).expect("clean");
        println!("{} {how:?}: at most {most} runs", shape.name());
        most
    })
}

#[test]
fn three_files_that_grow_in_turns_by_one_block_lie_in_few_runs() {
    for (shape, block) in &KINDS {
        let most = grow(shape, &Turns::new(3, 200, *block), None);
        assert!(most <= 8, "{}: {most} runs", shape.name());
    }
}

#[test]
fn sixteen_files_that_grow_in_turns_lie_in_few_runs() {
    for (shape, block) in &KINDS[..4] {
        let most = grow(shape, &Turns::new(16, 200, *block), None);
        assert!(most <= 8, "{}: {most} runs", shape.name());
    }
}

#[test]
fn files_that_grow_by_other_pieces_lie_in_few_runs() {
    for (shape, block) in &KINDS {
        for (files, piece) in [(3, 4096), (16, 4096), (3, 64 << 10), (16, 64 << 10)] {
            let pieces = 50 * block / piece;
            let most = grow(shape, &Turns::new(files, pieces.max(25), piece), None);
            assert!(most <= 8, "{}: {most} runs", shape.name());
        }
    }
}

#[test]
fn pieces_in_any_order_and_calls_of_fsync_make_no_more_runs() {
    for (shape, block) in &KINDS {
        for (gathered, sync_each) in [(1, 1), (12, 0), (12, 1), (32, 1)] {
            let how = Turns {
                gathered,
                sync_each,
                ..Turns::new(3, 200, *block)
            };
            let most = grow(shape, &how, None);
            assert!(most <= 8, "{}: {most} runs", shape.name());
        }
    }
}

#[test]
fn on_a_volume_that_aged_files_use_up_each_hole() {
    for (shape, block) in &KINDS[..3] {
        let how = Turns::new(3, 100, *block);
        let most = grow(shape, &how, Some(*block));
        // The holes are of four blocks and a half, by and large.
        assert!(most <= 24, "{}: {most} runs", shape.name());
    }
}

#[test]
fn a_full_volume_is_filled_to_its_last_block() {
    for (shape, block) in &KINDS[..3] {
        as_root(|cx| {
            let small = shape.long(8 * MIB);
            let dev = small.device();
            let fs = attach(dev.clone(), "");
            let free = fs.statfs(cx).expect("statfs").free;
            let how = Turns::new(3, free as usize / block, *block);
            let all = how.open(&fs, cx, fs.root());
            how.grow(&fs, cx, &all).expect_err("no more room");
            let fill = |i: u64| {
                let made = fs.create(
                    cx,
                    fs.root(),
                    name(&format!("small{i}")),
                    Create::New,
                    &SetAttr::default(),
                );
                let (_, open) = made.ok()?;
                let done = fs.write(cx, open, Some(0), &[1]);
                fs.close(cx, open).expect("close");
                done.ok()
            };
            (0..).map_while(fill).for_each(drop);
            assert_eq!(fs.statfs(cx).expect("statfs").free, 0);
            fs.detach(cx).expect("detach");
            clean(dev).expect("clean");
        });
    }
}

fn new(fs: &Fs, cx: &Ctx<'_>, text: &str) -> (NodeId, OpenId) {
    let made = fs.create(cx, fs.root(), name(text), Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    (entry.node, open)
}

/// Returns a new file of one block, and where that is.
fn one(fs: &Fs, cx: &Ctx<'_>, text: &str, block: usize) -> u64 {
    let (node, open) = new(fs, cx, text);
    fs.write(cx, open, Some(0), &vec![1; block]).expect("write");
    fs.close(cx, open).expect("close");
    runs(fs, cx, node)[0].0
}

#[test]
fn what_is_kept_is_given_back_at_the_last_close_and_never_counts_as_used() {
    let (shape, block) = &KINDS[1];
    let unit = *block as u64;
    as_root(|cx| {
        let fs = attach(shape.device(), "");
        let (node, open) = new(&fs, cx, "grows");
        let second = fs.open(cx, node, Mode::Read).expect("open");
        let before = fs.statfs(cx).expect("statfs").free;
        for i in 0..2 {
            fs.write(cx, open, Some(i * unit), &vec![1; *block])
                .expect("write");
        }
        let end = runs(&fs, cx, node)[0].0 + 2 * unit;
        assert_eq!(fs.statfs(cx).expect("statfs").free, before - 2 * unit);
        // Twelve blocks are the first section.
        let beside = one(&fs, cx, "beside", *block);
        assert!(beside >= end + 10 * unit, "{beside} is in the way of {end}");
        fs.close(cx, open).expect("close");
        assert!(one(&fs, cx, "still", *block) > beside, "it is open");
        fs.close(cx, second).expect("close");
        assert_eq!(one(&fs, cx, "after", *block), end, "the lowest free");
    });
}

#[test]
fn a_file_that_is_cut_or_idle_keeps_nothing() {
    let (shape, block) = &KINDS[1];
    let unit = *block as u64;
    as_root(|cx| {
        let fs = attach(shape.device(), "");
        let (node, open) = new(&fs, cx, "grows");
        let grow = |cx: &Ctx<'_>, open, at: u64| {
            fs.write(cx, open, Some(at * unit), &vec![1; *block])
                .expect("write");
        };
        grow(cx, open, 0);
        grow(cx, open, 1);
        let start = runs(&fs, cx, node)[0].0;
        fs.sync(cx).expect("sync");
        fs.setattr(cx, node, &SetAttr::size(unit)).expect("cut");
        fs.sync(cx).expect("sync");
        let lowest = one(&fs, cx, "a", *block);
        assert_eq!(lowest, start + unit, "behind what is left of it");
        fs.sync(cx).expect("sync");
        grow(cx, open, 1);
        fs.sync(cx).expect("sync");
        let kept = runs(&fs, cx, node)[1].0 + unit;
        assert_ne!(one(&fs, cx, "b", *block), kept);
        let mut later = *cx;
        later.now.secs += 1000;
        let (_, of_other) = new(&fs, cx, "other");
        grow(&later, of_other, 0);
        grow(&later, of_other, 1);
        assert_eq!(one(&fs, cx, "c", *block), kept, "it was idle");
    });
}

#[test]
fn the_same_writers_leave_the_same_bytes() {
    let (shape, block) = &KINDS[1];
    let images = [0, 1].map(|_| {
        as_root(|cx| {
            let dev = shape.long(16 * MIB).device();
            let fs = attach(dev.clone(), "");
            age(&fs, cx, fs.root(), *block);
            Turns::new(5, 20, *block).run(&fs, cx, fs.root());
            fs.detach(cx).expect("detach");
            let mut all = vec![0; dev.geometry().size as usize];
            dev.read_at(0, &mut all).expect("read");
            all
        })
    });
    assert!(images[0] == images[1]);
}
