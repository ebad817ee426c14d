//! getattr and setattr: sizes, times, and node ids that come from outside.

use crate::suite::{Case, case_list};
use volary_core::{Caps, FileKind, Kind, NodeId, SetAttr, SetTime, Time};

case_list! {
    about SetAttr | GetAttr;
    attributes_of_a_file_and_a_directory with WRITE;
    node_ids_from_outside_are_stale;
    a_file_is_cut_short with WRITE;
    a_file_grown_reads_as_zeros with WRITE;
    what_was_cut_off_does_not_come_back with WRITE;
    a_size_past_the_greatest_is_too_big with WRITE;
    the_greatest_size_can_be_had with WRITE | HOLES;
    a_directory_has_no_size_to_set with WRITE;
    setattr_changes_all_or_nothing with WRITE;
    setattr_of_nothing_changes_nothing with WRITE;
    setattr_gives_the_attributes_as_they_now_are with WRITE;
    a_time_comes_back_rounded_down with WRITE;
    a_time_now_is_the_time_of_the_call with WRITE;
    a_time_before_what_the_format_can_keep_does_no_harm with WRITE;
    writing_sets_the_time_of_last_change with WRITE;
    cutting_sets_the_time_of_last_change with WRITE;
    reading_leaves_the_time_of_last_change with WRITE;
    times_are_kept_after_reattaching with WRITE;
    a_directory_changes_with_its_entries with WRITE | MODES;
    the_change_count_grows_with_every_change with WRITE;
    room_taken_covers_the_content with WRITE;
    dos_attributes_come_back_or_are_unsupported with WRITE;
    setting_attributes_of_an_open_file_is_seen_at_once with WRITE;
}

fn attributes_of_a_file_and_a_directory(c: &Case) {
    let file = c.file(c.root(), "f", &[1; 1234]);
    let dir = c.dir(c.root(), "d");
    let a = c.attr(file);
    assert_eq!((a.node, a.kind, a.nlink), (file, FileKind::File, 1));
    assert_eq!((a.size, a.rdev), (1234, 0));
    let a = c.attr(dir);
    assert_eq!((a.node, a.kind), (dir, FileKind::Dir));
    assert!(a.nlink >= 1);
    for node in [file, dir, c.root()] {
        let a = c.attr(node);
        assert_eq!(a.mode & !0o7777, 0, "the kind is not in the mode");
        assert!(a.io_size > 0);
    }
}

fn node_ids_from_outside_are_stale(c: &Case) {
    let root = c.root();
    for shift in 0..64 {
        for ino in [1_u64 << shift, (1 << shift) + 1, !(1 << shift)] {
            for generation in [0, 1, u32::MAX] {
                let Some(node) = NodeId::new(ino, generation) else {
                    continue;
                };
                if node == root {
                    continue;
                }
                if let Err(e) = c.getattr(node) {
                    assert_eq!(e, Kind::Stale, "{node:?}");
                } else {
                    // The driver may answer only for an existing node.
                    assert_eq!(c.attr(node).node, node);
                }
                let _ = c.lookup(node, "x").expect_err("lookup in nothing");
            }
        }
    }
}

fn a_file_is_cut_short(c: &Case) {
    let content = crate::rng::pattern(1, 100_000);
    let node = c.file(c.root(), "f", &content);
    for size in [99_999, 65_536, 65_535, 4097, 4096, 513, 512, 511, 1, 0] {
        c.resize(node, size as u64);
        assert_eq!(c.attr(node).size, size as u64);
        assert!(c.content(node) == content[..size], "cut to {size}");
    }
}

fn a_file_grown_reads_as_zeros(c: &Case) {
    let node = c.file(c.root(), "f", b"abc");
    for size in [4, 511, 512, 513, 4096, 5000, 70_000, 200_000] {
        c.resize(node, size as u64);
        let mut want = vec![0; size];
        want[..3].copy_from_slice(b"abc");
        assert!(c.content(node) == want, "grown to {size}");
    }
}

fn what_was_cut_off_does_not_come_back(c: &Case) {
    let node = c.file(c.root(), "f", &[0xff; 50_000]);
    for (cut, grown) in [(40_001, 50_000), (100, 45_000), (99, 512), (0, 30_000)] {
        c.resize(node, cut as u64);
        c.resize(node, grown as u64);
        let mut want = vec![0; grown];
        want[..cut].fill(0xff);
        assert!(c.content(node) == want, "cut to {cut}, grown to {grown}");
        let open = c.open(node);
        c.write(open, 0, &[0xff; 50_000]).expect("write");
        c.close(open);
    }
}

fn a_size_past_the_greatest_is_too_big(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let max = c.caps().size_max;
    for size in [max.checked_add(1), Some(u64::MAX)].into_iter().flatten() {
        if size > max {
            c.refuses(Kind::TooBig, || c.setattr(node, &SetAttr::size(size)));
        }
    }
}

fn the_greatest_size_can_be_had(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let max = c.caps().size_max;
    c.resize(node, max);
    assert_eq!(c.attr(node).size, max);
    let open = c.open_to_read(node);
    assert_eq!(c.read(open, max - 1, 10).expect("read"), b"\0");
    c.close(open);
    c.resize(node, 1);
    assert_eq!(c.content(node), b"x");
}

fn a_directory_has_no_size_to_set(c: &Case) {
    let dir = c.dir(c.root(), "d");
    c.touch(dir, "f");
    c.refuses_with(&[Kind::IsDir, Kind::Invalid, Kind::Unsupported], || {
        c.setattr(dir, &SetAttr::size(0))
    });
}

fn setattr_changes_all_or_nothing(c: &Case) {
    let max = c.caps().size_max;
    let Some(size) = max.checked_add(1) else {
        return c.skip("no size is past the greatest");
    };
    let node = c.file(c.root(), "f", b"x");
    let set = SetAttr {
        size: Some(size),
        mtime: Some(SetTime::To(Time::from_secs(1_000_000_000))),
        ..c.usual(0o400)
    };
    c.refuses(Kind::TooBig, || c.setattr(node, &set));
}

fn setattr_of_nothing_changes_nothing(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    c.pass(1000);
    let before = c.tree();
    c.setattr(node, &SetAttr::default()).expect("setattr");
    before.assert_same(&c.tree());
}

fn setattr_gives_the_attributes_as_they_now_are(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let got = c.setattr(node, &SetAttr::size(5)).expect("setattr");
    assert_eq!((got.node, got.size), (node, 5));
    let real = c.attr(node);
    assert_eq!((got.mode, got.mtime), (real.mode, real.mtime));
}

fn set_mtime(c: &Case, node: NodeId, to: SetTime) -> volary_core::Result<Time> {
    let set = SetAttr {
        mtime: Some(to),
        ..SetAttr::default()
    };
    c.setattr(node, &set).map(|a| a.mtime)
}

fn a_time_comes_back_rounded_down(c: &Case) {
    let (file, dir) = (c.touch(c.root(), "f"), c.dir(c.root(), "d"));
    for t in [
        Time::from_secs(1_000_000_000),
        Time::new(1_234_567_891, 999_999_999),
        Time::new(500_000_001, 1),
        Time::new(1_900_000_003, 123_456_789),
    ] {
        for node in [file, dir] {
            let got = set_mtime(c, node, SetTime::To(t)).expect("setattr");
            assert_eq!(got, t.round_down(c.caps().time_step));
            assert_eq!(c.attr(node).mtime, got);
        }
    }
}

fn a_time_now_is_the_time_of_the_call(c: &Case) {
    let node = c.touch(c.root(), "f");
    set_mtime(c, node, SetTime::To(Time::from_secs(1_000_000_000))).expect("setattr");
    c.pass(1001);
    let got = set_mtime(c, node, SetTime::Now).expect("setattr");
    if c.takes_our_time() {
        assert_eq!(got, c.now().round_down(c.caps().time_step));
    } else {
        assert!(got > Time::from_secs(1_000_000_000));
    }
}

fn a_time_before_what_the_format_can_keep_does_no_harm(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    for secs in [i64::MIN, -1, 0, 1 << 33, 1 << 40, i64::MAX] {
        // The time is refused, or replaced by the nearest that the format can keep.
        if let Ok(got) = set_mtime(c, node, SetTime::To(Time::from_secs(secs))) {
            assert_eq!(c.attr(node).mtime, got);
        }
        assert_eq!(c.content(node), b"x");
    }
}

/// Returns whether `act`, run at a later time, changes the node's mtime.
#[track_caller]
fn moves_mtime(c: &Case, node: NodeId, act: impl FnOnce()) -> bool {
    let early = SetTime::To(Time::from_secs(1_000_000_000));
    let before = set_mtime(c, node, early).expect("setattr");
    c.pass(10);
    act();
    let after = c.attr(node).mtime;
    if after != before && c.takes_our_time() {
        assert_eq!(after, c.now().round_down(c.caps().time_step));
    }
    after != before
}

fn writing_sets_the_time_of_last_change(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    assert!(moves_mtime(c, node, || {
        c.write(open, 0, b"C").expect("write");
    }));
    assert!(moves_mtime(c, node, || {
        c.append(open, b"!").expect("append");
    }));
    c.close(open);
}

fn cutting_sets_the_time_of_last_change(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    assert!(moves_mtime(c, node, || c.resize(node, 3)));
    assert!(moves_mtime(c, node, || c.resize(node, 5000)));
    assert!(moves_mtime(c, node, || {
        let how = volary_core::Create::Truncate;
        let (_, open) = c.create(c.root(), "f", how).expect("create");
        c.close(open);
    }));
}

fn reading_leaves_the_time_of_last_change(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    assert!(!moves_mtime(c, node, || {
        c.content(node);
        c.find(c.root(), "f");
        c.names(c.root());
        let open = c.open(node);
        c.fs().fsync(&c.cx(), open, false).expect("fsync");
        c.close(open);
    }));
}

fn times_are_kept_after_reattaching(c: &Case) {
    let (file, dir) = (c.file(c.root(), "f", b"x"), c.dir(c.root(), "d"));
    let t = SetTime::To(Time::new(1_234_567_891, 120_000_000));
    let of_file = set_mtime(c, file, t).expect("setattr");
    let of_dir = set_mtime(c, dir, t).expect("setattr");
    c.pass(100);
    if c.reattach() {
        assert_eq!(c.attr(c.find(c.root(), "f")).mtime, of_file);
        assert_eq!(c.attr(c.find(c.root(), "d")).mtime, of_dir);
    }
}

fn a_directory_changes_with_its_entries(c: &Case) {
    let dir = c.dir(c.root(), "d");
    assert!(moves_mtime(c, dir, || {
        c.touch(dir, "f");
    }));
    assert!(moves_mtime(c, dir, || {
        c.rename(dir, "f", dir, "g").expect("rename");
    }));
    assert!(moves_mtime(c, dir, || c.unlink(dir, "g").expect("unlink")));
    assert!(moves_mtime(c, dir, || {
        c.dir(dir, "below");
    }));
    assert!(moves_mtime(c, dir, || c
        .rmdir(dir, "below")
        .expect("rmdir")));
}

fn the_change_count_grows_with_every_change(c: &Case) {
    let node = c.file(c.root(), "f", b"x");
    let open = c.open(node);
    let mut last = c.attr(node).change;
    let mut grown = |what: &str| {
        let now = c.attr(node).change;
        assert!(now > last, "{what}: from {last} to {now}");
        last = now;
    };
    c.write(open, 0, b"y").expect("write");
    grown("a write");
    c.append(open, b"z").expect("append");
    grown("an append");
    c.resize(node, 1);
    grown("a cut");
    set_mtime(c, node, SetTime::To(Time::from_secs(1_000_000_000))).expect("setattr");
    grown("a time");
    c.close(open);
}

fn room_taken_covers_the_content(c: &Case) {
    let node = c.file(c.root(), "f", &crate::rng::pattern(1, 100_000));
    c.fs().sync(&c.cx()).expect("sync");
    let attr = c.attr(node);
    assert!(attr.allocated >= 100_000, "{} bytes", attr.allocated);
}

fn dos_attributes_come_back_or_are_unsupported(c: &Case) {
    let node = c.touch(c.root(), "f");
    let set = |dos| SetAttr {
        dos: Some(dos),
        ..SetAttr::default()
    };
    if c.attr(node).dos.is_none() {
        c.refuses(Kind::Unsupported, || c.setattr(node, &set(2)));
        return;
    }
    for dos in [0, 2, 4, 0x20, 0x26] {
        c.setattr(node, &set(dos)).expect("setattr");
        assert_eq!(c.attr(node).dos, Some(dos));
    }
    if c.reattach() {
        assert_eq!(c.attr(c.find(c.root(), "f")).dos, Some(0x26));
    }
}

fn setting_attributes_of_an_open_file_is_seen_at_once(c: &Case) {
    let node = c.file(c.root(), "f", b"content");
    let open = c.open(node);
    c.resize(node, 3);
    assert_eq!(c.read(open, 0, 10).expect("read"), b"con");
    assert_eq!(c.append(open, b"!").expect("append"), 4);
    if c.caps().has(Caps::MODES) {
        // Access was checked when the file was opened.
        c.setattr(node, &SetAttr::mode(0)).expect("setattr");
        c.write(open, 0, b"C").expect("write");
    }
    c.close(open);
    assert_eq!(c.attr(node).size, 4);
}
