//! Who may do what, by mode, owner and group.

use crate::{GROUP, MEMBER, Make, OTHER, OWNER, kind, root, user, volume, volume_of, volume_with};
use parking_lot::Mutex;
use std::sync::{Arc, mpsc};
use volary_core::{
    Access, Create, Cred, Ctx, Fs, Kind, Layer, Mode, Name, NodeId, RenameFlags, Result, SetAttr,
};
use volary_mem::MemOptions;
use volary_session::{Session, Volume};

const RWX: [(Access, u32); 3] = [
    (Access::READ, 0o4),
    (Access::WRITE, 0o2),
    (Access::EXEC, 0o1),
];

/// Every caller and every combination of bits: only the class that the caller
/// is in counts, also where another grants more.
#[test]
fn the_class_that_the_caller_is_in_decides_alone() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let node = owner.file(owner.root(), "f", 0);
    for mode in 0..=0o777 {
        owner.setattr(node, &SetAttr::mode(mode)).unwrap();
        for (uid, shift) in [(OWNER, 6), (MEMBER, 3), (OTHER, 0)] {
            for (access, bit) in RWX {
                let expected = (mode >> shift & bit == 0).then_some(Kind::Access);
                let got = kind(user(&volume, uid).access(node, access));
                assert_eq!(got, expected, "uid {uid} mode {mode:o} {access:?}");
            }
        }
    }
}

#[test]
fn further_groups_count_like_the_first() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let node = owner.file(owner.root(), "f", 0o060);
    let mut cred = Cred::new(OTHER, OTHER);
    cred.groups = Arc::from([7, GROUP]);
    let session = volume.session(cred);
    session
        .access(node, Access::READ.and(Access::WRITE))
        .unwrap();
}

#[test]
fn root_may_all_but_runs_only_what_somebody_may_run() {
    let volume = volume();
    let (owner, root) = (user(&volume, OWNER), root(&volume));
    let node = owner.file(owner.root(), "f", 0);
    let dir = owner.dir(owner.root(), "d", 0);
    root.access(node, Access::READ.and(Access::WRITE)).unwrap();
    assert_eq!(kind(root.access(node, Access::EXEC)), Some(Kind::Access));
    root.access(dir, Access::EXEC).unwrap();
    owner.setattr(node, &SetAttr::mode(0o001)).unwrap();
    root.access(node, Access::EXEC).unwrap();
    root.file(dir, "in", 0);
}

/// The operations that a directory's bits decide, and which they need.
#[test]
fn directories_are_searched_with_x_and_changed_with_wx() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let dir = owner.dir(owner.root(), "d", 0o777);
    let sub = owner.dir(dir, "sub", 0o777);
    owner.file(dir, "f", 0o666);
    for mode in 0..=0o7 {
        owner.setattr(dir, &SetAttr::mode(0o700 | mode)).unwrap();
        let other = user(&volume, OTHER);
        let may = |bits: u32| (mode & bits != bits).then_some(Kind::Access);
        assert_eq!(kind(other.lookup(dir, b"f")), may(1), "{mode}");
        assert_eq!(kind(other.lookup(dir, b".")), may(1), "{mode}");
        assert_eq!(kind(other.lookup(sub, b"..")), None);
        assert_eq!(kind(other.open(dir, Mode::Read)), may(4), "{mode}");
        let set = SetAttr::mode(0o644);
        assert_eq!(kind(other.mkdir(dir, b"new", &set)), may(3), "{mode}");
        if mode & 3 == 3 {
            other.rmdir(dir, b"new").unwrap();
        }
        let open = other.create(dir, b"f", Create::Open, Mode::Read, &set);
        assert_eq!(kind(open), may(1), "{mode}");
    }
}

/// What is there is seen before what is forbidden, as far as one may look.
#[test]
fn a_taken_or_missing_name_tells_more_than_a_closed_directory() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let dir = owner.dir(owner.root(), "d", 0o755);
    let node = owner.file(dir, "f", 0o644);
    let common = owner.file(dir, "common", 0o666);
    let (other, set) = (user(&volume, OTHER), SetAttr::default());
    let root = other.root();
    let table = [
        (kind(other.mkdir(dir, b"f", &set)), Kind::Exists),
        (kind(other.mkdir(dir, b"g", &set)), Kind::Access),
        (kind(other.symlink(dir, b"f", b"x", &set)), Kind::Exists),
        (kind(other.link(node, dir, b"f")), Kind::Exists),
        (kind(other.link(node, dir, b"g")), Kind::NotPermitted),
        (kind(other.link(common, dir, b"g")), Kind::Access),
        (
            kind(other.create(dir, b"f", Create::New, Mode::Read, &set)),
            Kind::Exists,
        ),
        (
            kind(other.create(dir, b"g", Create::New, Mode::Read, &set)),
            Kind::Access,
        ),
        (
            kind(other.create(dir, b"f", Create::Open, Mode::Write, &set)),
            Kind::Access,
        ),
        (kind(other.unlink(dir, b"f")), Kind::Access),
        (kind(other.unlink(dir, b"g")), Kind::NotFound),
        (kind(other.rmdir(dir, b"f")), Kind::Access),
        (
            kind(other.rename(dir, b"f", root, b"f", RenameFlags::REPLACE)),
            Kind::Access,
        ),
        (
            kind(other.rename(dir, b"g", root, b"f", RenameFlags::REPLACE)),
            Kind::NotFound,
        ),
    ];
    for (i, (got, expected)) in table.into_iter().enumerate() {
        assert_eq!(got, Some(expected), "row {i}");
    }
}

/// As Linux has it with `fs.protected_hardlinks`.
#[test]
fn a_name_for_what_is_anothers_needs_rights_on_it() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let dir = owner.dir(owner.root(), "d", 0o777);
    for (mode, others) in [
        (0o600, Some(Kind::NotPermitted)),
        (0o644, Some(Kind::NotPermitted)),
        (0o666, None),
        (0o4666, Some(Kind::NotPermitted)),
        (0o2676, Some(Kind::NotPermitted)),
        (0o2666, None),
    ] {
        let node = owner.file(dir, &format!("{mode:o}"), mode);
        let link = |session: &Session, name: &str| {
            kind(session.link(node, dir, format!("{mode:o}{name}").as_bytes()))
        };
        assert_eq!(link(&user(&volume, OTHER), "other"), others, "{mode:o}");
        assert_eq!(link(&owner, "owner"), None, "{mode:o}");
        assert_eq!(link(&root(&volume), "root"), None, "{mode:o}");
    }
}

/// Returns a directory that anybody may change, with `mode`, and a file of `OWNER` in it.
fn shared(volume: &Arc<Volume>, mode: u32) -> (Session, NodeId, NodeId) {
    let root = root(volume);
    let dir = root.dir(root.root(), "tmp", 0o777);
    root.setattr(dir, &SetAttr::mode(mode)).unwrap();
    let node = user(volume, OWNER).file(dir, "f", 0o666);
    (root, dir, node)
}

#[test]
fn in_a_sticky_directory_only_owners_remove_and_rename() {
    for mode in [0o777, 0o1777] {
        let volume = volume();
        let (_, dir, _) = shared(&volume, mode);
        let other = user(&volume, OTHER);
        other.file(dir, "mine", 0o666);
        let sub = other.dir(other.root(), "sub", 0o777);
        let sticks = (mode == 0o1777).then_some(Kind::NotPermitted);
        let replace = RenameFlags::REPLACE;
        let onto = other.rename(dir, b"mine", dir, b"f", replace);
        assert_eq!(kind(onto), sticks, "{mode:o}");
        if sticks.is_none() {
            continue;
        }
        let tried = [
            kind(other.rename(dir, b"f", dir, b"g", replace)),
            kind(other.rename(dir, b"f", sub, b"g", replace)),
            kind(other.rename(dir, b"mine", dir, b"f", RenameFlags::SWAP)),
            kind(other.unlink(dir, b"f")),
        ];
        assert_eq!(tried, [sticks; 4]);
        other.rename(dir, b"mine", dir, b"still", replace).unwrap();
        other.unlink(dir, b"still").unwrap();
        user(&volume, OWNER).unlink(dir, b"f").unwrap();
    }
}

#[test]
fn the_owner_of_a_sticky_directory_and_root_remove_what_others_put_there() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let dir = owner.dir(owner.root(), "d", 0o777);
    owner.setattr(dir, &SetAttr::mode(0o1777)).unwrap();
    let other = user(&volume, OTHER);
    other.file(dir, "a", 0o600);
    other.dir(dir, "b", 0o700);
    owner.unlink(dir, b"a").unwrap();
    root(&volume).rmdir(dir, b"b").unwrap();
}

#[test]
fn a_directory_moves_to_another_only_by_those_who_may_write_it() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let top = owner.root();
    let to = owner.dir(top, "to", 0o777);
    owner.dir(top, "d", 0o755);
    let other = user(&volume, OTHER);
    let replace = RenameFlags::REPLACE;
    let moved = other.rename(top, b"d", to, b"d", replace);
    assert_eq!(kind(moved), Some(Kind::Access));
    other.rename(top, b"d", top, b"e", replace).unwrap();
    other.dir(to, "x", 0o777);
    let swapped = other.rename(to, b"x", top, b"e", RenameFlags::SWAP);
    assert_eq!(kind(swapped), Some(Kind::Access));
    owner.rename(top, b"e", to, b"e", replace).unwrap();
}

#[test]
fn devices_are_made_by_root_only_and_fifos_by_anybody() {
    use volary_core::FileKind;
    let volume = volume();
    let other = user(&volume, OTHER);
    let (top, set) = (other.root(), SetAttr::mode(0o666));
    for kind_of in [FileKind::CharDevice, FileKind::BlockDevice] {
        let made = other.mknod(top, b"dev", kind_of, 1, &set);
        assert_eq!(kind(made), Some(Kind::NotPermitted));
        root(&volume).mknod(top, b"dev", kind_of, 1, &set).unwrap();
        root(&volume).unlink(top, b"dev").unwrap();
    }
    let fifo = other.mknod(top, b"fifo", FileKind::Fifo, 0, &set).unwrap();
    assert_eq!(fifo.attr.kind, FileKind::Fifo);
    let file = other.mknod(top, b"file", FileKind::File, 0, &set).unwrap();
    assert_eq!(file.attr.kind, FileKind::File);
    let dir = other.mknod(top, b"dir", FileKind::Dir, 0, &set);
    assert_eq!(kind(dir), Some(Kind::Invalid));
}

#[test]
fn a_trusting_volume_lets_pass_what_the_kernel_let_pass() {
    let volume = volume_with(MemOptions::default(), true);
    let other = user(&volume, OTHER);
    let dir = other.dir(other.root(), "d", 0o000);
    let node = other.file(dir, "f", 0o000);
    let member = user(&volume, MEMBER);
    let open = member.open(node, Mode::ReadWrite).unwrap();
    member.close(open).unwrap();
    member.setattr(node, &SetAttr::mode(0o400)).unwrap();
    member.unlink(dir, b"f").unwrap();
    assert_eq!(kind(member.access(dir, Access::READ)), Some(Kind::Access));
}

#[test]
fn a_read_only_volume_says_so_before_it_says_no() {
    let volume = volume_with(crate::without(volary_core::Caps::WRITE), false);
    let session = user(&volume, OTHER);
    let (top, set) = (session.root(), SetAttr::mode(0o644));
    let replace = RenameFlags::REPLACE;
    let refused = [
        kind(session.mkdir(top, b"d", &set)),
        kind(session.create(top, b"f", Create::Open, Mode::Read, &set)),
        kind(session.unlink(top, b"f")),
        kind(session.rename(top, b"f", top, b"g", replace)),
        kind(session.setattr(top, &set)),
        kind(session.access(top, Access::WRITE)),
    ];
    assert_eq!(refused, [Some(Kind::ReadOnly); 6]);
    session.access(top, Access::READ).unwrap();
}

/// Does something just before a name is taken away.
struct JustBefore {
    below: Fs,
    act: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Layer for JustBefore {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn unlink(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<()> {
        let act = self.act.lock().take();
        act.into_iter().for_each(|act| act());
        self.below.unlink(cx, dir, name)
    }
}

/// One removes their own file from a sticky directory; between the look at it
/// and its removal, root removes it, and another makes one of that name. That
/// one has to wait, and its file stays.
#[test]
fn in_a_sticky_directory_nobody_takes_what_took_the_name_meanwhile() {
    let below = volume().fs().clone();
    let layer = Arc::new(JustBefore {
        below,
        act: Mutex::default(),
    });
    let volume = volume_of(layer.clone(), false);
    let (root, dir, _) = shared(&volume, 0o1777);
    let other = user(&volume, OTHER);
    let (tell, told) = mpsc::channel();
    *layer.act.lock() = Some(Box::new(move || {
        root.unlink(dir, b"f").unwrap();
        let making = std::thread::spawn(move || other.file(dir, "f", 0o600));
        let waited = (0..100_000).all(|_| {
            std::thread::yield_now();
            !making.is_finished()
        });
        tell.send((making, waited)).unwrap();
    }));
    let removed = user(&volume, OWNER).unlink(dir, b"f");
    assert_eq!(kind(removed), Some(Kind::NotFound));
    let (making, waited) = told.recv().unwrap();
    assert!(waited);
    let node = making.join().unwrap();
    let found = user(&volume, OWNER).lookup(dir, b"f").unwrap();
    assert_eq!((found.node, found.attr.uid), (node, OTHER));
}

/// Makes root user 1002.
struct NoRoot(volary_core::Fs);

impl volary_core::Layer for NoRoot {
    fn below(&self) -> &volary_core::Fs {
        &self.0
    }
    fn caller(&self, cred: &Cred) -> Option<Cred> {
        cred.is_root().then(|| Cred::new(OTHER, OTHER))
    }
}

#[test]
fn a_caller_is_who_the_volume_says() {
    let below = volume();
    let secret = root(&below).dir(below.fs().root(), "secret", 0o700);
    let volume = crate::volume_of(std::sync::Arc::new(NoRoot(below.fs().clone())), false);
    let squashed = root(&volume);
    assert_eq!(squashed.cred().uid, OTHER);
    assert_eq!(kind(squashed.find(secret, "x")), Some(Kind::Access));
    let node = squashed.dir(squashed.root(), "mine", 0o755);
    assert_eq!(squashed.getattr(node).unwrap().uid, OTHER);
    assert_eq!(user(&volume, OWNER).cred().uid, OWNER);
}
