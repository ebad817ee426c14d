//! What clients that have not logged on cost: at most 256 KiB of memory each, stacks and what
//! the heap leaves unused with it. In a process of its own, as that is what is measured.

#[expect(dead_code, reason = "what other tests use of it")]
#[path = "it/served.rs"]
mod served;

use served::{Served, config};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

/// As many as a server takes, and its default limits.
const CLIENTS: usize = 60;
const EACH_MAX: usize = 256 << 10;
/// The longest message before a logon.
const LONGEST: usize = 64 << 10;
/// Logons that a client begins and does not end.
const BEGUN: u8 = 70;
/// A first token of NTLM, in SPNEGO.
const TOKEN: [u8; 66] = *b"\x60\x40\x06\x06\x2b\x06\x01\x05\x05\x02\xa0\x36\x30\x34\xa0\x0e\x30\x0c\x06\x0a\
\x2b\x06\x01\x04\x01\x82\x37\x02\x02\x0a\xa2\x22\x04\x20NTLMSSP\0\x01\0\0\0\x35\x82\x88\xe0\0\0\0\0\0\0\0\0\
\0\0\0\0\0\0\0\0";

/// Memory of this process that is in use, in bytes.
fn in_use() -> usize {
    let status = fs::read_to_string("/proc/self/status").expect("a status");
    let line = status.lines().find(|line| line.starts_with("RssAnon:"));
    let words = line.and_then(|line| line.split_whitespace().nth(1));
    let kib: usize = words.and_then(|w| w.parse().ok()).expect("RssAnon");
    kib << 10
}

fn message(command: u8, id: u8, body: &[u8]) -> Vec<u8> {
    let mut header = b"\xFESMB\x40\0\x01\0".to_vec();
    header.resize(64, 0);
    (header[12], header[14], header[24]) = (command, 4, id);
    let len = u32::try_from(header.len() + body.len()).expect("a short one");
    [&len.to_be_bytes(), &header[..], body].concat()
}

/// Returns the status of the next reply.
fn status(stream: &mut TcpStream) -> u32 {
    let mut len = [0; 4];
    stream.read_exact(&mut len).expect("a reply");
    let mut reply = vec![0; u32::from_be_bytes(len) as usize];
    stream.read_exact(&mut reply).expect("a reply");
    u32::from_le_bytes(reply[8..12].try_into().expect("a status"))
}

/// Returns a client that begins logons until it may not, and then a message that it does not end.
fn client(port: u16) -> (TcpStream, usize) {
    let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port)).expect("a connection");
    let patience = Some(Duration::from_secs(60));
    stream.set_read_timeout(patience).expect("a time-out");
    let mut negotiate = vec![36, 0, 1, 0, 1];
    negotiate.resize(36, 0);
    negotiate.extend([0x10, 2]);
    stream.write_all(&message(0, 0, &negotiate)).expect("sent");
    assert_eq!(status(&mut stream), 0);
    let mut setup = vec![25, 0, 0, 1];
    setup.resize(12, 0);
    setup.extend([88, 0, TOKEN.len() as u8, 0]);
    setup.resize(24, 0);
    setup.extend(TOKEN);
    let mut begun = 0;
    for id in 1..=BEGUN {
        stream.write_all(&message(1, id, &setup)).expect("sent");
        begun += usize::from(status(&mut stream) == 0xC000_0016);
    }
    let mut long = vec![0xA5; LONGEST + 3];
    long[..4].copy_from_slice(&(LONGEST as u32).to_be_bytes());
    stream.write_all(&long).expect("sent");
    (stream, begun)
}

/// Returns a figure when it is `least` and has not grown for a while; after a minute as it is.
fn settled(least: usize, figure: impl Fn() -> usize) -> usize {
    let (mut most, mut still) = (0, 0);
    for _ in 0..1200 {
        if most >= least && still >= 20 {
            break;
        }
        std::thread::park_timeout(Duration::from_millis(50));
        let now = figure();
        still = if now > most { 0 } else { still + 1 };
        most = most.max(now);
    }
    most
}

#[test]
fn a_client_that_has_not_logged_on_costs_little() {
    let mut config = config();
    config.limits.logon_time = Duration::from_secs(600);
    config.limits.silent_per_peer = CLIENTS + 1;
    let served = Served::new(config);
    drop(client(served.port));
    let before = in_use();
    let clients: Vec<_> = (0..CLIENTS).map(|_| client(served.port)).collect();
    let begun = clients.iter().map(|(_, begun)| begun).sum::<usize>() / CLIENTS;
    assert!(begun > 0, "no logon was begun");
    let each = settled(LONGEST, || in_use().saturating_sub(before) / CLIENTS);
    // Less, and what was sent last has not been read.
    println!("{} KiB each, of {begun} logons begun", each >> 10);
    assert!((LONGEST..=EACH_MAX).contains(&each), "{each} bytes each");
    assert_eq!(served.server.connection_count(), CLIENTS);
}
