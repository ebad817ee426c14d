//! Share modes.

use crate::{Make, OTHER, kind, root, user, volume};
use volary_core::{Create, Kind, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr};
use volary_session::{Beside, OpenHow, Rights, Session, Share};

const NONE: Rights = Rights::NONE;
const R: Rights = Rights::READ;
const W: Rights = Rights::WRITE;
const D: Rights = Rights::DELETE;
const ALL: Rights = Rights::ALL;

fn share(wants: Rights, allows: Rights) -> Share {
    Share { wants, allows }
}

fn how(wants: Rights, allows: Rights) -> OpenHow {
    let mode = match (wants.has(R), wants.has(W)) {
        (_, false) => Mode::Read,
        (false, true) => Mode::Write,
        (true, true) => Mode::ReadWrite,
    };
    OpenHow::from(mode).with_share(share(wants, allows))
}

fn open(s: &Session, node: NodeId, wants: Rights, allows: Rights) -> Result<OpenId> {
    s.open(node, how(wants, allows))
}

#[test]
fn two_opens_go_together_if_each_allows_what_the_other_wants() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    for first in 0..64 {
        let (w1, a1) = (Rights(first & 7), Rights(first >> 3));
        let one = open(&s, node, w1, a1).unwrap();
        for second in 0..64 {
            let (w2, a2) = (Rights(second & 7), Rights(second >> 3));
            let expected = w1 == NONE || w2 == NONE || (a1.has(w2) && a2.has(w1));
            let two = open(&s, node, w2, a2);
            assert_eq!(two.is_ok(), expected, "{w1:?}/{a1:?} then {w2:?}/{a2:?}");
            match two {
                Ok(two) => s.close(two).unwrap(),
                Err(e) => assert_eq!(e, Kind::Sharing),
            }
        }
        s.close(one).unwrap();
    }
    assert_eq!(s.open_count_of(node), 0);
}

#[test]
fn a_posix_open_allows_all_and_is_seen() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let reader = s.open(node, Mode::Read).unwrap();
    assert_eq!(kind(open(&s, node, W, W | D)), Some(Kind::Sharing));
    let sharer = open(&s, node, R, R).unwrap();
    assert_eq!(kind(s.open(node, Mode::Write)), Some(Kind::Sharing));
    let again = s.open(node, Mode::Read).unwrap();
    assert_eq!(s.open_count_of(node), 3);
    for id in [reader, sharer, again] {
        s.close(id).unwrap();
    }
    let alone = open(&s, node, ALL, NONE).unwrap();
    assert_eq!(kind(s.open(node, Mode::Read)), Some(Kind::Sharing));
    s.close(alone).unwrap();
    s.open(node, Mode::Read).unwrap();
}

#[test]
fn a_refused_open_leaves_nothing_behind() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let node = s.file(top, "f", 0o600);
    let alone = open(&s, node, R, NONE).unwrap();
    let set = SetAttr::default();
    for _ in 0..3 {
        assert_eq!(kind(s.open(node, Mode::Read)), Some(Kind::Sharing));
        let made = s.create(top, b"f", Create::Truncate, Mode::Write, &set);
        assert_eq!(kind(made), Some(Kind::Sharing));
    }
    assert_eq!(volume.open_count(), 1);
    s.close(alone).unwrap();
    // Access is looked at before share modes, and enters nothing either.
    let refused = open(&user(&volume, OTHER), node, R, NONE);
    assert_eq!(kind(refused), Some(Kind::Access));
    assert_eq!(s.open_count_of(node), 0);
    open(&s, node, ALL, NONE).unwrap();
}

#[test]
fn what_does_not_share_deleting_keeps_its_name() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let node = s.file(top, "f", 0o644);
    s.file(top, "g", 0o644);
    let id = open(&s, node, R, R | W).unwrap();
    let replace = RenameFlags::REPLACE;
    let kept = [
        kind(s.unlink(top, b"f")),
        kind(s.rename(top, b"f", top, b"h", replace)),
        kind(s.rename(top, b"g", top, b"f", replace)),
    ];
    assert_eq!(kept, [Some(Kind::Sharing); 3]);
    s.close(id).unwrap();
    let id = open(&s, node, R, ALL).unwrap();
    s.rename(top, b"f", top, b"h", replace).unwrap();
    s.unlink(top, b"h").unwrap();
    s.close(id).unwrap();
}

#[test]
fn a_directory_that_is_open_so_is_not_removed() {
    let volume = volume();
    let s = root(&volume);
    let top = s.root();
    let dir = s.dir(top, "d", 0o755);
    let id = open(&s, dir, R, R | W).unwrap();
    assert_eq!(kind(s.rmdir(top, b"d")), Some(Kind::Sharing));
    s.close(id).unwrap();
    s.rmdir(top, b"d").unwrap();
}

#[test]
fn a_size_is_not_changed_by_name_while_writing_is_not_shared() {
    let volume = volume();
    let s = root(&volume);
    let (node, writer) = s.open_file(s.root(), "f");
    s.close(writer).unwrap();
    let id = open(&s, node, R | W, R).unwrap();
    let cut = SetAttr::size(3);
    assert_eq!(kind(s.setattr(node, &cut)), Some(Kind::Sharing));
    s.setattr_open(id, &cut).unwrap();
    s.setattr(node, &SetAttr::mode(0o600)).unwrap();
}

#[test]
fn a_bare_open_holds_no_data() {
    let volume = volume();
    let s = user(&volume, OTHER);
    let top = s.root();
    let file = root(&volume).file(top, "f", 0o000);
    let link = root(&volume)
        .symlink(top, b"l", b"f", &SetAttr::default())
        .unwrap();
    let nothing = share(NONE, NONE);
    let bare = s.open_bare(file, Some((top, b"f")), nothing).unwrap();
    assert_eq!(kind(s.read(bare, 0, &mut [0; 4])), Some(Kind::Access));
    assert_eq!(kind(s.write(bare, None, b"x")), Some(Kind::Access));
    assert_eq!(kind(s.allocate(bare, 0, 1, false)), Some(Kind::Access));
    assert_eq!(s.getattr_open(bare).unwrap().node, file);
    s.fsync(bare, false).unwrap();
    // It outlives its name.
    root(&volume).unlink(top, b"f").unwrap();
    assert_eq!(s.getattr_open(bare).unwrap().nlink, 0);
    s.close(bare).unwrap();
    let bare = s
        .open_bare(link.node, Some((top, b"l")), share(D, ALL))
        .unwrap();
    assert_eq!(s.place(bare), Some((top, b"l".to_vec())));
    s.close(bare).unwrap();
    let elsewhere = s.open_bare(link.node, Some((top, b"m")), nothing);
    assert_eq!(kind(elsewhere), Some(Kind::NotFound));
}

#[test]
fn past_the_limit_nothing_is_opened() {
    use volary_session::{Limits, Volume, VolumeOptions};
    let fs = volary_mem::Mem::attach(volary_mem::MemOptions::default(), crate::NOW).unwrap();
    let options = VolumeOptions {
        limits: Limits {
            opens: 4,
            ..Limits::default()
        },
        ..VolumeOptions::new("small", || crate::NOW)
    };
    let volume = Volume::new(fs, options);
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let opens: Vec<_> = (0..4).map(|_| s.open(node, Mode::Read).unwrap()).collect();
    assert_eq!(kind(s.open(node, Mode::Read)), Some(Kind::TooManyOpen));
    assert_eq!(kind(open(&s, node, R, ALL)), Some(Kind::TooManyOpen));
    assert_eq!(s.open_count_of(node), 4);
    s.close(opens[0]).unwrap();
    s.open(node, Mode::Read).unwrap();
}

#[test]
fn past_the_limit_nothing_is_locked_and_nobody_waits() {
    use volary_core::Cancel;
    use volary_session::{Limits, LockKind, Range, Volume, VolumeOptions, Wait};
    let fs = volary_mem::Mem::attach(volary_mem::MemOptions::default(), crate::NOW).unwrap();
    let options = VolumeOptions {
        limits: Limits {
            locks: 3,
            waiting: 0,
            ..Limits::default()
        },
        ..VolumeOptions::new("small", || crate::NOW)
    };
    let volume = Volume::new(fs, options);
    let s = root(&volume);
    let (_, one) = s.open_file(s.root(), "f");
    let (_, two) = s.open_file(s.root(), "g");
    let never = Cancel::new();
    let lock = |open, at, wait| kind(s.lock(open, 1, Range::new(at, 1), LockKind::Shared, wait));
    // Locks that touch are one.
    for (open, at) in [(one, 0), (one, 1), (one, 5), (two, 9)] {
        assert_eq!(lock(open, at, Wait::No), None);
    }
    assert_eq!(lock(two, 0, Wait::No), Some(Kind::Quota));
    s.unlock(one, 1, Range::ALL).unwrap();
    assert_eq!(lock(two, 0, Wait::No), None);
    s.close(two).unwrap();
    assert_eq!(lock(one, 0, Wait::No), None);
    let alone = LockKind::Exclusive;
    let wants = s.lock(one, 2, Range::ALL, alone, Wait::Yes(&never));
    assert_eq!(kind(wants), Some(Kind::Busy));
}

#[test]
fn one_user_s_locks_leave_room_for_another_s() {
    use volary_core::Cred;
    use volary_session::{Limits, LockKind, Range, Volume, VolumeOptions, Wait};
    let fs = volary_mem::Mem::attach(volary_mem::MemOptions::default(), crate::NOW).unwrap();
    let options = VolumeOptions {
        limits: Limits {
            locks: 5,
            user_locks: 3,
            ..Limits::default()
        },
        ..VolumeOptions::new("small", || crate::NOW)
    };
    let volume = Volume::new(fs, options);
    let s = root(&volume);
    let other = volume.session(Cred::new(7, 7));
    let (_, one) = s.open_file(s.root(), "f");
    let (_, two) = s.open_file(s.root(), "g");
    let lock = |s: &volary_session::Session, open, owner, at| {
        let range = Range::new(at, 1);
        kind(s.lock(open, owner, range, LockKind::Shared, Wait::No))
    };
    for (open, owner, at) in [(one, 1, 0), (one, 2, 0), (two, 1, 9)] {
        assert_eq!(lock(&s, open, owner, at), None);
    }
    assert_eq!(lock(&s, one, 3, 5), Some(Kind::Quota));
    for at in [0, 3] {
        assert_eq!(lock(&other, one, 4, at), None);
    }
    assert_eq!(lock(&other, one, 4, 6), Some(Kind::Quota), "all");
    // What an owner has counts for who began, whoever gives it back.
    other.unlock(one, 1, Range::ALL).unwrap();
    assert_eq!(lock(&other, one, 4, 6), None);
    assert_eq!(lock(&other, one, 4, 8), Some(Kind::Quota));
    s.close(one).unwrap();
    for at in [0, 2] {
        assert_eq!(lock(&s, two, 5, at), None);
    }
    assert_eq!(lock(&s, two, 5, 4), Some(Kind::Quota));
    for at in [0, 2] {
        assert_eq!(lock(&other, two, 6, at), None);
    }
}

#[test]
fn a_momentary_open_is_in_nobodys_way() {
    let volume = volume();
    let s = root(&volume).with_client(volume.client());
    let other = root(&volume).with_client(volume.client());
    let node = s.file(s.root(), "f", 0o644);
    let kept = s
        .open(node, OpenHow::from(Mode::ReadWrite).momentary())
        .unwrap();
    assert_eq!(s.open_count_of(node), 0);
    s.write(kept, Some(0), b"mine").unwrap();
    let alone = open(&other, node, ALL, NONE).unwrap();
    let mut room = [0; 4];
    assert_eq!(kind(s.read(kept, 0, &mut room)), Some(Kind::Sharing));
    assert_eq!(kind(s.write(kept, Some(0), b"x")), Some(Kind::Sharing));
    assert_eq!(
        kind(s.setattr_open(kept, &SetAttr::size(0))),
        Some(Kind::Sharing)
    );
    let again = s.open(node, OpenHow::from(Mode::Read).momentary());
    assert_eq!(kind(again), Some(Kind::Sharing));
    other.close(alone).unwrap();
    assert_eq!(s.read(kept, 0, &mut room).unwrap(), 4);
    // Reading alone may be allowed.
    let reads = open(&other, node, R, R).unwrap();
    assert_eq!(s.read(kept, 0, &mut room).unwrap(), 4);
    assert_eq!(kind(s.write(kept, Some(0), b"x")), Some(Kind::Sharing));
    other.close(reads).unwrap();
    // Its own client's share is not in its way.
    let mine = open(&s, node, ALL, NONE).unwrap();
    s.write(kept, Some(0), b"more").unwrap();
    assert_eq!(kind(open(&other, node, R, ALL)), Some(Kind::Sharing));
    for id in [kept, mine] {
        s.close(id).unwrap();
    }
    assert_eq!(s.open_count_of(node), 0);
    open(&other, node, ALL, NONE).unwrap();
}

#[test]
fn an_open_in_anothers_place_does_not_mind_it_alone() {
    let volume = volume();
    let s = root(&volume);
    let node = s.file(s.root(), "f", 0o644);
    let first = open(&s, node, R, NONE).unwrap();
    let in_place = how(R | W, R).beside(Beside::Open(first));
    let writer = how(W, ALL).beside(Beside::Open(first));
    let second = s.open(node, in_place).unwrap();
    assert_eq!(
        kind(s.open(node, in_place)),
        Some(Kind::Sharing),
        "the second"
    );
    s.close(first).unwrap();
    assert_eq!(
        kind(s.open(node, writer)),
        Some(Kind::Sharing),
        "the second"
    );
    s.close(second).unwrap();
    s.open(node, writer).unwrap();
}

#[test]
fn an_open_beside_its_clients_minds_those_of_others() {
    let volume = volume();
    let one = root(&volume).with_client(volume.client());
    let two = root(&volume).with_client(volume.client());
    let nobody = root(&volume);
    let node = nobody.file(nobody.root(), "f", 0o644);
    let beside = OpenHow::from(Mode::Write).beside(Beside::Client);
    let alone = open(&one, node, W, NONE).unwrap();
    let id = one.open(node, beside).unwrap();
    assert_eq!(kind(two.open(node, beside)), Some(Kind::Sharing));
    assert_eq!(kind(nobody.open(node, beside)), Some(Kind::Sharing));
    one.close(alone).unwrap();
    let alone = open(&one, node, W, NONE).unwrap();
    one.close(alone).unwrap();
    for other in [&two, &nobody] {
        assert_eq!(kind(open(other, node, R, R)), Some(Kind::Sharing));
        let id = open(other, node, R, ALL).unwrap();
        other.close(id).unwrap();
    }
    one.close(id).unwrap();
    assert_eq!(one.open_count_of(node), 0);
}
