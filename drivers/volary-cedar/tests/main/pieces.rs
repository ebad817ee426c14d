//! Files in many pieces, and files that grow in turns.

use crate::volumes::{attach, check, clean, shape};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_cedar::Layout;
use volary_core::{
    BlockDevice, CheckMode, Create, Ctx, Fs, Kind, Mode, Name, NodeId, OpenId, SetAttr,
};
use volary_testkit::rng::pattern;
use volary_testkit::volumes::{Shape, as_root};

const PAGE: usize = 512;
/// The smallest log there is: a record holds 13 pages.
const SHAPE: Shape = shape(4 << 20).made("page=512,name-table=700k,log=186k");

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).unwrap()
}

fn put(fs: &Fs, cx: &Ctx<'_>, file: &str, len: usize) -> volary_core::Result<NodeId> {
    let set = SetAttr::default();
    let (made, open) = fs.create(cx, fs.root(), name(file), Create::New, &set)?;
    let written = fs.write(cx, open, Some(0), &vec![0xaa; len]);
    fs.close(cx, open).and(written).map(|_| made.node)
}

/// Fills the volume but for `holes` holes of two pages.
fn riddle(fs: &Fs, cx: &Ctx<'_>, holes: usize) {
    for i in 0..2 * holes {
        put(fs, cx, &format!("small {i}"), 100).unwrap();
    }
    let mut len = 256 * PAGE;
    let mut count = 0;
    while len > 0 {
        match put(fs, cx, &format!("full {count}"), len) {
            Ok(_) => {}
            Err(e) if e == Kind::NoSpace => len /= 2,
            Err(e) => panic!("{e}"),
        }
        count += 1;
    }
    for i in (0..2 * holes).step_by(2) {
        fs.unlink(cx, fs.root(), name(&format!("small {i}")))
            .unwrap();
    }
    fs.sync(cx).unwrap();
}

fn runs(fs: &Fs, cx: &Ctx<'_>, open: OpenId) -> usize {
    let mut found = Vec::new();
    fs.extents(cx, open, 0, u64::MAX, &mut found).unwrap();
    found.len()
}

fn content(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> Vec<u8> {
    let open = fs.open(cx, node, Mode::Read).unwrap();
    let mut all = vec![0; fs.getattr(cx, node).unwrap().size as usize];
    assert_eq!(fs.read(cx, open, 0, &mut all).unwrap(), all.len());
    fs.close(cx, open).unwrap();
    all
}

fn free(fs: &Fs, cx: &Ctx<'_>) -> u64 {
    fs.statfs(cx).unwrap().free
}

#[test]
fn a_file_goes_on_past_what_a_record_holds_of_its_pieces() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    let data = pattern(7, 600_000);
    as_root(|cx| {
        riddle(&fs, cx, 800);
        let before = free(&fs, cx);
        let set = SetAttr::default();
        let (made, open) = fs
            .create(cx, fs.root(), name("big"), Create::New, &set)
            .unwrap();
        // By pieces of a few pages, and then all at once, which no record holds.
        for at in (0..100_000).step_by(1000) {
            let part = &data[at..at + 1000];
            fs.write(cx, open, Some(at as u64), part).unwrap();
        }
        fs.write(cx, open, None, &data[100_000..]).unwrap();
        assert!(runs(&fs, cx, open) > 500, "{}", runs(&fs, cx, open));
        fs.close(cx, open).unwrap();
        assert!(content(&fs, cx, made.node) == data);
        // Cut in the midst, and grown by zeros in one call.
        for size in [250_000, 700_000] {
            fs.setattr(cx, made.node, &SetAttr::size(size)).unwrap();
        }
        let now = content(&fs, cx, made.node);
        assert!(now[..250_000] == data[..250_000] && now[250_000..].iter().all(|b| *b == 0));
        fs.detach(cx).unwrap();
        clean(dev.clone()).unwrap();
        let fs = attach(dev.clone(), "");
        fs.unlink(cx, fs.root(), name("big")).unwrap();
        fs.sync(cx).unwrap();
        assert_eq!(free(&fs, cx), before);
        fs.detach(cx).unwrap();
    });
    clean(dev).unwrap();
}

#[test]
fn what_no_record_holds_does_nothing_where_the_room_ends() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        riddle(&fs, cx, 800);
        let before = free(&fs, cx);
        let set = SetAttr::size(2 * before);
        let made = fs.create(cx, fs.root(), name("big"), Create::New, &set);
        assert_eq!(made.unwrap_err(), Kind::NoSpace);
        let found = fs.lookup(cx, fs.root(), name("big"));
        assert_eq!(found.unwrap_err(), Kind::NotFound);
        let node = put(&fs, cx, "big", 700).unwrap();
        let open = fs.open(cx, node, Mode::Write).unwrap();
        let all = vec![1; before as usize];
        assert_eq!(fs.write(cx, open, None, &all).unwrap_err(), Kind::NoSpace);
        assert_eq!(fs.getattr(cx, node).unwrap().size, 700);
        fs.close(cx, open).unwrap();
        fs.unlink(cx, fs.root(), name("big")).unwrap();
        fs.sync(cx).unwrap();
        assert_eq!(free(&fs, cx), before);
        // All of it can be had all the same: of each hole both pages, less a leader.
        let set = SetAttr::size(before - PAGE as u64);
        fs.create(cx, fs.root(), name("big"), Create::New, &set)
            .unwrap();
        assert_eq!(free(&fs, cx), 0);
        fs.detach(cx).unwrap();
    });
    clean(dev).unwrap();
}

#[test]
fn a_file_in_many_pieces_leaves_its_versions() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    let data = pattern(3, 300_000);
    as_root(|cx| {
        riddle(&fs, cx, 800);
        let node = put(&fs, cx, "big", 0).unwrap();
        let keep = b"user.cedar.keep";
        fs.setxattr(cx, node, keep, b"2").unwrap();
        let open = fs.open(cx, node, Mode::Write).unwrap();
        fs.write(cx, open, Some(0), &data).unwrap();
        fs.close(cx, open).unwrap();
        // What a record holds does not bound what becomes another node's.
        fs.setattr(cx, node, &SetAttr::size(0)).unwrap();
        let open = fs.open(cx, node, Mode::Write).unwrap();
        fs.write(cx, open, Some(0), &data[..200_000]).unwrap();
        fs.close(cx, open).unwrap();
        let older = fs.lookup(cx, fs.root(), name("big!1")).unwrap().node;
        assert!(content(&fs, cx, older) == data);
        assert!(content(&fs, cx, node) == data[..200_000]);
        fs.detach(cx).unwrap();
    });
    clean(dev).unwrap();
}

/// A volume of a release before, or one with a saved map, is one that it reads.
#[test]
fn a_volume_without_chains_holds_as_many_pieces_as_before() {
    let shape = shape(4 << 20).made("page=512,name-table=700k,log=186k,map=saved");
    let dev = shape.device();
    let layout = Layout::read(&*dev).unwrap();
    assert!(!layout.has_chains);
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        riddle(&fs, cx, 100);
        let node = put(&fs, cx, "big", 40_000).unwrap();
        let set = SetAttr::size(80_000);
        assert_eq!(fs.setattr(cx, node, &set).unwrap_err(), Kind::NoSpace);
        fs.detach(cx).unwrap();
    });
    clean(dev).unwrap();
}

/// Where the head is lost, the leader and the chain under it have the file.
#[test]
fn a_chain_whose_head_is_lost_is_found_by_the_leader() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    let data = pattern(9, 150_000);
    as_root(|cx| {
        riddle(&fs, cx, 800);
        let (_, open) = fs
            .create(cx, fs.root(), name("zzz"), Create::New, &SetAttr::default())
            .unwrap();
        fs.write(cx, open, Some(0), &data).unwrap();
        fs.close(cx, open).unwrap();
        fs.detach(cx).unwrap();
    });
    let layout = Layout::read(&*dev).unwrap();
    let mut image = dev.to_vec();
    let is_head = |page: &[u8]| {
        let key = [&[1, 0, 0, 0, 0, 0, 0, 0, 1][..], b"zzz\0"].concat();
        page[..5] == *b"CdFs\x03" && page[5] == 0 && page.windows(key.len()).any(|w| w == key)
    };
    let index = (0..layout.table_len).find(|i| {
        let at = layout.offset(layout.table_a + i) as usize;
        is_head(&image[at..at + PAGE])
    });
    let index = index.expect("the head's page");
    for first in [layout.table_a, layout.table_b] {
        let at = layout.offset(first + index) as usize;
        image[at..at + PAGE].fill(0xee);
    }
    let dev = Arc::new(MemDevice::from_vec(image));
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    assert_eq!(report.left(), 0, "{found:?}");
    let fs = attach(dev, "");
    as_root(|cx| {
        let node = fs.lookup(cx, fs.root(), name("zzz")).unwrap().node;
        let now = content(&fs, cx, node);
        assert!(now[..data.len()] == data, "{} bytes", now.len());
    });
}

/// Three files that grow in turns, while all are open: how many pieces each has.
fn grow_in_turns(fs: &Fs, cx: &Ctx<'_>, (piece, times): (usize, usize)) -> Vec<usize> {
    let open = |i: usize| {
        let (file, set) = (format!("turn {i}"), SetAttr::default());
        let made = fs.create(cx, fs.root(), name(&file), Create::New, &set);
        made.unwrap().1
    };
    let opens: Vec<OpenId> = (0..3).map(open).collect();
    for _ in 0..times {
        for open in &opens {
            fs.write(cx, *open, None, &vec![1; piece]).unwrap();
        }
    }
    let counts = opens.iter().map(|open| runs(fs, cx, *open)).collect();
    for open in opens {
        fs.close(cx, open).unwrap();
    }
    counts
}

#[test]
fn files_that_grow_in_turns_lie_in_few_pieces() {
    let shape = shape(256 << 20);
    for how in [(4096, 200), (65_536, 400)] {
        let dev = shape.device();
        let fs = attach(dev.clone(), "");
        as_root(|cx| {
            let counts = grow_in_turns(&fs, cx, how);
            assert!(counts.iter().all(|n| *n <= 8), "{how:?}: {counts:?}");
        });
    }
}

#[test]
fn what_is_reserved_is_free_and_a_full_volume_is_full_to_its_last_page() {
    let dev = SHAPE.device();
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        let all = free(&fs, cx);
        let set = SetAttr::default();
        let (_, open) = fs
            .create(cx, fs.root(), name("open"), Create::New, &set)
            .unwrap();
        for _ in 0..40 {
            fs.write(cx, open, None, &[1; PAGE]).unwrap();
        }
        fs.sync(cx).unwrap();
        assert_eq!(free(&fs, cx), all - 41 * PAGE as u64);
        // Another has all the rest, while that one is open.
        let rest = free(&fs, cx);
        put(&fs, cx, "rest", rest as usize - PAGE).unwrap();
        assert_eq!(free(&fs, cx), 0);
        let full = fs.write(cx, open, None, &[1; PAGE]);
        assert_eq!(full.unwrap_err(), Kind::NoSpace);
        // A cut now: nothing that was reserved is missed.
        fs.sync(cx).unwrap();
        let cut: Arc<dyn BlockDevice> = Arc::new(MemDevice::from_vec(dev.to_vec()));
        drop(attach(cut.clone(), ""));
        clean(cut).unwrap();
    });
}
