//! Claims that stand for one operation each, tested with and without the claim.

use crate::suite::{Case, case_list};
use std::sync::Arc;
use volary_core::{Access, Change, ChangeSink, Kind, Lock, Place, SetAttr};

case_list! {
    about Lock | Watch | Extents | Allocate | GetXattr | SetXattr | ListXattr | RemoveXattr;
    access_gives_a_part_of_what_is_wanted with CHECKS_ACCESS;
    access_is_unsupported without CHECKS_ACCESS;
    a_watch_can_be_had_and_ended with WATCH;
    watch_is_unsupported without WATCH;
    a_lock_can_be_taken_and_given_back with WRITE | SHARED_LOCKS;
    lock_is_unsupported with WRITE without SHARED_LOCKS;
    an_unknown_ioctl_is_unsupported with WRITE;
    extents_cover_the_range_in_order with WRITE | EXTENTS;
    extents_of_a_hole_say_so with WRITE | EXTENTS | HOLES;
    extents_are_unsupported with WRITE without EXTENTS;
    preallocation_takes_room_and_keeps_the_size with WRITE | PREALLOCATE;
    preallocation_is_unsupported with WRITE without PREALLOCATE;
    a_punched_hole_reads_as_zeros with WRITE | HOLES;
    punching_a_hole_is_unsupported with WRITE without HOLES;
    a_sparse_file_takes_little_room with WRITE | HOLES;
    a_file_with_a_gap_takes_room_for_all_of_it with WRITE without HOLES;
    xattrs_are_set_listed_replaced_and_removed with WRITE | XATTRS;
    a_missing_xattr_is_no_xattr with WRITE | XATTRS;
    an_xattr_too_big_changes_nothing with WRITE | XATTRS;
    xattrs_are_unsupported without XATTRS;
    owner_and_mode_come_back with WRITE | MODES;
    all_twelve_mode_bits_come_back with WRITE | MODES;
    a_mode_that_cannot_be_kept_is_refused with WRITE without MODES;
    an_owner_that_cannot_be_kept_is_refused with WRITE without MODES;
    setting_mode_and_owner_to_what_they_are_is_no_change with WRITE without MODES;
}

struct Deaf;
impl ChangeSink for Deaf {
    fn changed(&self, _: Change) {}
}

fn access_gives_a_part_of_what_is_wanted(c: &Case) {
    let want = Access::READ.and(Access::EXEC);
    let got = c.fs().access(&c.cx(), c.root(), want).expect("access");
    assert!(want.has(got), "{got:?} is more than {want:?}");
}

fn access_is_unsupported(c: &Case) {
    let got = c.fs().access(&c.cx(), c.root(), Access::READ);
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
}

fn a_watch_can_be_had_and_ended(c: &Case) {
    let watch = c.fs().watch(Arc::new(Deaf)).expect("watch");
    drop(watch);
    drop(c.fs().watch(Arc::new(Deaf)).expect("watch again"));
}

fn watch_is_unsupported(c: &Case) {
    let got = c.fs().watch(Arc::new(Deaf)).err().expect("a refusal");
    assert_eq!(got, Kind::Unsupported);
}

fn lock(unlock: bool) -> Lock {
    Lock {
        owner: 1,
        offset: 0,
        len: 10,
        exclusive: true,
        unlock,
        test: false,
    }
}

fn a_lock_can_be_taken_and_given_back(c: &Case) {
    let open = c.open(c.file(c.root(), "f", b"0123456789"));
    c.fs().lock(&c.cx(), open, lock(false)).expect("lock");
    c.fs().lock(&c.cx(), open, lock(true)).expect("unlock");
    c.close(open);
}

fn lock_is_unsupported(c: &Case) {
    let open = c.open(c.touch(c.root(), "f"));
    let got = c.fs().lock(&c.cx(), open, lock(false));
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
    c.close(open);
}

fn an_unknown_ioctl_is_unsupported(c: &Case) {
    let open = c.open(c.touch(c.root(), "f"));
    c.refuses(Kind::Unsupported, || {
        c.fs().ioctl(&c.cx(), open, 0xdead_beef, &[0; 16])
    });
    c.close(open);
}

fn extents_cover_the_range_in_order(c: &Case) {
    let open = c.open(c.file(c.root(), "f", &vec![5; 200_000]));
    for (offset, len) in [(0, 200_000), (1, 199_998), (70_000, 3), (150_000, 50_000)] {
        let mut out = Vec::new();
        c.fs()
            .extents(&c.cx(), open, offset, len, &mut out)
            .expect("extents");
        let mut at = offset;
        for e in &out {
            assert_eq!(e.offset, at, "{out:?} has a gap or goes back");
            assert!(e.len > 0 && e.place != Place::Hole, "{e:?}");
            at += e.len;
        }
        assert_eq!(at, offset + len, "{out:?} for {offset}+{len}");
    }
    c.close(open);
}

fn extents_of_a_hole_say_so(c: &Case) {
    let open = c.open(c.touch(c.root(), "f"));
    c.write(open, 4 << 20, b"end").expect("write");
    let mut out = Vec::new();
    c.fs()
        .extents(&c.cx(), open, 0, 4 << 20, &mut out)
        .expect("extents");
    let holes: u64 = out
        .iter()
        .filter(|e| e.place == Place::Hole)
        .map(|e| e.len)
        .sum();
    assert!(holes >= 3 << 20, "only {holes} bytes of holes in {out:?}");
    c.close(open);
}

fn extents_are_unsupported(c: &Case) {
    let open = c.open(c.file(c.root(), "f", b"x"));
    let got = c.fs().extents(&c.cx(), open, 0, 1, &mut Vec::new());
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
    c.close(open);
}

fn preallocation_takes_room_and_keeps_the_size(c: &Case) {
    let node = c.file(c.root(), "f", b"abc");
    let open = c.open(node);
    c.fs()
        .allocate(&c.cx(), open, 0, 100_000, false)
        .expect("allocate");
    let attr = c.attr(node);
    assert_eq!(attr.size, 3);
    assert!(attr.allocated >= 100_000, "{} bytes", attr.allocated);
    assert_eq!(c.content(node), b"abc");
    c.close(open);
    c.resize(node, 10);
    assert_eq!(c.content(node), b"abc\0\0\0\0\0\0\0");
}

fn preallocation_is_unsupported(c: &Case) {
    let open = c.open(c.file(c.root(), "f", b"abc"));
    c.refuses(Kind::Unsupported, || {
        c.fs().allocate(&c.cx(), open, 0, 100_000, false)
    });
    c.close(open);
}

fn a_punched_hole_reads_as_zeros(c: &Case) {
    let node = c.file(c.root(), "f", &vec![9; 100_000]);
    let open = c.open(node);
    c.fs()
        .allocate(&c.cx(), open, 10_001, 50_000, true)
        .expect("a hole");
    c.close(open);
    let mut want = vec![9; 100_000];
    want[10_001..60_001].fill(0);
    assert_eq!(c.attr(node).size, 100_000);
    assert!(c.content(node) == want, "the hole and nothing else is zero");
}

fn punching_a_hole_is_unsupported(c: &Case) {
    let open = c.open(c.file(c.root(), "f", &vec![9; 100_000]));
    c.refuses(Kind::Unsupported, || {
        c.fs().allocate(&c.cx(), open, 0, 50_000, true)
    });
    c.close(open);
}

fn a_sparse_file_takes_little_room(c: &Case) {
    let node = sparse(c);
    let attr = c.attr(node);
    assert!(
        attr.allocated < 1 << 20,
        "{} bytes for a hole",
        attr.allocated
    );
}

fn a_file_with_a_gap_takes_room_for_all_of_it(c: &Case) {
    let node = sparse(c);
    let attr = c.attr(node);
    assert!(
        attr.allocated >= attr.size,
        "{} of {}",
        attr.allocated,
        attr.size
    );
}

fn sparse(c: &Case) -> volary_core::NodeId {
    let node = c.touch(c.root(), "f");
    let open = c.open(node);
    c.write(open, 1 << 20, b"end").expect("write");
    c.fs().fsync(&c.cx(), open, false).expect("fsync");
    c.close(open);
    node
}

fn xattrs_are_set_listed_replaced_and_removed(c: &Case) {
    let (fs, cx) = (c.fs(), c.cx());
    let node = c.touch(c.root(), "f");
    assert_eq!(
        fs.listxattr(&cx, node).expect("list"),
        Vec::<Vec<u8>>::new()
    );
    fs.setxattr(&cx, node, b"user.a", b"1").expect("set a");
    fs.setxattr(&cx, node, b"user.b", b"").expect("set b");
    fs.setxattr(&cx, node, b"user.a", b"two")
        .expect("replace a");
    let mut names = fs.listxattr(&cx, node).expect("list");
    names.sort();
    assert_eq!(names, [b"user.a".to_vec(), b"user.b".to_vec()]);
    assert_eq!(fs.getxattr(&cx, node, b"user.a").expect("get a"), b"two");
    assert_eq!(fs.getxattr(&cx, node, b"user.b").expect("get b"), b"");
    fs.removexattr(&cx, node, b"user.a").expect("remove a");
    assert_eq!(fs.listxattr(&cx, node).expect("list"), [b"user.b".to_vec()]);
}

fn a_missing_xattr_is_no_xattr(c: &Case) {
    let node = c.touch(c.root(), "f");
    c.refuses(Kind::NoXattr, || {
        c.fs().getxattr(&c.cx(), node, b"user.none")
    });
    c.refuses(Kind::NoXattr, || {
        c.fs().removexattr(&c.cx(), node, b"user.none")
    });
}

fn an_xattr_too_big_changes_nothing(c: &Case) {
    let (fs, cx) = (c.fs(), c.cx());
    let node = c.touch(c.root(), "f");
    fs.setxattr(&cx, node, b"user.a", b"1").expect("set");
    let huge = vec![b'x'; 16 << 20];
    if let Err(e) = fs.setxattr(&cx, node, b"user.a", &huge) {
        assert!(
            matches!(e.kind(), Kind::TooBig | Kind::NoSpace),
            "refused with {e:?}"
        );
        assert_eq!(fs.getxattr(&cx, node, b"user.a").expect("get"), b"1");
    } else {
        assert_eq!(fs.getxattr(&cx, node, b"user.a").expect("get"), huge);
    }
}

fn xattrs_are_unsupported(c: &Case) {
    let (fs, cx, root) = (c.fs(), c.cx(), c.root());
    assert_eq!(fs.listxattr(&cx, root).unwrap_err(), Kind::Unsupported);
    let got = fs.getxattr(&cx, root, b"user.a");
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
    let got = fs.setxattr(&cx, root, b"user.a", b"1");
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
    let got = fs.removexattr(&cx, root, b"user.a");
    assert_eq!(got.unwrap_err(), Kind::Unsupported);
}

fn owner_and_mode_come_back(c: &Case) {
    let root = c.root();
    let set = SetAttr::owned(0o640, 1000, 100);
    let (entry, open) = c
        .create_as(root, "f", volary_core::Create::New, &set)
        .expect("create");
    c.close(open);
    let of = |node| {
        let a = c.attr(node);
        (a.mode, a.uid, a.gid)
    };
    assert_eq!(of(entry.node), (0o640, 1000, 100));
    let got = c
        .setattr(entry.node, &SetAttr::owned(0o711, 65_534, 7))
        .expect("setattr");
    assert_eq!((got.mode, got.uid, got.gid), (0o711, 65_534, 7));
    assert_eq!(of(entry.node), (0o711, 65_534, 7));
    let name = volary_core::Name::new(b"d").expect("a name");
    let dir = c.fs().mkdir(&c.cx(), root, name, &set).expect("mkdir");
    assert_eq!(of(dir.node), (0o640, 1000, 100));
    if c.reattach() {
        assert_eq!(of(c.find(c.root(), "f")), (0o711, 65_534, 7));
        assert_eq!(of(c.find(c.root(), "d")), (0o640, 1000, 100));
    }
}

fn all_twelve_mode_bits_come_back(c: &Case) {
    let node = c.touch(c.root(), "f");
    for mode in (0..12).map(|bit| 1 << bit).chain([0, 0o7777, 0o2755]) {
        c.setattr(node, &SetAttr::mode(mode)).expect("setattr");
        assert_eq!(c.attr(node).mode, mode);
    }
}

/// The documented error, or the one for a change that needs the owner.
const CANNOT_KEEP: &[Kind] = &[Kind::Unsupported, Kind::NotPermitted];

fn a_mode_that_cannot_be_kept_is_refused(c: &Case) {
    let node = c.touch(c.root(), "f");
    // A mode that a volume without modes cannot store: others, but not the owner, may execute.
    let odd = (c.attr(node).mode & !0o111) ^ 0o001;
    c.refuses_with(CANNOT_KEEP, || c.setattr(node, &SetAttr::mode(odd)));
}

fn an_owner_that_cannot_be_kept_is_refused(c: &Case) {
    let node = c.touch(c.root(), "f");
    let other = SetAttr {
        uid: Some(c.attr(node).uid + 1),
        ..SetAttr::default()
    };
    c.refuses_with(CANNOT_KEEP, || c.setattr(node, &other));
}

fn setting_mode_and_owner_to_what_they_are_is_no_change(c: &Case) {
    let node = c.touch(c.root(), "f");
    let a = c.attr(node);
    let same = SetAttr::owned(a.mode, a.uid, a.gid);
    let got = c.setattr(node, &same).expect("setattr");
    assert_eq!((got.mode, got.uid, got.gid), (a.mode, a.uid, a.gid));
}
