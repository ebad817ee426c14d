//! Sessions over the in-memory driver.

mod access;
mod ahead;
mod asking;
mod attributes;
mod chaos;
mod committing;
mod deletion;
mod detach;
mod events;
mod exact_locks;
mod grace;
mod lease_names;
mod lease_waits;
mod leases;
mod locks;
mod model;
mod names;
mod opens;
mod replacing;
mod sharing;
mod stress;
mod walk;
mod xattrs;

use std::sync::Arc;
use volary_core::{Caps, Create, Cred, Fs, Kind, Mode, NodeId, OpenId, Result, SetAttr, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Session, Volume, VolumeOptions};

/// The owner of what tests make, in group 100; a member of that group; and one
/// who is neither.
const OWNER: u32 = 1000;
const MEMBER: u32 = 1001;
const OTHER: u32 = 1002;
const GROUP: u32 = 100;

const NOW: Time = Time::from_secs(1_000_000);

fn volume_with(options: MemOptions, trust: bool) -> Arc<Volume> {
    volume_of(Mem::attach(options, Time::EPOCH).unwrap(), trust)
}

fn volume_of(fs: Fs, trust: bool) -> Arc<Volume> {
    let options = VolumeOptions {
        trust,
        ..VolumeOptions::new("test", || NOW)
    };
    Volume::new(fs, options)
}

/// Returns an in-memory volume whose root anybody may write.
fn volume() -> Arc<Volume> {
    let options = MemOptions {
        dir_mode: 0o777,
        ..MemOptions::default()
    };
    volume_with(options, false)
}

fn without(bits: u32) -> MemOptions {
    let mut options = MemOptions::default();
    options.caps = options.caps.without(bits);
    options
}

fn cred(uid: u32) -> Cred {
    let group = match uid {
        0 => 0,
        OWNER | MEMBER => GROUP,
        other => other,
    };
    Cred::new(uid, group)
}

fn root(volume: &Arc<Volume>) -> Session {
    volume.session(Cred::root())
}

fn user(volume: &Arc<Volume>, uid: u32) -> Session {
    volume.session(cred(uid))
}

/// Returns what a result says, for comparing many at once.
fn kind<T>(result: Result<T>) -> Option<Kind> {
    result.err().map(|e| e.kind())
}

/// Short ways to make things in the root.
trait Make {
    fn dir(&self, dir: NodeId, name: &str, mode: u32) -> NodeId;
    fn file(&self, dir: NodeId, name: &str, mode: u32) -> NodeId;
    fn open_file(&self, dir: NodeId, name: &str) -> (NodeId, OpenId);
    fn find(&self, dir: NodeId, name: &str) -> Result<NodeId>;
}

impl Make for Session {
    fn dir(&self, dir: NodeId, name: &str, mode: u32) -> NodeId {
        let made = self.mkdir(dir, name.as_bytes(), &SetAttr::mode(mode));
        made.unwrap().node
    }

    fn file(&self, dir: NodeId, name: &str, mode: u32) -> NodeId {
        let set = SetAttr::mode(mode);
        let made = self.create(dir, name.as_bytes(), Create::New, Mode::Write, &set);
        let (entry, open) = made.unwrap();
        self.close(open).unwrap();
        entry.node
    }

    fn open_file(&self, dir: NodeId, name: &str) -> (NodeId, OpenId) {
        let set = SetAttr::mode(0o666);
        let made = self.create(dir, name.as_bytes(), Create::Open, Mode::ReadWrite, &set);
        let (entry, open) = made.unwrap();
        (entry.node, open)
    }

    fn find(&self, dir: NodeId, name: &str) -> Result<NodeId> {
        Ok(self.lookup(dir, name.as_bytes())?.node)
    }
}

#[test]
fn a_session_knows_its_volume() {
    let volume = volume();
    let session = user(&volume, OWNER);
    assert_eq!(session.cred().uid, OWNER);
    assert_eq!(session.volume().name(), "test");
    assert!(session.caps().has(Caps::WRITE));
    assert_eq!(session.root(), volume.fs().root());
    assert_eq!(session.statfs().unwrap().size, 1 << 30);
    session.sync().unwrap();
    volume.sync().unwrap();
}
