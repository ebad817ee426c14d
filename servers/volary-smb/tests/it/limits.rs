//! Clients that are slow, say nothing or too much, do not harm others.

use crate::served::{Served, config, run};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;
use volary_testkit::oracle::{self, Tool};
use volary_testkit::smb::{Client, Fail, status};

fn connect(served: &Served) -> TcpStream {
    let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, served.port)).expect("a connection");
    let time = Some(Duration::from_secs(120));
    stream.set_read_timeout(time).expect("a time-out");
    stream
}

/// Returns whether the server ends the connection, with no more than `len` bytes before.
fn is_ended(mut stream: &TcpStream, len: usize) -> bool {
    let mut bytes = vec![0; len + 1];
    let mut read = 0;
    loop {
        match stream.read(&mut bytes[read..]) {
            Ok(0) => return true,
            Ok(n) if read + n <= len => read += n,
            Ok(_) => return false,
            Err(e) => return e.kind() == std::io::ErrorKind::ConnectionReset,
        }
    }
}

/// Times that clients are given, each twice the one before: on a busy host they may be
/// late for the short ones.
fn times() -> impl Iterator<Item = Duration> {
    (0..8).map(|n| Duration::from_millis(400 << n))
}

/// Returns a server that gives clients this time to log on, and for a message.
fn giving(time: Duration) -> volary_smb::Config {
    let mut config = config();
    config.limits.logon_time = time;
    config.limits.message_time = time;
    config
}

#[test]
fn who_does_not_log_on_is_sent_away() {
    let served = Served::new(giving(Duration::from_millis(400)));
    let silent = connect(&served);
    assert!(is_ended(&silent, 0));
    // A byte now and then is no progress.
    let mut slow = connect(&served);
    let mut sent = 0;
    while slow.write_all(&[0]).is_ok() {
        std::thread::park_timeout(Duration::from_millis(50));
        sent += 1;
        assert!(sent < 2400, "still listened to after {sent} bytes");
    }
}

/// A client that logs off can log on again, however long it was there.
#[test]
fn who_logs_off_has_time_to_log_on_again() {
    let stays = |time: Duration| {
        let served = Served::new(giving(time));
        let address = (Ipv4Addr::LOCALHOST, served.port).into();
        let client = Client::connect(address, "tester", "pass", "share", [7; 16]);
        client.is_ok_and(|(client, _)| {
            std::thread::park_timeout(time + Duration::from_millis(100));
            let gone = Fail::Status(status::USER_SESSION_DELETED);
            client.log_off() == Ok(()) && client.echo() == Err(gone)
        })
    };
    assert!(times().any(stays));
}

/// Returns a message that needs no logon, with its length before it.
fn message(command: u8, id: u8, body: &[u8]) -> Vec<u8> {
    let mut header = b"\xFESMB\x40\0".to_vec();
    header.resize(64, 0);
    (header[12], header[14], header[24]) = (command, 2, id);
    let len = (header.len() + body.len()) as u8;
    [&[0, 0, 0, len], &header[..], body].concat()
}

/// Returns the message that comes first, for the dialect 2.1.
fn negotiate() -> Vec<u8> {
    let mut body = vec![36, 0, 1, 0, 1];
    body.resize(36, 0);
    body.extend([0x10, 2]);
    message(0, 0, &body)
}

/// Returns whether an ECHO in three pieces is answered, with so much time before and between them.
fn is_answered(served: &Served, before: Duration, between: Duration) -> bool {
    let echo = message(13, 1, &[4, 0, 0, 0]);
    let mut stream = connect(served);
    stream.set_nodelay(true).expect("no delay");
    let mut heard = vec![0; 1000];
    stream.write_all(&negotiate()).expect("sent");
    if !stream.read(&mut heard).is_ok_and(|n| n > 0) {
        return false;
    }
    std::thread::park_timeout(before);
    for piece in [&echo[..40], &echo[40..50], &echo[50..]] {
        if stream.write_all(piece).is_err() {
            return false;
        }
        std::thread::park_timeout(between);
    }
    stream.read(&mut heard).is_ok_and(|n| n > 0)
}

/// The time for a message runs from its first byte, however long nothing came
/// before it, and to its last.
#[test]
fn a_message_in_pieces_has_its_own_time() {
    let is_right = |time: Duration| {
        let mut config = giving(time);
        config.limits.logon_time = Duration::from_secs(600);
        let served = Served::new(config);
        let (quick, longer) = (Duration::from_millis(30), time + time / 4);
        is_answered(&served, longer, quick) && !is_answered(&served, Duration::ZERO, longer)
    };
    assert!(times().any(is_right));
}

#[test]
fn who_talks_but_does_not_log_on_is_sent_away() {
    let is_right = |time: Duration| {
        let served = Served::new(giving(time));
        let mut stream = connect(&served);
        let mut heard = vec![0; 1000];
        let mut talk = |bytes: &[u8]| {
            stream.write_all(bytes).is_ok() && stream.read(&mut heard).is_ok_and(|n| n > 0)
        };
        let (mut id, mut is_heard) = (0, talk(&negotiate()));
        while is_heard {
            id += 1;
            assert!(id < 200, "still listened to");
            is_heard = talk(&message(13, id, &[4, 0, 0, 0]));
            std::thread::park_timeout(time / 40);
        }
        id > 3
    };
    assert!(times().any(is_right));
}

#[test]
fn what_is_too_long_or_no_message_ends_the_connection() {
    let served = Served::new(config());
    let http = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
    let long = [0, 1, 0, 1];
    for bytes in [&http[..], &long, &[0, 0, 0, 0], &[0x81, 0, 0, 0]] {
        let mut stream = connect(&served);
        stream.write_all(bytes).expect("sent");
        assert!(is_ended(&stream, 0), "{bytes:?}");
    }
}

#[test]
fn connections_are_counted_and_others_go_on() {
    const SMBCLIENT: Tool = Tool {
        program: "smbclient",
        package: "smbclient",
    };
    let mut config = config();
    config.limits.connections = 4;
    config.limits.logon_time = Duration::from_secs(600);
    let served = Served::new(config);
    let mut all: Vec<TcpStream> = (0..3).map(|_| connect(&served)).collect();
    // One of them floods with nonsense, and the others are silent.
    let _ = all[0].write_all(&[0, 0, 0, 4, 0xFE, b'S', b'M', b'B'].repeat(1000));
    if oracle::have(&[SMBCLIENT]) {
        let mut command = SMBCLIENT.command();
        let port = served.port.to_string();
        command.args([
            "//127.0.0.1/share",
            "-s",
            "/dev/null",
            "-U",
            "tester%pass",
            "-c",
            "ls",
            "-p",
            &port,
        ]);
        let (printed, content) = run(&mut command);
        assert!(content, "{printed}");
    }
    // Those who say nothing give way to those who come.
    all.extend((0..8).map(|_| connect(&served)));
    let quick = Some(Duration::from_millis(10));
    let ended = |stream: &TcpStream| {
        stream.set_read_timeout(quick).expect("a time-out");
        is_ended(stream, 0)
    };
    let mut rounds = 0;
    while all.iter().filter(|stream| ended(stream)).count() < 7 {
        rounds += 1;
        assert!(rounds < 3000, "more connections than allowed");
    }
    assert!(served.server.connection_count() <= 4);
}
