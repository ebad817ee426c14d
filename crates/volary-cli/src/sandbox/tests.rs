//! What is refused inside, by a process that is sandboxed as a server is, and tries.
//!
//! The test starts its own program once more, for one test that does nothing but when it is told to
//! by the environment: releases have no such thing.

use super::{Level, Needs, RunAs, begin};
use rustix::net::netlink::SOCK_DIAG;
use rustix::net::{AddressFamily as Family, SocketType, socket};
use rustix::process::{Resource, getrlimit, prlimit};
use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::mpsc::channel;
use std::thread;
use volary::Source;

const DIR: &str = "VOLARY_TEST_PROBE_DIR";
const KIND: &str = "VOLARY_TEST_PROBE_KIND";

/// Returns whether it was done, or refused for want of rights; anything else is no answer.
fn is_done<T>(what: &str, done: std::io::Result<T>) -> bool {
    match done {
        Ok(_) => true,
        Err(e) if e.kind() == ErrorKind::PermissionDenied => false,
        Err(e) => panic!("{what}: {e}"),
    }
}

/// What can be done, each by a name.
type Found = BTreeMap<&'static str, bool>;

/// Returns what can be done here; without anything given up, all of it.
fn probe(dir: &Path) -> Found {
    let mut found = Found::new();
    probe_files(dir, &mut |what, done| {
        found.insert(what, is_done(what, done));
    });
    probe_calls(&mut |what, done| {
        found.insert(what, is_done(what, done));
    });
    found
}

const NOW: rustix::fs::Timespec = rustix::fs::Timespec {
    tv_sec: 0,
    tv_nsec: rustix::fs::UTIME_NOW,
};

type Note<'a> = &'a mut dyn FnMut(&'static str, std::io::Result<()>);

fn probe_files(dir: &Path, note: Note<'_>) {
    let made = |name: &str| fs::write(dir.join(name), b"x");
    let read = |name: &str| fs::read(dir.join(name)).map(drop);
    note("read the image", read("image"));
    let write = fs::OpenOptions::new().write(true).open(dir.join("image"));
    note("write the image", write.map(drop));
    note("make a file that is served", made("served/new"));
    let places = ["served/there", "served/sub/there"].map(|name| dir.join(name));
    let moved = fs::rename(&places[0], &places[1]);
    let moved = moved.and_then(|()| fs::rename(&places[1], &places[0]));
    note("rename between directories that are served", moved);
    note("make a file beside the key", made("kept/new"));
    note("read beside the key", read("kept/key"));
    note("read another file", read("other"));
    let around = read("served/../other");
    note("read another file by a served directory", around);
    note("write another file", made("other"));
    note("make another file", made("another"));
    note("list another directory", fs::read_dir(dir).map(drop));
    let other = dir.join("other");
    let closed = fs::Permissions::from_mode(0o600);
    note(
        "change another file's mode",
        fs::set_permissions(&other, closed),
    );
    let own = fs::metadata(&other).map(|facts| (facts.uid(), facts.gid()));
    let given = own.and_then(|(uid, gid)| chown(&other, Some(uid), Some(gid)));
    note("give another file away", given);
    let now = rustix::fs::Timestamps {
        last_access: NOW,
        last_modification: NOW,
    };
    let flags = rustix::fs::AtFlags::empty();
    let touched = rustix::fs::utimensat(rustix::fs::CWD, &other, &now, flags);
    note("change another file's times", touched.map_err(Into::into));
    note("read of the host", read("/etc/passwd"));
    note("look at itself", read("/proc/self/mountinfo"));
    let other = format!("/proc/{}/environ", std::os::unix::process::parent_id());
    note("look into another process", read(&other));
}

fn probe_calls(note: Note<'_>) {
    let started = Command::new("/bin/true").status();
    note("start a program", started.map(drop));
    let thread = thread::Builder::new().spawn(|| ());
    note("start a thread", thread.map(drop));
    let ours = |family, kind, protocol| Ok(socket(family, kind, protocol).map(drop)?);
    let tcp = ours(Family::INET, SocketType::STREAM, None);
    note("make a TCP socket", tcp);
    note(
        "make a UDP socket",
        UdpSocket::bind("127.0.0.1:0").map(drop),
    );
    let unix = ours(Family::UNIX, SocketType::STREAM, None);
    note("make a Unix socket", unix);
    note("make a pair of sockets", UnixStream::pair().map(drop));
    let diag = ours(Family::NETLINK, SocketType::DGRAM, Some(SOCK_DIAG));
    note("ask whose a socket is", diag);
    let routes = ours(Family::NETLINK, SocketType::DGRAM, None);
    note("ask of routes", routes);
    note("listen", TcpListener::bind("127.0.0.1:0").map(drop));
    let becomes = nix::unistd::setuid(nix::unistd::getuid());
    note("become another", becomes.map_err(Into::into));
    let signal = rustix::process::test_kill_process(rustix::process::getpid());
    note("send a signal", signal.map_err(Into::into));
    let (files, parent) = (Resource::Nofile, rustix::process::getppid());
    let bounded = prlimit(parent, files, getrlimit(files)).map(drop);
    note("bound another process", bounded.map_err(Into::into));
}

/// The first is a server of an image alone; the others serve a directory as well.
const IN_THREADS: [&str; 4] = ["image", "nfs", "smb", "mount"];

/// Returns what a server of one kind needs, with the files of the test.
fn needs(kind: &str, dir: &Path) -> Needs {
    let mut needs = Needs::new();
    let image = Source::parse(dir.join("image").as_os_str().as_encoded_bytes()).unwrap();
    needs.volume(&image, &[], &[], false);
    let served = Source::Host {
        path: dir.join("served"),
    };
    if kind != "image" {
        needs.volume(&served, &[], &[], false);
    }
    match kind {
        "nfs" => {
            needs.nfs(0);
            needs.kept_in(&dir.join("kept"));
        }
        "image" | "smb" => needs.listens_on(0),
        "mount" => needs.fuse(),
        _ => {}
    }
    needs
}

/// Does nothing, but where [`probed`] starts it.
#[test]
fn inside() {
    let (Some(dir), Ok(kind)) = (std::env::var_os(DIR), std::env::var(KIND)) else {
        return;
    };
    let dir = PathBuf::from(dir);
    let level = match kind.as_str() {
        "off" => Level::Off,
        _ => Level::On,
    };
    let sandbox = begin(level, &needs(&kind, &dir)).unwrap();
    // A thread that was there before the last was given up.
    let (go, wait) = channel::<()>();
    let theirs = dir.clone();
    let before = thread::spawn(move || {
        wait.recv().unwrap();
        probe(&theirs)
    });
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    sandbox.settle(&RunAs::find(None).unwrap()).unwrap();
    go.send(()).unwrap();
    let found = before.join().unwrap();
    assert_eq!(found, probe(&dir), "another thread may more");
    let at = listener.local_addr().unwrap();
    let mut found: Vec<String> = found
        .into_iter()
        .map(|(what, done)| format!("{}{what}", if done { "+" } else { "-" }))
        .collect();
    let connected = is_done("connect", TcpStream::connect(at));
    found.push(format!("{}connect", if connected { "+" } else { "-" }));
    println!("\n{}", found.join("\n"));
}

/// Returns what is done (`+`) and refused (`-`) in a process of its own that is sandboxed for `kind`.
fn probed(kind: &str) -> Vec<String> {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir_all(dir.path().join("served/sub")).unwrap();
    fs::create_dir(dir.path().join("kept")).unwrap();
    for file in ["image", "other", "kept/key", "served/there"] {
        fs::write(dir.path().join(file), b"x").unwrap();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::tests::inside", "--nocapture"])
        .env(DIR, dir.path())
        .env(KIND, kind)
        .output()
        .unwrap();
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let err = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{kind}: {out}{err}");
    let is_finding = |line: &&str| line.starts_with(['+', '-']);
    out.lines().filter(is_finding).map(Into::into).collect()
}

#[test]
fn a_process_that_was_taken_over_opens_no_file_makes_no_socket_and_starts_nothing() {
    if !super::files::is_there() {
        println!("SKIPPED: no Landlock");
        return;
    }
    // Without a sandbox all of it can be done: the tries are real.
    let off = probed("off");
    assert!(
        off.len() > 20 && off.iter().all(|line| line.starts_with('+')),
        "{off:?}"
    );
    let always = [
        "read the image",
        "write the image",
        "look at itself",
        "start a thread",
    ];
    let with_tree = [
        "make a file that is served",
        "rename between directories that are served",
        // Landlock does not know these: SECURITY.md says so.
        "change another file's mode",
        "give another file away",
        "change another file's times",
    ];
    let with_nfs = [
        "make a file beside the key",
        // Clients that wait for a lock are called back.
        "make a TCP socket",
        "connect",
    ];
    let with_clients = "ask whose a socket is";
    for kind in IN_THREADS {
        for line in probed(kind) {
            let (done, what) = line.split_at(1);
            let may = always.contains(&what)
                || kind != "image" && with_tree.contains(&what)
                || kind == "nfs" && with_nfs.contains(&what)
                || kind != "mount" && what == with_clients;
            assert_eq!(done == "+", may, "{kind}: {what}");
        }
    }
}

#[test]
fn nobody_of_the_same_user_can_look_into_its_memory() {
    // Of a process that cannot be traced, root owns what /proc has.
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "sandbox::tests::hidden", "--nocapture"])
        .env(KIND, "hidden")
        .output()
        .unwrap();
    assert!(output.status.success());
}

/// Does nothing, but where the test before starts it.
#[test]
fn hidden() {
    if std::env::var(KIND).as_deref() != Ok("hidden") {
        return;
    }
    super::hide_memory();
    assert_eq!(fs::metadata("/proc/self/mem").unwrap().uid(), 0);
    let behaviour = rustix::process::dumpable_behavior().unwrap();
    assert_eq!(behaviour, rustix::process::DumpableBehavior::NotDumpable);
    let core = rustix::process::getrlimit(rustix::process::Resource::Core);
    assert_eq!((core.current, core.maximum), (Some(0), Some(0)));
}
