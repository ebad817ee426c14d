//! The NFS server's programs, called by whoever reaches the port.
//!
//! An input picks what some client once sent (`seeds/nfs_calls`: records with two
//! bytes of length before each) and changes bytes of it; or it is such records
//! itself. The volume, the key and the numbers of nodes are those of the
//! recording, so that its file handles are good.

use crate::heap;
use crate::input::Input;
use std::net::SocketAddr;
use std::sync::Arc;
use volary_core::Time;
use volary_mem::{Mem, MemOptions};
use volary_nfs::{ExportOptions, Output, Owner, Programs, ServeOptions, Squash, Way};
use volary_session::{Commit, Volume, VolumeOptions};

/// What clients sent.
const RECORDED: [&[u8]; 3] = [
    include_bytes!("../seeds/nfs_calls/all-procedures"),
    include_bytes!("../seeds/nfs_calls/libnfs"),
    include_bytes!("../seeds/nfs_calls/linux"),
];

/// How much memory a whole input may take.
const MEMORY: usize = 32 << 20;
/// The longest answer: the largest READ, and its head.
const ANSWER_MAX: usize = (1 << 20) + 1024;

/// Calls by a hostile client.
pub fn calls(input: &[u8]) {
    heap::limit(MEMORY);
    let mut input = Input::new(input);
    let bytes = match RECORDED.get(usize::from(input.byte() % 4)) {
        Some(recorded) => changed(recorded, &mut input),
        None => input.bytes(usize::MAX).to_vec(),
    };
    let (volume, programs) = programs();
    for peer in [1000, 1001] {
        call_all(&programs, &bytes, peer);
    }
    programs.tick();
    programs.end();
    assert_eq!(programs.defects(), 0, "a call ended in a panic");
    assert_eq!(volume.open_count(), 0, "opens that nobody closed");
    assert_eq!(volume.waiting_count(), 0, "waits that did not end");
    heap::limit(usize::MAX);
}

fn changed(recorded: &[u8], input: &mut Input<'_>) -> Vec<u8> {
    let mut bytes = recorded.to_vec();
    while !input.is_empty() {
        let (place, value) = (usize::from(input.short()), input.byte());
        let place = place % bytes.len();
        if let Some(byte) = bytes.get_mut(place) {
            *byte = value;
        }
    }
    bytes
}

fn call_all(programs: &Arc<Programs>, bytes: &[u8], port: u16) {
    let local = SocketAddr::from(([127, 0, 0, 1], 2049));
    let way = Way {
        peer: SocketAddr::from(([127, 0, 0, 1], port)),
        local,
        only_portmap: false,
        owner: Arc::new(Owner::Trusted),
    };
    let mut out = Output::new();
    let mut rest = bytes;
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(after.len());
        let (record, after) = after.split_at(len);
        rest = after;
        out.clear();
        programs.answer(&way, record, &mut out);
        assert!(out.bytes().len() <= ANSWER_MAX, "an answer of any length");
    }
}

/// As the recordings were made.
pub(crate) fn programs() -> (Arc<Volume>, Arc<Programs>) {
    let mem = Mem::attach(MemOptions::sized(1 << 30), Time::EPOCH);
    let fs = mem.unwrap_or_else(|e| panic!("{e}"));
    let how = VolumeOptions {
        commit: Commit::WhenAsked,
        ..VolumeOptions::new("test", || Time::EPOCH)
    };
    let volume = Volume::new(fs, how);
    let export = ExportOptions {
        squash: Squash::None,
        ..ExportOptions::new("test")
    };
    let listen = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut options = ServeOptions::new(listen, [7; 16], 1_000_003);
    // Nobody is called back there.
    options.client_portmap = 1;
    let programs = Programs::new(vec![(Arc::clone(&volume), export)], &options);
    (volume, programs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_still_fits() {
        // Answers that are too short are those of handles that are none.
        for recorded in RECORDED {
            let (volume, programs) = programs();
            let before = volume.session(volary_core::Cred::root());
            let empty = before.getattr(before.root()).map(|a| a.change);
            call_all(&programs, recorded, 1000);
            let after = before.getattr(before.root()).map(|a| a.change);
            assert_ne!(empty.ok(), after.ok(), "nothing was changed");
            programs.end();
        }
    }
}
