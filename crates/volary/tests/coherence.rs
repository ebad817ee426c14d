//! Clients of FUSE, SMB and NFS lock, write, lease, rename and delete the same
//! files, one step after another; every answer, and what every client sees and
//! keeps, is compared with a model. A sequence that tells the two apart is shrunk
//! and printed with the command that runs its seed again.
//!
//! Needs `/dev/fuse` and the right to mount: without them the tests say so and
//! pass, but fail with `CI` set.

#[path = "coherence/fuse.rs"]
mod fuse;
#[path = "coherence/grace.rs"]
mod grace;
#[path = "coherence/kept.rs"]
mod kept;
#[path = "coherence/locks.rs"]
mod locks;
#[path = "coherence/model.rs"]
mod model;
#[path = "coherence/nfs.rs"]
mod nfs;
#[path = "coherence/op.rs"]
mod op;
#[path = "coherence/run.rs"]
mod run;
mod servers;
#[path = "coherence/smb.rs"]
mod smb;
#[path = "coherence/volumes.rs"]
mod volumes;
#[path = "coherence/world.rs"]
mod world;

use volumes::Kind;

#[test]
fn clients_of_a_volume_in_memory_see_each_other() {
    run::sequences(Kind::Mem, 0..12);
}

#[test]
fn clients_of_a_fat_volume_see_each_other() {
    run::sequences(Kind::Fat, 100..112);
}

#[test]
fn clients_of_a_directory_of_the_host_see_each_other() {
    run::sequences(Kind::Host, 200..212);
}

#[test]
fn clients_agree_after_a_device_has_failed_under_all() {
    run::episodes(300..308);
}
