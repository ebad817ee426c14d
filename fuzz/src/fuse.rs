//! The target for FUSE: what a kernel could say. Nodes and opens in requests are those that
//! answers named, mostly.

use crate::heap;
use crate::input::Input;
use rustix::net::sockopt::{Timeout, set_socket_timeout};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use volary_core::Time;
use volary_fuse::MountOptions;
use volary_mem::{Mem, MemOptions};
use volary_session::{Commit, Volume, VolumeOptions};

/// Growth of the heap that a run may cause: twice the library's buffer of 16 MiB, and the volume.
const HEAP: usize = 64 << 20;
const REQUESTS_MAX: usize = 64;
/// Without an answer: FORGET, INTERRUPT, NOTIFY_REPLY, BATCH_FORGET; SETLKW may wait for ever, DESTROY
/// is the end.
const MUTE: [u32; 6] = [2, 36, 41, 42, 33, 38];
/// All others are answered within this.
const PATIENCE: Duration = Duration::from_secs(20);
/// Those with an open at the beginning of their arguments, and those of directories.
const WITH_OPEN: [u32; 15] = [15, 16, 18, 20, 25, 28, 29, 30, 31, 32, 39, 43, 44, 46, 47];
/// OPEN and OPENDIR; what makes or finds nodes; CREATE does both.
const OPENS: [u32; 2] = [14, 27];
const FINDS: [u32; 6] = [1, 6, 8, 9, 13, 35];
const CREATE: u32 = 35;
const HEADER: usize = 40;
const ENTRY: usize = 128;

/// The kernel's side.
struct Kernel {
    socket: File,
    unique: u64,
    nodes: Vec<u64>,
    opens: Vec<u64>,
    answer: Vec<u8>,
}

/// Requests to a volume in memory.
pub fn requests(input: &[u8]) {
    let mut input = Input::new(input);
    heap::limit(HEAP);
    let (volume, mut kernel, served) = mounted();
    kernel.begin(&mut input);
    for _ in 0..REQUESTS_MAX {
        if input.is_empty() || !kernel.request(&mut input) {
            break;
        }
    }
    drop(kernel);
    served.join().expect("the server's thread");
    volume.wake_waiting();
    let _ = volume.detach();
    heap::limit(usize::MAX);
}

/// Returns a volume in memory, the kernel's side of its mount, and the thread that serves it.
fn mounted() -> (Arc<Volume>, Kernel, JoinHandle<()>) {
    let options = MemOptions {
        size: 8 << 20,
        ..MemOptions::default()
    };
    let now = || Time::from_secs(1_700_000_000);
    let fs = Mem::attach(options, now()).expect("a volume in memory");
    let how = VolumeOptions {
        lease_timeout: Duration::ZERO,
        commit: Commit::WhenAsked,
        ..VolumeOptions::new("fuzzed", now)
    };
    let volume = Volume::new(fs, how);
    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let pair = socketpair(family, kind, SocketFlags::CLOEXEC, None);
    let (ours, theirs) = pair.expect("sockets");
    set_socket_timeout(&ours, Timeout::Recv, Some(PATIENCE)).expect("a time-out");
    let served = {
        let volume = Arc::clone(&volume);
        std::thread::spawn(move || {
            volary_fuse::fuzzing::serve(&volume, theirs, &MountOptions::default());
        })
    };
    let kernel = Kernel {
        socket: ours.into(),
        unique: 1,
        nodes: vec![1],
        opens: vec![0],
        answer: vec![0; (1 << 20) + 4096],
    };
    (volume, kernel, served)
}

/// The library takes a kernel's word for granted: that the data of WRITE, SETXATTR and IOCTL are as
/// long as these say. No more is asked for at a time than a message between sockets can hold.
fn tell_len(opcode: u32, body: &mut [u8]) {
    let left = |from: usize| body.len().saturating_sub(from) as u32;
    let number = |at: usize| {
        let bytes = body.get(at..).and_then(|b| b.first_chunk());
        bytes.copied().map_or(0, u32::from_le_bytes)
    };
    let all = match opcode {
        15 | 28 | 44 => [(16, number(16).min(1 << 16)), (usize::MAX, 0)],
        16 => [(16, left(40)), (usize::MAX, 0)],
        21 => {
            let name = body.get(8..).unwrap_or_default();
            let len = name.iter().position(|byte| *byte == 0).unwrap_or(0);
            [(0, left(8 + len + 1)), (usize::MAX, 0)]
        }
        22 | 23 => [(0, number(0).min(1 << 16)), (usize::MAX, 0)],
        39 => [(24, left(32)), (28, number(28).min(1 << 14))],
        _ => return,
    };
    for (at, number) in all {
        if let Some(room) = body.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
            *room = number.to_le_bytes();
        }
    }
}

/// Normalises the times of SETATTR as Linux does (`timestamp_truncate`): less than a second of nanoseconds,
/// and none at the smallest second. The library relies on that.
fn tell_times(body: &mut [u8]) {
    for (secs, nanos) in [(32, 56), (40, 60), (48, 64)] {
        let is_least = body.get(secs..secs + 8) == Some(&i64::MIN.to_le_bytes());
        let Some(room) = body.get_mut(nanos..).and_then(|b| b.first_chunk_mut()) else {
            return;
        };
        let told = u32::from_le_bytes(*room) % 1_000_000_000;
        *room = if is_least { 0 } else { told }.to_le_bytes();
    }
}

impl Kernel {
    /// INIT of a kernel that can all.
    fn begin(&mut self, input: &mut Input<'_>) {
        let flags = if input.byte().is_multiple_of(2) {
            !0
        } else {
            0
        };
        let numbers = [7, 40, 1 << 20, flags, 0];
        let mut body: Vec<u8> = numbers.into_iter().flat_map(u32::to_le_bytes).collect();
        body.resize(64, 0);
        self.say(26, 0, &body);
    }

    /// One request; false once nobody listens.
    fn request(&mut self, input: &mut Input<'_>) -> bool {
        let opcode = u32::from(input.byte() % 54);
        let pick = |all: &[u64], byte: u8| match byte {
            0xf0.. => u64::from(byte) << 24,
            byte => all[usize::from(byte) % all.len()],
        };
        let node = pick(&self.nodes, input.byte());
        let open = pick(&self.opens, input.byte());
        let len = usize::from(input.byte());
        let mut body = input.bytes(len).to_vec();
        let at = match opcode {
            4 => 8,
            _ if WITH_OPEN.contains(&opcode) => 0,
            _ => usize::MAX,
        };
        if let Some(room) = body.get_mut(at..).and_then(|b| b.first_chunk_mut()) {
            *room = open.to_le_bytes();
        }
        tell_len(opcode, &mut body);
        if opcode == 4 {
            tell_times(&mut body);
        }
        self.say(opcode, node, &body)
    }

    fn say(&mut self, opcode: u32, node: u64, body: &[u8]) -> bool {
        self.unique += 2;
        let mut message = Vec::with_capacity(HEADER + body.len());
        message.extend(((HEADER + body.len()) as u32).to_le_bytes());
        message.extend(opcode.to_le_bytes());
        message.extend(self.unique.to_le_bytes());
        message.extend(node.to_le_bytes());
        let who = [1000 * (self.unique as u32 / 2 % 2), 0, 1, 0];
        message.extend(who.into_iter().flat_map(u32::to_le_bytes));
        message.extend(body);
        if self.socket.write_all(&message).is_err() {
            return false;
        }
        MUTE.contains(&opcode) || self.listen(opcode)
    }

    /// Reads until the answer has come.
    fn listen(&mut self, opcode: u32) -> bool {
        loop {
            let len = match self.socket.read(&mut self.answer) {
                Err(e) if e.kind() == ErrorKind::WouldBlock => panic!("no answer to {opcode}"),
                Ok(0) | Err(_) => return false,
                Ok(len) => len,
            };
            assert!(len >= 16, "an answer of {len} bytes");
            let number = |at: usize| {
                let bytes = self.answer[..len].get(at..).and_then(|b| b.first_chunk());
                bytes.copied().map(u64::from_le_bytes)
            };
            if number(8) != Some(self.unique) {
                continue;
            }
            if self.answer[4..8] == [0; 4] {
                let node = FINDS.contains(&opcode).then(|| number(16)).flatten();
                self.nodes.extend(node.filter(|node| *node != 0));
                let at = if opcode == CREATE { 16 + ENTRY } else { 16 };
                let opens = OPENS.contains(&opcode) || opcode == CREATE;
                self.opens.extend(opens.then(|| number(at)).flatten());
            }
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_within_a_file_ends_where_the_file_ended() {
        let (volume, mut kernel, served) = mounted();
        kernel.begin(&mut Input::new(&[]));
        // To read and write (O_RDWR).
        let name = [
            &[2, 0, 0, 0, 0xa4, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0][..],
            b"file\0",
        ]
        .concat();
        assert!(kernel.say(CREATE, 1, &name));
        let (node, open) = (kernel.nodes[1], kernel.opens[1]);
        let words = |all: &[u64]| all.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<_>>();
        // Writes five bytes, and copies from the second on to the end of the file.
        let write = [words(&[open, 0, 5, 0, 0]), b"12345".to_vec()].concat();
        assert!(kernel.say(16, node, &write));
        assert_eq!(kernel.answer[16..20], 5_u32.to_le_bytes());
        let copy = words(&[open, 1, node, open, 5, 1 << 20, 0]);
        assert!(kernel.say(47, node, &copy));
        assert_eq!(kernel.answer[4..8], [0; 4], "an error");
        assert_eq!(kernel.answer[16..20], 4_u32.to_le_bytes());
        drop(kernel);
        served.join().expect("the server's thread");
        let _ = volume.detach();
    }
}
