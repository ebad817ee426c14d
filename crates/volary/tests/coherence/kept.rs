//! What a client keeps, and the others' changes that take it away: the kernel's names,
//! absences, attributes, pages and listings behind the mount, an SMB client's lease, locks,
//! and news of a directory. Each is asked for twice: as it is, and with a server that is kept
//! apart from the others' session, where it must be missed.

use crate::fuse::can_mount;
use crate::model::Model;
use crate::op::{No, Op, PATHS, Seen, Share, Who};
use crate::volumes::Kind;
use crate::world::{Apart, World, rest, until};
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use volary_testkit::rng::pattern;

const A: usize = 0;
const B: usize = 1;
const IN_D: usize = 2;
const LEN: usize = 5000;

/// Something that the kernel keeps.
struct Kept {
    what: &'static str,
    /// Made through the mount, so that the kernel knows it.
    before: &'static [Op],
    /// Asked for by the mount's user, before and after; `true` once it is as changed.
    seen: fn(&World) -> bool,
    change: fn(Who) -> Op,
}

const WRITTEN: &[Op] = &[Op::Create(Who::Fuse, A), Op::Write(Who::Fuse, A, 0, LEN, 1)];

/// The kernel looks anew when a directory is opened: it is right without news, too.
const LISTING: &str = "a listing";

const KEPT: [Kept; 7] = [
    Kept {
        what: "that there is no such name",
        before: &[],
        seen: |world| world.fuse.seen(A).is_some(),
        change: |who| Op::Create(who, A),
    },
    Kept {
        what: "a name",
        before: &[Op::Create(Who::Fuse, A)],
        seen: |world| world.fuse.seen(A).is_none(),
        change: |who| Op::Remove(who, A),
    },
    Kept {
        what: "a name, and that there is no other",
        before: &[Op::Create(Who::Fuse, A)],
        seen: |world| {
            let (old, new) = (world.fuse.seen(A), world.fuse.seen(IN_D));
            old.is_none() && new.is_some()
        },
        change: |who| Op::Rename(who, A, IN_D),
    },
    Kept {
        what: "attributes",
        before: WRITTEN,
        seen: |world| world.fuse.seen(A).is_some_and(|(_, size)| size == 123),
        change: |who| Op::Resize(who, A, 123),
    },
    Kept {
        what: "pages, at the next open",
        before: WRITTEN,
        seen: |world| world.fuse.read(A) == Ok(Seen::Data(pattern(2, LEN))),
        change: |who| Op::Write(who, A, 0, LEN, 2),
    },
    Kept {
        what: "pages, of an open file",
        before: &[
            Op::Create(Who::Fuse, A),
            Op::Write(Who::Fuse, A, 0, LEN, 1),
            Op::Hold(A),
        ],
        seen: |world| world.fuse.held_read(0) == Ok(Seen::Data(pattern(2, LEN))),
        change: |who| Op::Write(who, A, 0, LEN, 2),
    },
    Kept {
        what: LISTING,
        before: &[Op::Create(Who::Fuse, A)],
        seen: |world| match world.fuse.list(A) {
            Ok(Seen::Names(names)) => names.iter().any(|name| name == PATHS[B]),
            answer => panic!("{answer:?}"),
        },
        change: |who| Op::Create(who, B),
    },
];

fn act(world: &mut World, op: Op) {
    let answer = world.act(op, &Model::new(0));
    answer.unwrap_or_else(|no| panic!("{op:?}: {no:?}"));
}

/// Does it all; whether the change is seen in the end, for which a long time is waited
/// where it is expected, and not at all long where it is not.
fn comes_through(world: &mut World, kept: &Kept, who: Who, expected: bool) -> bool {
    kept.before.iter().for_each(|op| act(world, *op));
    for _ in 0..2 {
        assert!(!(kept.seen)(world), "{} before the change", kept.what);
    }
    act(world, (kept.change)(who));
    if expected {
        let what = format!(
            "the mount's user sees that {who:?} has changed: {}",
            kept.what
        );
        until(&what, || (kept.seen)(world));
        return true;
    }
    rest(200);
    (kept.seen)(world)
}

#[test]
fn what_the_kernel_keeps_is_taken_from_it_by_others_changes() {
    if !can_mount() {
        return;
    }
    for kind in [Kind::Mem, Kind::Fat, Kind::Host] {
        for kept in &KEPT {
            for who in [Who::Smb(0), Who::Nfs(0)] {
                let mut world = World::new(kind);
                assert!(comes_through(&mut world, kept, who, true));
            }
        }
    }
}

#[test]
fn a_mount_that_is_not_told_is_caught() {
    if !can_mount() {
        return;
    }
    for kept in KEPT.iter().filter(|kept| kept.what != LISTING) {
        for who in [Who::Smb(0), Who::Nfs(0)] {
            let mut world = World::with(Kind::Mem, Apart::Mount);
            let seen = comes_through(&mut world, kept, who, false);
            assert!(!seen, "without news the kernel forgets: {}", kept.what);
        }
    }
}

/// Another process that has the file mapped, until it sees it change.
fn mapped(world: &World) -> Child {
    const SCRIPT: &str = "import mmap, sys, time
with open(sys.argv[1], 'rb') as file:
    pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
    first = pages[:]
    print('mapped', flush=True)
    while pages[:] == first:
        time.sleep(0.01)
";
    let mut python = Command::new("python3");
    python.args(["-c", SCRIPT]).arg(world.fuse.at(A));
    let mut child = python.stdout(Stdio::piped()).spawn().expect("python3");
    let mut line = String::new();
    let out = child.stdout.take().expect("its output");
    BufReader::new(out).read_line(&mut line).expect("a line");
    assert_eq!(line, "mapped\n");
    child
}

#[test]
fn what_a_process_has_mapped_changes_under_it() {
    if !can_mount() {
        return;
    }
    for apart in [Apart::Nobody, Apart::Mount] {
        for who in [Who::Smb(0), Who::Nfs(0)] {
            let mut world = World::with(Kind::Mem, apart);
            WRITTEN.iter().for_each(|op| act(&mut world, *op));
            let mut child = mapped(&world);
            act(&mut world, Op::Write(who, A, 0, LEN, 2));
            if apart == Apart::Nobody {
                until("the mapped file changes", || {
                    child.try_wait().expect("a child").is_some()
                });
            } else {
                rest(200);
                assert!(child.try_wait().expect("a child").is_none());
                child.kill().expect("killed");
                child.wait().expect("ended");
            }
        }
    }
}

const LEASED: Share = Share {
    wants: 3,
    allows: 7,
    lease: Some(7),
};

#[test]
fn a_lease_does_not_outlast_a_write_by_others() {
    if !can_mount() {
        return;
    }
    let writers = [
        (Who::Nfs(0), Apart::Nobody),
        (Who::Nfs(0), Apart::Nfs),
        (Who::Fuse, Apart::Nobody),
        (Who::Fuse, Apart::Mount),
    ];
    for (who, apart) in writers {
        let mut world = World::with(Kind::Mem, apart);
        act(&mut world, Op::Create(Who::Smb(0), A));
        act(&mut world, Op::Write(Who::Smb(0), A, 0, LEN, 1));
        let leased = world.smb[0].open(A, LEASED, Some(0), 0);
        assert_eq!(leased, Ok(Seen::Lease(7)));
        assert_eq!(world.smb[0].held_read(0), Ok(Seen::Data(pattern(1, LEN))));
        act(&mut world, Op::Write(who, A, 0, LEN, 2));
        let reads = |seed| world.smb[0].held_read(0) == Ok(Seen::Data(pattern(seed, LEN)));
        match apart {
            // The break is on its way when the write is answered.
            Apart::Nobody => until("the client reads anew", || reads(2)),
            _ => {
                rest(200);
                assert!(reads(1), "{who:?} breaks leases from apart");
            }
        }
    }
}

#[test]
fn a_lock_taken_through_the_mount_is_in_smb_s_way() {
    if !can_mount() {
        return;
    }
    for apart in [Apart::Nobody, Apart::Locks] {
        let mut world = World::with(Kind::Mem, apart);
        act(&mut world, Op::Create(Who::Fuse, A));
        act(&mut world, Op::Hold(A));
        assert_eq!(world.fuse.lock(0, true), Ok(Seen::Nothing));
        let plain = Share {
            lease: None,
            ..LEASED
        };
        assert_eq!(world.smb[0].open(A, plain, Some(0), 1), Ok(Seen::Nothing));
        let locked = world.smb[0].lock(1, 0, true);
        match apart {
            Apart::Nobody => assert_eq!(locked, Err(No::Locked)),
            _ => assert_eq!(
                locked,
                Ok(Seen::Nothing),
                "a lock in the kernel is not seen"
            ),
        }
    }
}

#[test]
fn a_client_of_smb_is_told_of_changes_by_others() {
    if !can_mount() {
        return;
    }
    let who_made = [
        (Who::Nfs(0), Apart::Nobody),
        (Who::Nfs(0), Apart::Nfs),
        (Who::Fuse, Apart::Nobody),
        (Who::Fuse, Apart::Mount),
    ];
    for (who, apart) in who_made {
        let mut world = World::with(Kind::Mem, apart);
        let watching = world.smb[0].client.watch("").expect("a watch");
        world.smb[0].client.echo().expect("an echo");
        // It may not be there yet at the first change.
        let mut there = false;
        let mut change = |world: &mut World| {
            let op = if there { Op::Remove } else { Op::Create };
            act(world, op(who, A));
            there = !there;
        };
        if apart == Apart::Nobody {
            until("the client is told", || {
                change(&mut world);
                rest(20);
                world.smb[0].client.was_told(&watching)
            });
        } else {
            for _ in 0..6 {
                change(&mut world);
                rest(50);
            }
            let told = world.smb[0].client.was_told(&watching);
            assert!(!told, "told of what {who:?} does apart");
        }
    }
}
