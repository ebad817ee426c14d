//! Volumes that check access themselves are asked.

use crate::{OTHER, cred, kind};
use parking_lot::Mutex;
use std::sync::Arc;
use volary_core::{
    Access, Caps, Create, Ctx, Fs, Kind, Layer, Mode, NodeId, Result, SetAttr, Time,
};
use volary_mem::{Mem, MemOptions};
use volary_session::{Follow, Volume, VolumeOptions};

/// Grants what it is told to, to everybody, and notes what it was asked.
struct Asks {
    below: Fs,
    grants: Mutex<Access>,
    asked: Mutex<Vec<(u32, Access)>>,
}

impl Layer for Asks {
    fn below(&self) -> &Fs {
        &self.below
    }
    fn caps(&self) -> Caps {
        self.below.caps().with(Caps::CHECKS_ACCESS)
    }
    fn access(&self, cx: &Ctx<'_>, _: NodeId, want: Access) -> Result<Access> {
        self.asked.lock().push((cx.cred.uid, want));
        Ok(Access(want.0 & self.grants.lock().0))
    }
}

#[test]
fn the_volume_is_asked_whatever_the_modes_say() {
    let options = MemOptions {
        dir_mode: 0,
        ..MemOptions::default()
    };
    let asks = Arc::new(Asks {
        below: Mem::attach(options, Time::EPOCH).unwrap(),
        grants: Mutex::new(Access(7)),
        asked: Mutex::default(),
    });
    let options = VolumeOptions {
        name: "asks".into(),
        clock: || Time::EPOCH,
        trust: false,
    };
    let volume = Volume::new(asks.clone(), options);
    let s = volume.session(cred(OTHER));
    let (top, set) = (s.root(), SetAttr::mode(0));
    let (entry, open) = s.create(top, b"f", Create::New, Mode::Write, &set).unwrap();
    s.close(open).unwrap();
    s.walk(b"/f", Follow::Yes).unwrap();
    s.open(entry.node, Mode::ReadWrite).unwrap();
    s.access(entry.node, Access::READ).unwrap();
    assert_eq!(
        *asks.asked.lock(),
        [
            (OTHER, Access::EXEC),
            (OTHER, Access::WRITE),
            (OTHER, Access::EXEC),
            (OTHER, Access::READ.and(Access::WRITE)),
            (OTHER, Access::READ),
        ]
    );

    *asks.grants.lock() = Access::READ;
    assert_eq!(kind(s.lookup(top, b"f")), Some(Kind::Access));
    let opened = s.open(entry.node, Mode::ReadWrite);
    assert_eq!(kind(opened), Some(Kind::Access));
    // What it does not ask for here, the volume refuses or does on its own.
    s.setattr(entry.node, &SetAttr::mode(0o4777)).unwrap();
}
