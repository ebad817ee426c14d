//! Clients of SMB and NFS that take what they can get.

use crate::sandbox::{PROGRAM, Sandbox};
use crate::serving::Serving;
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::fs;
use std::io::Write;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::{PermissionsExt, chown};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};
use volary_testkit::smb::{Client, Fail, How, Open, access, disposition, status};

const TOO_MANY_OPENED_FILES: Fail = Fail::Status(0xC000_011F);
const OBJECT_NAME_INVALID: Fail = Fail::Status(0xC000_0033);
const SET_ZERO_DATA: u32 = 0x0009_80C8;
/// The password "password" of root and three users.
const USERS: &str = "\
root:0:0:8846f7eaee8fb117ad06bdd830b7586c
a:1000:1000:8846f7eaee8fb117ad06bdd830b7586c
b:1001:1001:8846f7eaee8fb117ad06bdd830b7586c
c:1002:1002:8846f7eaee8fb117ad06bdd830b7586c
";

/// Returns the words that serve this by SMB and NFS, to root and the users a, b and c.
fn words(sandbox: &Sandbox, volume: &str) -> Vec<String> {
    sandbox.write_secret("users", USERS.as_bytes());
    let words = "serve --json --nfs 127.0.0.1:0 --key key --smb=127.0.0.1:0 --users users";
    let words = words.split(' ').chain(volume.split(' '));
    words.map(String::from).collect()
}

pub(super) fn serve(sandbox: &Sandbox, volume: &str) -> Serving {
    let words = words(sandbox, volume);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    Serving::of(sandbox.command(&words))
}

/// Serves a volume by a process that may have so many descriptors.
fn serve_with(sandbox: &Sandbox, descriptors: u32, volume: &str) -> Serving {
    let mut command = Command::new("prlimit");
    command.arg(format!("--nofile={descriptors}")).arg(PROGRAM);
    command.args(words(sandbox, volume));
    Serving::of({
        command.current_dir(sandbox.path(""));
        command
    })
}

pub(super) fn address(serving: &Serving, of: &str) -> SocketAddr {
    serving.said[of].as_str().unwrap().parse().unwrap()
}

pub(super) fn log_on(serving: &Serving, user: &str, share: &str) -> Result<Client, Fail> {
    let guid = [user.as_bytes()[0]; 16];
    let address = address(serving, "smb");
    Client::connect(address, user, "password", share, guid).map(|(client, _)| client)
}

pub(super) fn make() -> How {
    How {
        disposition: disposition::OPEN_IF,
        ..How::open(access::READ | access::WRITE | access::DELETE)
    }
}

fn directory() -> How {
    How {
        options: 1,
        ..How::open(access::READ)
    }
}

/// Opens files until the server says no: what it said, and how many there were.
fn exhaust(client: &Client, name: &str) -> (Fail, usize) {
    for count in 0.. {
        if let Err(fail) = client.open(&format!("{name}{count}"), &make()) {
            return (fail, count);
        }
    }
    unreachable!()
}

/// A directory of the host that anybody may write.
fn open_directory(sandbox: &Sandbox) {
    fs::create_dir(sandbox.path("dir")).unwrap();
    fs::set_permissions(sandbox.path("dir"), fs::Permissions::from_mode(0o777)).unwrap();
}

/// Asks again and again, for a minute or so.
fn in_time(mut is_so: impl FnMut() -> bool) -> bool {
    for _ in 0..1200 {
        if is_so() {
            return true;
        }
        thread::park_timeout(Duration::from_millis(50));
    }
    false
}

/// Stops a server: it has seconds for that, and a busy host some more.
#[expect(
    clippy::disallowed_methods,
    reason = "how long the end takes is what is asked"
)]
fn stop_soon(serving: Serving) {
    let begun = Instant::now();
    serving.stop("-TERM");
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
}

#[test]
fn who_opens_all_they_can_leaves_room_for_others() {
    let sandbox = Sandbox::empty();
    open_directory(&sandbox);
    let serving = serve_with(&sandbox, 400, "host:dir");
    let a = log_on(&serving, "a", "dir").unwrap();
    let (fail, had) = exhaust(&a, "a");
    assert_eq!(fail, TOO_MANY_OPENED_FILES, "after {had}");
    assert!(had >= 100, "{had}");
    // Half of the descriptors are left: another finds room, and two together leave the server some.
    let b = log_on(&serving, "b", "dir").unwrap();
    let (fail, had) = exhaust(&b, "b");
    assert_eq!(fail, TOO_MANY_OPENED_FILES, "after {had}");
    assert!(had >= 50, "{had}");
    let c = log_on(&serving, "c", "dir").unwrap();
    c.echo().unwrap();
    // What is refused has made nothing.
    let made = fs::read_dir(sandbox.path("dir")).unwrap();
    assert!(
        made.map(|e| e.unwrap().file_name())
            .all(|name| name != format!("b{had}").as_str())
    );
    drop(a);
    assert!(in_time(|| c.open("c", &make()).is_ok()));
    serving.stop("-TERM");
}

#[test]
fn connections_that_take_all_descriptors_do_not_end_the_server() {
    let sandbox = Sandbox::empty();
    let serving = serve_with(&sandbox, 30, "mem:16M");
    let flood: Vec<_> = ["smb", "nfs"].into_iter().cycle().take(120).collect();
    let flood: Vec<_> = flood
        .into_iter()
        .map(|of| TcpStream::connect(address(&serving, of)))
        .collect();
    assert!(flood.iter().all(Result::is_ok));
    // Those who say nothing give way, even while they stay.
    assert!(in_time(|| log_on(&serving, "root", "mem").is_ok()));
    drop(flood);
    let port = serving.port();
    let options = format!("port={port},mountport={port}");
    let list = ["ls", "-o", &options, "nfs://127.0.0.1/mem:/"];
    assert!(in_time(|| sandbox.run_words(&list).code == 0));
    serving.stop("-TERM");
}

#[test]
fn who_says_nothing_keeps_nobody_out() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:16M");
    let connect = |of: &str| TcpStream::connect(address(&serving, of)).unwrap();
    let silent: Vec<_> = (0..100).map(|_| [connect("smb"), connect("nfs")]).collect();
    log_on(&serving, "root", "mem").unwrap();
    let port = serving.port();
    let options = format!("port={port},mountport={port}");
    let list = ["ls", "-o", &options, "nfs://127.0.0.1/mem:/"];
    sandbox.run_words(&list).ok();
    drop(silent);
    serving.stop("-TERM");
}

/// Shuts down the socket by which the process listens at this port, as a fault of the host's
/// network might.
fn break_listener(process: u32, port: u16) {
    let pid = Pid::from_raw(process.cast_signed()).unwrap();
    let process_fd = pidfd_open(pid, PidfdFlags::empty()).unwrap();
    let is_listener = |fd: i32| {
        let socket = pidfd_getfd(&process_fd, fd, PidfdGetfdFlags::empty()).ok()?;
        let listener = TcpListener::from(socket);
        let is_it = listener.local_addr().is_ok_and(|at| at.port() == port);
        is_it.then_some(listener)
    };
    let all = fs::read_dir(format!("/proc/{process}/fd")).unwrap();
    let numbers = all.map(|fd| fd.unwrap().file_name().to_str().unwrap().parse().unwrap());
    let numbers: Vec<i32> = numbers.collect();
    let listener = numbers.into_iter().find_map(is_listener).unwrap();
    let socket = TcpStream::from(std::os::fd::OwnedFd::from(listener));
    socket.shutdown(Shutdown::Both).unwrap();
}

#[test]
fn a_server_that_cannot_listen_any_more_ends_the_command_with_a_word() {
    for (of, name) in [("smb", "SMB"), ("nfs", "NFS")] {
        let sandbox = Sandbox::empty();
        let serving = serve(&sandbox, "mem:16M");
        break_listener(serving.id(), address(&serving, of).port());
        // Signal 0 asks only whether it is there; it ends by itself.
        let ended = serving.end("-0");
        assert_eq!(ended.code, 1, "{}", ended.err);
        let words = format!("volary: the {name} server has ended by itself");
        assert!(ended.err.starts_with(&words), "{}", ended.err);
        assert_eq!(ended.err.lines().count(), 2, "{}", ended.err);
    }
}

#[test]
fn a_search_pattern_of_thousands_of_characters_is_refused() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:16M");
    let a = log_on(&serving, "root", "mem").unwrap();
    let dir = a.open("", &directory()).unwrap().open;
    let pattern = "*a".repeat(16_000);
    assert_eq!(a.find(dir, &pattern), Err(OBJECT_NAME_INVALID));
    let dir = a.open("", &directory()).unwrap().open;
    assert_eq!(a.find(dir, &"*".repeat(500)), Ok(Vec::new()));
    serving.stop("-TERM");
}

#[test]
fn zeroing_a_hole_takes_no_room() {
    let sandbox = Sandbox::empty();
    open_directory(&sandbox);
    for (volume, share) in [("host:dir", "dir"), ("mem:16M", "mem")] {
        let serving = serve(&sandbox, volume);
        let a = log_on(&serving, "root", share).unwrap();
        let file = a.open("f", &make()).unwrap().open;
        a.write(file, 8 << 20, b"data").unwrap();
        a.set_size(file, 128 << 20).unwrap();
        let range = [0_u64, 128 << 20].map(u64::to_le_bytes).concat();
        a.control(file, SET_ZERO_DATA, &range).unwrap();
        assert_eq!(a.read(file, 8 << 20, 4).unwrap(), [0; 4]);
        // FileStandardInformation: AllocationSize.
        let info = a.query(file, 1, 5).unwrap();
        let room = u64::from_le_bytes(info[..8].try_into().unwrap());
        assert!(room <= 1 << 20, "{volume}: {room} bytes");
        serving.stop("-TERM");
    }
}

/// Resident memory of a process, in MiB.
fn memory(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find(|l| l.starts_with("VmRSS:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib >> 10
}

/// Asks for locks that wait for each other, each in a message of a million bytes.
fn wait_for_locks(client: &Client, file: Open, count: usize) {
    client.lock(file, 0..1, true).unwrap();
    let other = client.open("locked", &make()).unwrap().open;
    for _ in 0..count {
        let waiting = client.clone();
        // It ends with the connection.
        thread::spawn(move || waiting.lock_waiting_padded(other, 0..1, 1_000_000));
        client.echo().unwrap();
    }
}

#[test]
fn locks_that_wait_keep_no_long_messages() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:64M");
    let a = log_on(&serving, "root", "mem").unwrap();
    let file = a.open("locked", &make()).unwrap().open;
    let before = memory(serving.id());
    wait_for_locks(&a, file, 40);
    let after = memory(serving.id());
    assert!(after < before + 20, "{before} MiB, then {after} MiB");
    stop_soon(serving);
}

#[test]
fn nobody_keeps_a_server_from_its_end() {
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "--squash none mem:64M");
    let a = log_on(&serving, "root", "mem").unwrap();
    let file = a.open("locked", &make()).unwrap().open;
    wait_for_locks(&a, file, 3);
    // Zeros for a hole that nobody tells from zeros: days of work.
    let port = serving.port();
    let far = format!("-o port={port},mountport={port} nfs://127.0.0.1/mem");
    let relay = serve(&sandbox, &far);
    let b = log_on(&relay, "root", "mem").unwrap();
    let long = b.open("long", &make()).unwrap().open;
    b.set_size(long, 1 << 40).unwrap();
    let zeroing = b.clone();
    thread::spawn(move || {
        let range = [0_u64, 1 << 40].map(u64::to_le_bytes).concat();
        zeroing.control(long, SET_ZERO_DATA, &range)
    });
    b.echo().unwrap();
    let mut half: Vec<TcpStream> = Vec::new();
    for (of, begin) in [("smb", [0, 0, 0, 80]), ("nfs", [0x80, 0, 0, 80])] {
        half.extend((0..8).map(|_| TcpStream::connect(address(&serving, of)).unwrap()));
        for stream in &mut half {
            // The first eight have begun already.
            let _ = stream.write_all(&begin);
        }
    }
    stop_soon(relay);
    stop_soon(serving);
}

#[test]
fn a_name_for_what_is_anothers_needs_rights_on_it() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can act as two users");
        return;
    }
    let sandbox = Sandbox::empty();
    open_directory(&sandbox);
    for (name, mode) in [("private", 0o600), ("program", 0o4777), ("common", 0o666)] {
        let path = sandbox.path("dir").join(name);
        fs::write(&path, name).unwrap();
        chown(&path, Some(1000), Some(1000)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let serving = serve(&sandbox, "-o suid host:dir");
    let link = |user: &str, name: &str, to: &str| {
        let client = log_on(&serving, user, "dir").unwrap();
        let file = client.open(name, &How::open(access::READ_ATTRIBUTES));
        client.link(file.unwrap().open, to)
    };
    let refused = Err(Fail::Status(status::ACCESS_DENIED));
    assert_eq!(link("b", "private", "p"), refused);
    assert_eq!(link("b", "program", "q"), refused);
    assert_eq!(link("b", "common", "r"), Ok(()));
    assert_eq!(link("a", "private", "s"), Ok(()));
    // By NFS it is the same.
    let port = serving.port();
    for (name, code) in [("private", 1), ("common", 0)] {
        let from = format!("nfs://127.0.0.1/dir:/{name}");
        let to = format!("nfs://127.0.0.1/dir:/{name}.b");
        let options = format!("port={port},mountport={port},uid=1001,gid=1001");
        let words = ["ln", "-o", &options, &from, &to];
        let linked = sandbox.run_words(&words);
        assert_eq!(linked.code, code, "{name}: {}", linked.err);
    }
    serving.stop("-TERM");
}

/// Returns a descriptor that gives everybody all rights but these (MS-DTYP 2.4.6): an entry that denies
/// them comes first.
fn denying(rights: u32) -> Vec<u8> {
    let everyone = [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0];
    let entry = |kind: u8, mask: u32| {
        let head = [kind, 0, 20, 0];
        [&head[..], &mask.to_le_bytes(), &everyone].concat()
    };
    let entries = [entry(1, rights), entry(0, 0x1f_01ff)].concat();
    let len = u16::try_from(8 + entries.len()).unwrap().to_le_bytes();
    let list = [&[2, 0][..], &len, &[2, 0, 0, 0], &entries].concat();
    // Self-relative, with a DACL right behind the header.
    let mut descriptor = vec![1, 0, 4, 0x80];
    descriptor.extend([0; 12]);
    descriptor.extend(20_u32.to_le_bytes());
    descriptor.extend(list);
    descriptor
}

#[test]
fn what_may_not_be_deleted_is_not_replaced_either() {
    const WRITE_DAC: u32 = 0x4_0000;
    const DELETE_CHILD: u32 = 0x40;
    let sandbox = Sandbox::empty();
    let serving = serve(&sandbox, "mem:16M");
    let a = log_on(&serving, "root", "mem").unwrap();
    // Whoever may delete all in a directory may delete each.
    let dir = How {
        access: access::READ | WRITE_DAC,
        disposition: disposition::CREATE,
        ..directory()
    };
    let dir = a.open("d", &dir).unwrap().open;
    a.set_security(dir, 4, &denying(DELETE_CHILD)).unwrap();
    let new = a.open("d\\new", &make()).unwrap().open;
    for name in ["d\\kept", "d\\plain"] {
        let how = How {
            access: make().access | WRITE_DAC,
            ..make()
        };
        let file = a.open(name, &how).unwrap().open;
        if name == "d\\kept" {
            a.set_security(file, 4, &denying(access::DELETE)).unwrap();
        }
        a.close(file).unwrap();
    }
    let refused = Err(Fail::Status(status::ACCESS_DENIED));
    let deletes = a.open("d\\kept", &How::open(access::DELETE)).map(drop);
    assert_eq!(deletes, refused);
    assert_eq!(a.rename(new, "d\\kept"), refused);
    assert_eq!(a.rename(new, "d\\plain"), Ok(()));
    serving.stop("-TERM");
}
