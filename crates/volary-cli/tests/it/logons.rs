//! Who may log on by SMB, how often, and what the log says of it.

use crate::mounting::Mounting;
use crate::sandbox::{Run, Sandbox};
use crate::serving::{Serving, can_mount};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, TcpStream, UdpSocket};
use std::path::Path;
use std::process::Command;
use std::thread;
use std::time::Duration;
use volary_testkit::oracle::python;
use volary_testkit::smb::{Client, How, access, disposition};

/// The users me, who is root, and you, whose password is "password".
const USERS: &str = "\
me:0:0:8846f7eaee8fb117ad06bdd830b7586c
you:1001:1001:8846f7eaee8fb117ad06bdd830b7586c
";

fn serve(sandbox: &Sandbox, words: &str) -> Serving {
    sandbox.write_secret("users", USERS.as_bytes());
    let words = format!("serve --json --users users {words}");
    Serving::of(sandbox.command(&words.split(' ').collect::<Vec<_>>()))
}

fn port<'a>(serving: &'a Serving, of: &str) -> &'a str {
    let address = serving.said[of].as_str().unwrap();
    address.rsplit(':').next().unwrap()
}

/// Runs one of `logons.py`.
fn runs(python: &Path, words: &[&str]) {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/logons.py");
    let output = Command::new(python).arg(script).args(words).output();
    Run::of(&output.unwrap()).ok();
}

/// Ends it; what it said of those who logged on is as it may be.
fn stop(serving: Serving) -> String {
    let ended = serving.end("-TERM");
    assert_eq!(ended.code, 0, "{}", ended.err);
    ended.err
}

#[test]
fn many_connections_guess_no_faster_than_one() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let sandbox = Sandbox::empty();
    let both = [0, 1].map(|_| serve(&sandbox, "--smb=127.0.0.1:0 mem:16M"));
    let ports = both.each_ref().map(|serving| port(serving, "smb"));
    runs(&python, &["guesses", ports[0], ports[1]]);
    both.into_iter().for_each(|serving| drop(stop(serving)));
}

#[test]
fn who_guesses_keeps_nobody_out_who_comes_from_elsewhere() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let Some(elsewhere) = outer_address() else {
        println!("skipped: all addresses of this host are one");
        return;
    };
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "--smb=127.0.0.1:0 mem:16M");
    let elsewhere = elsewhere.to_string();
    runs(&python, &["elsewhere", port(&serving, "smb"), &elsewhere]);
    let said = stop(serving);
    let refused = "volary: SMB: logon refused: user=me address=127.0.0.1 reason=\"wrong password\"";
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with(refused))
            .count(),
        6,
        "{said}"
    );
    assert!(!said.contains(&elsewhere), "{said}");
}

#[test]
fn the_oldest_dialect_is_spoken_only_if_it_is_asked_for() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let sandbox = Sandbox::empty();
    for (words, oldest) in [("", "2.1"), ("--smb-min 2.0.2 ", "2.0.2")] {
        let serving = serve(&sandbox, &format!("{words}--smb=127.0.0.1:0 mem:16M"));
        runs(&python, &["dialects", port(&serving, "smb"), oldest]);
        stop(serving);
    }
}

/// Returns an address of this host that is not loopback, if it has one.
fn outer_address() -> Option<IpAddr> {
    // Nothing is sent: it only says by which address it would be.
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    let address = socket.local_addr().unwrap().ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[test]
fn a_share_is_for_those_who_are_named_for_it() {
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let sandbox = Sandbox::empty();
    let address = outer_address().unwrap_or(Ipv4Addr::LOCALHOST.into());
    let text = format!(
        "protect = \"signed\"\n\
         [[volume]]\nvolume = \"mem:16M\"\nname = \"mine\"\nusers = [\"ME\"]\nallow = [\"{address}\"]\n\
         [[volume]]\nvolume = \"mem:16M\"\nname = \"both\"\nusers = [\"me\", \"you\"]\n\
         [[volume]]\nvolume = \"mem:16M\"\nname = \"far\"\nallow = [\"192.0.2.7\"]\n"
    );
    sandbox.write("volary.toml", text.as_bytes());
    let serving = serve(&sandbox, "--config volary.toml --smb=0.0.0.0:0 --log log");
    runs(&python, &["shares", port(&serving, "smb")]);
    if !address.is_loopback() {
        runs(
            &python,
            &["allowed", port(&serving, "smb"), &address.to_string()],
        );
    }
    stop(serving);
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    assert!(
        log.contains("share refused: user=you address=127.0.0.1 share=mine"),
        "{log}"
    );
    sandbox.write(
        "volary.toml",
        text.replace("\"you\"", "\"them\"").as_bytes(),
    );
    let words = "serve --smb=127.0.0.1:0 --users users --config volary.toml";
    let refused = sandbox.run(words).fails(2);
    assert!(
        refused.contains("users of /both: 'them' is no user of SMB"),
        "{refused}"
    );
}

#[test]
fn who_is_not_allowed_is_not_let_in_by_smb_either() {
    let Some(address) = outer_address() else {
        println!("skipped: this host has no address but loopback");
        return;
    };
    let sandbox = Sandbox::empty();
    let serving = serve(
        &sandbox,
        "--allow 192.0.2.7 --smb=0.0.0.0:0 --log log mem:16M",
    );
    let port: u16 = port(&serving, "smb").parse().unwrap();
    let mut socket = TcpStream::connect((address, port)).unwrap();
    // It is told nothing, and closed.
    let read = socket.read(&mut [0]);
    assert!(matches!(read, Ok(0) | Err(_)), "{read:?}");
    drop(TcpStream::connect((Ipv4Addr::LOCALHOST, port)).unwrap());
    stop(serving);
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    let refused = format!("WARN SMB: client refused: address={address}");
    assert!(log.contains(&refused), "{log}");
}

#[test]
fn the_log_says_who_did_what_and_no_secrets() {
    use std::os::unix::fs::PermissionsExt;
    let Some(python) = python::with_smb_clients() else {
        return;
    };
    let sandbox = Sandbox::empty();
    for json in ["", "--log-json "] {
        let words = format!("--smb=127.0.0.1:0 --log log {json}mem:16M");
        let serving = serve(&sandbox, &words);
        runs(&python, &["logged", port(&serving, "smb")]);
        assert_eq!(stop(serving), "");
    }
    let mode = std::fs::metadata(sandbox.path("log"))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o600);
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    let (json, text): (Vec<_>, Vec<_>) = log.lines().partition(|line| line.starts_with('{'));
    let words: Vec<_> = text
        .iter()
        .map(|line| line.split_once(' ').unwrap().1)
        .collect();
    let expected = [
        "INFO SMB: server begins: at=127.0.0.1:",
        "INFO SMB: logon: user=me address=127.0.0.1 dialect=Smb311",
        "WARN SMB: logon refused: user=me address=127.0.0.1 reason=\"wrong password\"",
        "WARN SMB: logon refused: user=\"x\\nvolary: all is wellyyy",
        "INFO SMB: server ends: at=127.0.0.1:",
    ];
    assert_eq!(words.len(), expected.len(), "{log}");
    for (line, expected) in words.iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
    assert_eq!(json.len(), expected.len(), "{log}");
    let refused: serde_json::Value = serde_json::from_str(json[2]).unwrap();
    for (name, value) in [
        ("level", "warn"),
        ("part", "SMB"),
        ("message", "logon refused"),
        ("user", "me"),
        ("address", "127.0.0.1"),
        ("reason", "wrong password"),
    ] {
        assert_eq!(refused[name], value, "{refused}");
    }
    assert!(log.lines().all(|line| line.len() < 400), "{log}");
    for secret in ["pass phrase", "8846f7ea", "8846F7EA"] {
        assert!(!log.contains(secret), "{log}");
    }
}

#[test]
fn a_mount_of_nfs_is_logged_and_a_log_that_cannot_be_is_told() {
    let sandbox = Sandbox::empty();
    let serving = Serving::start(&sandbox, "--log log mem:16M");
    let options = format!("port={0},mountport={0}", serving.port());
    let list = ["ls", "-o", &options, "nfs://127.0.0.1/mem:/"];
    sandbox.run_words(&list).ok();
    sandbox.run_words(&["ls", "-o", &options, "nfs://127.0.0.1/none:/"]);
    serving.stop("-TERM");
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    for words in [
        "INFO NFS: server begins: ",
        "by its own word\" address=127.0.0.1 path=/mem",
        "WARN NFS: mount refused: address=127.0.0.1 path=/none",
        "INFO NFS: server ends",
    ] {
        assert!(log.contains(words), "{words}: {log}");
    }
    let told = sandbox.run("serve --log none/log --nfs 0 mem:16M").fails(1);
    assert!(told.contains("--log none/log: no such file"), "{told}");
}

#[test]
fn a_mount_is_logged_with_its_end() {
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let mounting = Mounting::start(&sandbox, &["--log", "log", "--log-json", "unix.img"]);
    mounting.unwrap().end();
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let said: Vec<_> = lines.iter().map(|line| &line["message"]).collect();
    assert_eq!(said, ["mount begins", "mount ends"], "{log}");
    assert!(
        lines
            .iter()
            .all(|line| line["at"] == "mnt" && line["part"] == "FUSE"),
        "{log}"
    );
}

#[test]
fn what_goes_on_is_counted_and_not_written() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "--smb=127.0.0.1:0 --log log mem:16M");
    let port: u16 = port(&serving, "smb").parse().unwrap();
    // Past 16, each silent connection takes the place of another.
    let silent: Vec<_> = (0..60)
        .map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap())
        .collect();
    // The first of them are closed when the last is in.
    let mut last = Client::connect(
        (Ipv4Addr::LOCALHOST, port).into(),
        "me",
        "password",
        "mem",
        [1; 16],
    );
    assert!(last.is_ok(), "{:?}", last.as_mut().err());
    stop(serving);
    drop(silent);
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    let away: Vec<_> = log
        .lines()
        .filter(|line| line.contains("connection sent away"))
        .collect();
    assert_eq!(away.len(), 6, "{log}");
    assert!(away[5].contains("times=40"), "{log}");
}

/// NEGOTIATE of 2.1 by a client of this name (MS-SMB2 2.2.3).
fn negotiate(guid: [u8; 16]) -> Vec<u8> {
    let mut message = b"\0\0\0\x66\xFESMB\x40\0".to_vec();
    message.resize(4 + 64, 0);
    message.extend([36, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0]);
    message.extend(guid);
    message.extend([0; 8]);
    message.extend([0x10, 0x02]);
    message
}

/// A lease is the client's; who says to be that client is not told of its end, unless the same
/// user has logged on there.
#[test]
fn breaks_go_to_connections_on_which_their_user_has_logged_on() {
    const ALL: u32 = 7;
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "--smb=127.0.0.1:0 mem:16M");
    let address = serving.said["smb"].as_str().unwrap().parse().unwrap();
    let (guid, key) = ([b'm'; 16], [b'k'; 16]);
    let mut nobody = TcpStream::connect(address).unwrap();
    nobody.write_all(&negotiate(guid)).unwrap();
    let mut length = [0; 4];
    nobody.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    nobody.read_exact(&mut answer).unwrap();
    let as_user = |user, guid| Client::connect(address, user, "password", "mem", guid).unwrap();
    let (_another, another_hears) = as_user("you", guid);
    let (me, hears) = as_user("me", guid);
    let how = How {
        disposition: disposition::OPEN_IF,
        lease: Some((key, ALL)),
        ..How::open(access::READ | access::WRITE)
    };
    assert_eq!(me.open("file", &how).unwrap().lease, ALL);
    let (you, _) = as_user("you", [b'y'; 16]);
    let opening = thread::spawn(move || you.open("file", &How::open(access::READ)).map(drop));
    let heard = hears.recv_timeout(Duration::from_secs(60)).unwrap();
    assert_eq!((heard.key, heard.from), (key, ALL));
    if heard.must_ack {
        me.acknowledge(key, heard.to).unwrap();
    }
    assert_eq!(opening.join().unwrap(), Ok(()));
    assert!(another_hears.try_recv().is_err());
    nobody.set_nonblocking(true).unwrap();
    let heard = nobody.read(&mut [0]).map_err(|e| e.kind());
    assert_eq!(heard, Err(ErrorKind::WouldBlock));
    stop(serving);
}
