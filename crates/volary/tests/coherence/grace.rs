//! A time of grace on the volume, as clients of each server meet it: whoever does not wait
//! is told that another has the lock, and whoever waits has it when the time is over.

use crate::fuse::can_mount;
use crate::model::Model;
use crate::op::{No, Op, Seen, Share, Who};
use crate::volumes::Kind;
use crate::world::{World, until};
use std::thread;

const A: usize = 0;
const B: usize = 1;
const OF_SMB: u64 = 1;
const OF_FUSE: u64 = 2;
const FIRST: u64 = 0;

/// Returns a file for SMB and NFS, and one for the mount, whose locks are of all bytes.
fn scene() -> World {
    let mut world = World::new(Kind::Mem);
    let plain = Share {
        wants: 3,
        allows: 7,
        lease: None,
    };
    let model = Model::new(0);
    for name in [A, B] {
        let made = world.act(Op::Create(Who::Nfs(0), name), &model);
        assert_eq!(made, Ok(Seen::Nothing));
    }
    let opened = world.smb[0].open(A, plain, Some(0), OF_SMB);
    assert_eq!(opened, Ok(Seen::Nothing));
    assert_eq!(world.fuse.hold(B, OF_FUSE), Ok(Seen::Nothing));
    world
}

#[test]
fn no_client_is_given_a_lock_in_a_time_of_grace() {
    if !can_mount() {
        return;
    }
    let mut world = scene();
    let grace = world.ground.volume.grace();
    for alone in [true, false] {
        let locked = Err(No::Locked);
        assert_eq!(world.smb[0].lock(OF_SMB, FIRST, alone), locked);
        assert_eq!(world.fuse.lock(OF_FUSE, alone), locked);
        assert_eq!(world.nfs[0].lock(A, FIRST + 1, alone), locked);
    }
    drop(grace);
    let given = Ok(Seen::Nothing);
    assert_eq!(world.smb[0].lock(OF_SMB, FIRST, true), given);
    assert_eq!(world.fuse.lock(OF_FUSE, true), given);
    assert_eq!(world.nfs[0].lock(A, FIRST + 1, true), given);
}

#[test]
fn those_who_wait_have_their_locks_when_a_time_of_grace_is_over() {
    if !can_mount() {
        return;
    }
    let world = scene();
    let volume = &world.ground.volume;
    let grace = volume.grace();
    let (smb, fuse) = (&world.smb[0], &world.fuse);
    thread::scope(|scope| {
        let of_smb = scope.spawn(|| smb.lock_waiting(OF_SMB, FIRST));
        let of_fuse = scope.spawn(|| fuse.lock_waiting(OF_FUSE));
        until("both wait", || volume.waiting_count() == 2);
        assert!(!of_smb.is_finished() && !of_fuse.is_finished());
        drop(grace);
        assert_eq!(of_smb.join().unwrap(), Ok(Seen::Nothing));
        assert_eq!(of_fuse.join().unwrap(), Ok(Seen::Nothing));
    });
}
