//! The targets for SMB: what a client can say before it has logged on, and after that.

use crate::heap;
use crate::input::Input;
use std::sync::Arc;
use std::time::Duration;
use volary_core::{Caps, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Commit, Volume, VolumeOptions};
use volary_smb::fuzzing;

/// Growth of the heap that a message may cause.
const HEAP: usize = 256 << 10;
/// Changes that a message takes.
const CHANGES_MAX: usize = 8;

/// A client that speaks every dialect, with three contexts.
const NEGOTIATE: &str = "fe534d42400001000000000000001f0000000000000000000000000000000000000000000000000000000000000000000000 \
    000000000000000000000000000024000500010000007f000000070707070707070707070707070707077000000003000000 \
    0202100200030203110300000100260000000000010020000100090909090909090909090909090909090909090909090909 \
    0909090909090909000002000a00000000000400020001000400030000000000000008000800000000000300020001000000";
/// SMB1, asking for SMB2.
const SMB1: &str = "ff534d4272000000000000000000000000000000000000000000000000000000002200024e54204c4d20302e31320002534d \
    4220322e3030320002534d4220322e3f3f3f00";
/// SPNEGO with a first token of NTLM.
const SETUP: &str = "fe534d42400001000000000001001f0000000000000000000100000000000000000000000000000000000000000000000000 \
    0000000000000000000000000000190000010000000000000000580042000000000000000000604006062b0601050502a036 \
    3034a00e300c060a2b06010401823702020aa22204204e544c4d5353500001000000358288e0000000000000000000000000 \
    00000000";
/// Both tokens of a logon, each with its length before it.
const LOGON: &str = "4200604006062b0601050502a0363034a00e300c060a2b06010401823702020aa22204204e544c4d53535000010000003582 \
    88e0000000000000000000000000000000001601a18201123082010ea282010a048201064e544c4d53535000030000001800 \
    180048000000960096006000000000000000400000000800080040000000000000004800000010001000f6000000158288e0 \
    7500730065007200a5de164134da23e4eac7d075b93e88cd4a3038714a6f4374d30d3729d897028b0f6d0e6ef8e0287a0101 \
    00000000000000803ed5deb19d014a3038714a6f43740000000002000c0053004500520056004500520001000c0053004500 \
    520056004500520004000c0053004500520056004500520003000c005300450052005600450052000700080000803ed5deb1 \
    9d010900160063006900660073002f0053004500520056004500520000000000e32b192add4106e9e15958be88e435bb";
/// Two ECHOs in a compound.
const HEADERS: &str = "fe534d4240000100000000000d001f0000000000480000000100000000000000000000000000000000000000000000000000 \
    00000000000000000000000000000400000000000000fe534d4240000100000000000d001f00000000000000000001000000 \
    00000000000000000000000000000000000000000000000000000000000000000000000004000000";
/// A bind, and a call for the list of shares.
const PIPE: &str = "05000b03100000004800000001000000b810b810000000000100000000000100c84f324b7016d30112785a47bf6ee1880300 \
    0000045d888aeb1cc9119fe808002b10486002000000050000031000000038000000020000002000000000000f0000000000 \
    0100000001000000040002000000000000000000ffffffff00000000";

/// NEGOTIATE and what goes with it.
pub fn negotiate(input: &[u8]) {
    with_message(input, &[NEGOTIATE, SMB1], fuzzing::negotiate);
}

/// SESSION_SETUP.
pub fn setup(input: &[u8]) {
    with_message(input, &[SETUP], fuzzing::setup);
}

/// The tokens of a logon.
pub fn logon(input: &[u8]) {
    with_message(input, &[LOGON], fuzzing::logon);
}

/// The headers of messages.
pub fn headers(input: &[u8]) {
    with_message(input, &[HEADERS], fuzzing::headers);
}

/// What is written to a pipe.
pub fn pipe(input: &[u8]) {
    with_message(input, &[PIPE], fuzzing::pipe);
}

/// What clients sent, each on a new server: the command of a request, whether it is related to the
/// one before, two bytes of length, and the body.
const RECORDINGS: usize = 15;
const RECORDED: [&[u8]; RECORDINGS] = [
    include_bytes!("../seeds/smb_requests/acls-inheritance"),
    include_bytes!("../seeds/smb_requests/compound-related1"),
    include_bytes!("../seeds/smb_requests/create-blob"),
    include_bytes!("../seeds/smb_requests/dir-find"),
    include_bytes!("../seeds/smb_requests/durable-v2-open-create-blob"),
    include_bytes!("../seeds/smb_requests/getinfo-complex"),
    include_bytes!("../seeds/smb_requests/ioctl-copy-chunk-simple"),
    include_bytes!("../seeds/smb_requests/ioctl-sparse-qar"),
    include_bytes!("../seeds/smb_requests/lease-v2-epoch2"),
    include_bytes!("../seeds/smb_requests/lock-lock"),
    include_bytes!("../seeds/smb_requests/notify-dir"),
    include_bytes!("../seeds/smb_requests/oplock-batch1"),
    include_bytes!("../seeds/smb_requests/rename-simple"),
    include_bytes!("../seeds/smb_requests/setinfo"),
    include_bytes!("../seeds/smb_requests/smbclient"),
];

/// Bytes of the volume that requests go to.
const VOLUME: u64 = 16 << 20;
/// Growth of the heap that a whole run of requests may cause: of the volume too.
const REQUESTS_HEAP: usize = 32 << 20;

/// Requests after a logon, on a volume in memory that tells upper from lower case, or not.
pub fn requests(input: &[u8]) {
    let mut input = Input::new(input);
    let choice = usize::from(input.byte());
    let is_sensitive = choice & 0x80 != 0;
    let bytes = match RECORDED.get(choice % 0x80 % (RECORDINGS + 1)) {
        Some(recorded) => {
            let mut bytes = recorded.to_vec();
            while !input.is_empty() {
                let (place, value) = (usize::from(input.short()), input.byte());
                let place = place % bytes.len();
                bytes[place] = value;
            }
            bytes
        }
        None => input.bytes(usize::MAX).to_vec(),
    };
    heap::limit(REQUESTS_HEAP);
    let volume = volume(is_sensitive);
    fuzzing::requests(&volume, &bytes);
    assert_eq!(volume.open_count(), 0, "opens that nobody closed");
    assert_eq!(volume.lease_count(), 0, "leases that nobody holds");
    assert_eq!(volume.waiting_count(), 0, "waits that did not end");
    heap::limit(usize::MAX);
}

/// Requests of three clients, two of them of one user, on connections of their own that get lost
/// and come back: each with a byte before it that says which.
pub fn connections(input: &[u8]) {
    let is_sensitive = input.first().is_some_and(|byte| byte & 0x80 != 0);
    let recorded = input.first().map_or(0, |byte| usize::from(byte % 0x80));
    let bytes = match RECORDED.get(recorded % (RECORDINGS + 1)) {
        Some(recorded) => interleaved(recorded, input.get(1..).unwrap_or_default()),
        None => input.get(1..).unwrap_or_default().to_vec(),
    };
    heap::limit(REQUESTS_HEAP);
    let volume = volume(is_sensitive);
    fuzzing::connections(&volume, &bytes);
    assert_eq!(volume.open_count(), 0, "opens that nobody closed");
    assert_eq!(volume.lease_count(), 0, "leases that nobody holds");
    assert_eq!(volume.waiting_count(), 0, "waits that did not end");
    heap::limit(usize::MAX);
}

/// Returns the recorded requests of one client, dealt out to the three clients as the input says,
/// with some bytes changed.
fn interleaved(mut recorded: &[u8], input: &[u8]) -> Vec<u8> {
    let mut input = Input::new(input);
    let mut all = Vec::with_capacity(2 * recorded.len());
    while let Some(head) = recorded.first_chunk::<4>() {
        let len = 4 + usize::from(u16::from_le_bytes([head[2], head[3]]));
        let (request, rest) = recorded.split_at(len.min(recorded.len()));
        recorded = rest;
        // Most requests are said by one, then by another as well.
        for _ in 0..1 + input.byte() % 2 {
            all.push(input.byte());
            let at = all.len();
            all.extend_from_slice(request);
            if input.byte().is_multiple_of(4) {
                let place = at + 4 + usize::from(input.byte()) % request.len().max(5);
                if let Some(byte) = all.get_mut(place) {
                    *byte = input.byte();
                }
            }
        }
    }
    all
}

fn volume(is_sensitive: bool) -> Arc<Volume> {
    let now = || Time::EPOCH;
    let mut options = MemOptions {
        size: VOLUME,
        ..MemOptions::default()
    };
    if !is_sensitive {
        options.caps = options.caps.without(Caps::CASE_SENSITIVE);
    }
    let fs = Mem::attach(options, now()).expect("a volume in memory");
    let options = VolumeOptions {
        lease_timeout: Duration::ZERO,
        commit: Commit::WhenAsked,
        ..VolumeOptions::new("fuzzed", now)
    };
    Volume::new(fs, options)
}

/// Runs a target on the input itself, or on an example that the input changes.
fn with_message(input: &[u8], examples: &[&str], target: fn(&[u8])) {
    let mut choices = Input::new(input);
    let choice = usize::from(choices.byte());
    let message = match examples.get(choice % (examples.len() + 1)) {
        Some(example) => changed(bytes_of(example), &mut choices),
        None => input.get(1..).unwrap_or_default().to_vec(),
    };
    heap::limit(HEAP + 2 * message.len());
    target(&message);
    heap::limit(usize::MAX);
}

fn bytes_of(hex: &str) -> Vec<u8> {
    let digit = |d: u8| (d as char).to_digit(16).unwrap_or(0) as u8;
    let pairs = hex.as_bytes().chunks_exact(2);
    pairs
        .map(|pair| digit(pair[0]) << 4 | digit(pair[1]))
        .collect()
}

fn changed(mut message: Vec<u8>, choices: &mut Input<'_>) -> Vec<u8> {
    for _ in 0..CHANGES_MAX {
        if choices.is_empty() || message.is_empty() {
            break;
        }
        let at = usize::from(choices.short()) % message.len();
        match choices.byte() {
            0 => message.truncate(at),
            1 => drop(message.splice(at..at, choices.bytes(16).to_vec())),
            2 => message.extend_from_slice(choices.bytes(64)),
            _ => message[at] = choices.byte(),
        }
    }
    message
}
