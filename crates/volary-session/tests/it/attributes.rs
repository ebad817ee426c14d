//! Who may change attributes, and what changes beside.

use crate::{GROUP, MEMBER, Make, NOW, OTHER, OWNER, kind, root, user, volume, volume_with};
use std::sync::Arc;
use volary_core::{
    Caps, Create, Cred, FileKind, Kind, Mode, NodeId, RenameFlags, SetAttr, SetTime, Time,
};
use volary_session::{Session, Volume};

fn chown(uid: Option<u32>, gid: Option<u32>) -> SetAttr {
    SetAttr {
        uid,
        gid,
        ..SetAttr::default()
    }
}

fn times(atime: Option<SetTime>, mtime: Option<SetTime>) -> SetAttr {
    SetAttr {
        atime,
        mtime,
        ..SetAttr::default()
    }
}

/// Returns a file of `OWNER` with a mode, set by root so that all bits stay.
fn file(volume: &Arc<Volume>, name: &str, mode: u32) -> NodeId {
    let owner = user(volume, OWNER);
    let node = owner.file(owner.root(), name, 0o600);
    root(volume).setattr(node, &SetAttr::mode(mode)).unwrap();
    node
}

fn mode_of(session: &Session, node: NodeId) -> u32 {
    session.getattr(node).unwrap().mode
}

/// Who may make which change to a file of `OWNER` with mode 0666.
#[test]
fn attributes_are_changed_by_the_owner_and_root() {
    let volume = volume();
    let node = file(&volume, "f", 0o666);
    let now = Some(SetTime::Now);
    let then = Some(SetTime::To(Time::from_secs(5)));
    let no = Some(Kind::NotPermitted);
    for (set, by_owner, by_member) in [
        (SetAttr::mode(0o666), None, no),
        (chown(Some(OWNER), None), None, no),
        (chown(Some(OTHER), None), no, no),
        (chown(None, Some(GROUP)), None, no),
        (chown(None, Some(OTHER)), no, no),
        (times(then, None), None, no),
        (times(None, then), None, no),
        (times(now, None), None, no),
        (times(now, then), None, no),
        (times(now, now), None, None),
        (SetAttr::size(3), None, None),
        (SetAttr::default(), None, None),
    ] {
        root(&volume).setattr(node, &set).unwrap();
        root(&volume)
            .setattr(node, &SetAttr::owned(0o666, OWNER, GROUP))
            .unwrap();
        let owner = user(&volume, OWNER).setattr(node, &set);
        assert_eq!(kind(owner), by_owner, "owner: {set:?}");
        let member = user(&volume, MEMBER).setattr(node, &set);
        assert_eq!(kind(member), by_member, "member: {set:?}");
    }
}

#[test]
fn both_times_to_now_and_a_size_need_write_access_of_others() {
    let volume = volume();
    let node = file(&volume, "f", 0o644);
    let now = Some(SetTime::Now);
    let other = user(&volume, OTHER);
    assert_eq!(
        kind(other.setattr(node, &times(now, now))),
        Some(Kind::Access)
    );
    assert_eq!(
        kind(other.setattr(node, &SetAttr::size(0))),
        Some(Kind::Access)
    );
    let readable = file(&volume, "r", 0o444);
    let owner = user(&volume, OWNER);
    let attr = owner.setattr(readable, &times(now, now)).unwrap();
    assert_eq!(attr.mtime, NOW);
    let cut = owner.setattr(readable, &SetAttr::size(0));
    assert_eq!(kind(cut), Some(Kind::Access));
}

#[test]
fn the_owner_gives_a_file_to_any_of_their_groups() {
    let volume = volume();
    let node = file(&volume, "f", 0o644);
    let mut cred = Cred::new(OWNER, GROUP);
    cred.groups = Arc::from([200]);
    let session = volume.session(cred);
    assert_eq!(
        session.setattr(node, &chown(None, Some(200))).unwrap().gid,
        200
    );
    let refused = session.setattr(node, &chown(None, Some(201)));
    assert_eq!(kind(refused), Some(Kind::NotPermitted));
}

/// set-uid and set-gid after a change by somebody, for the modes where it shows.
#[test]
fn a_new_owner_or_group_takes_set_uid_and_set_gid_from_files() {
    let volume = volume();
    for (before, after) in [
        (0o6755, 0o0755),
        (0o4644, 0o0644),
        (0o2755, 0o0755),
        (0o2745, 0o2745),
        (0o7777, 0o1777),
    ] {
        for uid in [OWNER, 0] {
            let node = file(&volume, "f", before);
            let session = user(&volume, uid);
            session.setattr(node, &chown(None, Some(GROUP))).unwrap();
            assert_eq!(mode_of(&session, node), after, "{before:o} by {uid}");
            root(&volume).unlink(session.root(), b"f").unwrap();
        }
    }
    let owner = user(&volume, OWNER);
    let dir = owner.dir(owner.root(), "d", 0o755);
    root(&volume).setattr(dir, &SetAttr::mode(0o6755)).unwrap();
    owner.setattr(dir, &chown(Some(OWNER), None)).unwrap();
    assert_eq!(mode_of(&owner, dir), 0o6755);
}

#[test]
fn set_gid_is_not_set_by_one_outside_the_group() {
    let volume = volume();
    let node = file(&volume, "f", 0o644);
    root(&volume).setattr(node, &chown(None, Some(7))).unwrap();
    let owner = user(&volume, OWNER);
    let attr = owner.setattr(node, &SetAttr::mode(0o6755)).unwrap();
    assert_eq!(attr.mode, 0o4755);
    let attr = root(&volume).setattr(node, &SetAttr::mode(0o6755)).unwrap();
    assert_eq!(attr.mode, 0o6755);
}

#[test]
fn writing_and_cutting_take_set_uid_and_set_gid_but_not_from_roots_hand() {
    let volume = volume();
    for uid in [MEMBER, 0] {
        let node = file(&volume, "f", 0o6777);
        let session = user(&volume, uid);
        let expected = if uid == 0 { 0o6777 } else { 0o0777 };
        session.setattr(node, &SetAttr::size(10)).unwrap();
        assert_eq!(mode_of(&session, node), expected);

        let open = session.open(node, Mode::Write).unwrap();
        for _ in 0..2 {
            // Set while it is open, it is found all the same.
            let set_id = SetAttr::mode(0o6777);
            root(&volume).setattr(node, &set_id).unwrap();
            session.write(open, Some(0), b"x").unwrap();
            assert_eq!(mode_of(&session, node), expected);
        }
        session.close(open).unwrap();
        root(&volume).unlink(session.root(), b"f").unwrap();
    }
}

#[test]
fn a_size_set_through_an_open_needs_only_that_it_writes() {
    let volume = volume();
    let node = file(&volume, "f", 0o600);
    let owner = user(&volume, OWNER);
    let open = owner.open(node, Mode::Write).unwrap();
    let reading = owner.open(node, Mode::Read).unwrap();
    owner.setattr(node, &SetAttr::mode(0)).unwrap();
    let cut = owner.setattr(node, &SetAttr::size(1));
    assert_eq!(kind(cut), Some(Kind::Access));
    assert_eq!(owner.setattr_open(open, &SetAttr::size(5)).unwrap().size, 5);
    assert_eq!(owner.getattr_open(open).unwrap().size, 5);
    let cut = owner.setattr_open(reading, &SetAttr::size(1));
    assert_eq!(kind(cut), Some(Kind::Access));
    owner.setattr_open(reading, &SetAttr::mode(0o600)).unwrap();
}

#[test]
fn sizes_are_for_files_and_within_the_volumes_bound() {
    let volume = volume();
    let root = root(&volume);
    let top = root.root();
    let fifo = root
        .mknod(top, b"p", FileKind::Fifo, 0, &SetAttr::mode(0o666))
        .unwrap();
    let node = root.file(top, "f", 0o644);
    let too_big = SetAttr::size(root.caps().size_max + 1);
    assert_eq!(
        kind(root.setattr(top, &SetAttr::size(0))),
        Some(Kind::IsDir)
    );
    assert_eq!(
        kind(root.setattr(fifo.node, &SetAttr::size(0))),
        Some(Kind::Invalid)
    );
    assert_eq!(kind(root.setattr(node, &too_big)), Some(Kind::TooBig));
}

#[test]
fn new_nodes_belong_to_the_caller_or_to_the_group_of_a_set_gid_directory() {
    let volume = volume();
    let (root, owner) = (root(&volume), user(&volume, OWNER));
    let plain = root.dir(root.root(), "plain", 0o777);
    let inherits = root.dir(root.root(), "inherits", 0o777);
    root.setattr(inherits, &SetAttr::owned(0o2777, 0, 77))
        .unwrap();
    let set = SetAttr::mode(0o2755);
    for (dir, gid, dir_mode, file_mode) in [
        (plain, GROUP, 0o2755, 0o2755),
        (inherits, 77, 0o2755, 0o0755),
    ] {
        let made = owner.create(dir, b"f", Create::New, Mode::Write, &set);
        let file = made.unwrap().0.attr;
        assert_eq!((file.uid, file.gid, file.mode), (OWNER, gid, file_mode));
        let sub = owner.mkdir(dir, b"d", &set).unwrap().attr;
        assert_eq!((sub.uid, sub.gid, sub.mode), (OWNER, gid, dir_mode));
        let link = owner
            .symlink(dir, b"l", b"x", &SetAttr::mode(0o777))
            .unwrap();
        assert_eq!((link.attr.uid, link.attr.gid), (OWNER, gid));
    }
    let sub = owner.mkdir(inherits, b"e", &SetAttr::mode(0o755)).unwrap();
    assert_eq!(sub.attr.mode, 0o2755);
}

#[test]
fn only_root_makes_nodes_for_others() {
    let volume = volume();
    let owner = user(&volume, OWNER);
    let top = owner.root();
    for set in [
        SetAttr::owned(0o755, OTHER, GROUP),
        SetAttr::owned(0o755, OWNER, OTHER),
    ] {
        let made = owner.mkdir(top, b"d", &set);
        assert_eq!(kind(made), Some(Kind::NotPermitted));
        let made = root(&volume).mkdir(top, b"d", &set).unwrap().attr;
        assert_eq!((Some(made.uid), Some(made.gid)), (set.uid, set.gid));
        root(&volume).rmdir(top, b"d").unwrap();
    }
}

#[test]
fn a_trusting_volume_keeps_the_effects_that_go_with_a_change() {
    let options = volary_mem::MemOptions::default();
    let volume = volume_with(options, true);
    let owner = user(&volume, OWNER);
    let top = owner.root();
    let inherits = SetAttr::owned(0o2777, 0, 77);
    root(&volume).setattr(top, &inherits).unwrap();
    let node = owner.file(top, "f", 0o644);
    assert_eq!(owner.getattr(node).unwrap().gid, 77);
    root(&volume).setattr(node, &SetAttr::mode(0o4755)).unwrap();
    let open = owner.open(node, Mode::Write).unwrap();
    owner.write(open, None, b"x").unwrap();
    assert_eq!(mode_of(&owner, node), 0o755);
}

#[test]
fn without_modes_nothing_is_inherited_or_taken() {
    let mut options = crate::without(Caps::MODES);
    (options.dir_mode, options.file_mode) = (0o2777, 0o4777);
    let volume = volume_with(options, false);
    let other = user(&volume, OTHER);
    let node = other.file(other.root(), "f", 0o600);
    let open = other.open(node, Mode::Write).unwrap();
    other.write(open, None, b"x").unwrap();
    let attr = other.getattr(node).unwrap();
    assert_eq!((attr.mode, attr.uid, attr.gid), (0o4777, 0, 0));
    let (top, replace) = (other.root(), RenameFlags::REPLACE);
    other.rename(top, b"f", top, b"g", replace).unwrap();
}
