//! Who attacks a server that was started with its defaults.

mod shares;
mod smb;

use crate::sandbox::{PROGRAM, Run, Sandbox};
use crate::serving::{Serving, client};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::process::Command;

/// An ordinary user, to whom the files belong that others are after.
const VICTIM: u32 = 1000;
/// Another one, who attacks.
const NOBODY: u32 = 65534;

/// Returns a directory of the host that root serves: `secret` is the victim's alone, `system` is for the
/// group 6, that of disks on Debian, and anybody may make files.
fn served(words: &str) -> Option<(Sandbox, Serving)> {
    if !rustix::process::geteuid().is_root() {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(!ci, "this has to be run by root");
        println!("skipped: only root can act as two users");
        return None;
    }
    let sandbox = Sandbox::empty();
    let dir = sandbox.path("dir");
    fs::create_dir(&dir).unwrap();
    fs::set_permissions(&dir, fs::Permissions::from_mode(0o777)).unwrap();
    for (name, uid, gid, mode) in [("secret", VICTIM, VICTIM, 0o600), ("system", 0, 6, 0o640)] {
        let path = dir.join(name);
        fs::write(&path, format!("{name}\n")).unwrap();
        chown(&path, Some(uid), Some(gid)).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let serving = Serving::start(&sandbox, words);
    Some((sandbox, serving))
}

/// Runs the program as this user of the host, over NFS and claiming to be `claims`.
fn call(serving: &Serving, uid: u32, claims: &str, words: &[&str]) -> Run {
    let port = serving.port();
    let mut command = Command::new("setpriv");
    let (uid, options) = (
        uid.to_string(),
        format!("port={port},mountport={port},{claims}"),
    );
    command.args(["--reuid", &uid, "--regid", &uid, "--clear-groups", PROGRAM]);
    command
        .arg(words[0])
        .args(["-o", &options])
        .args(&words[1..]);
    Run::of(&command.output().unwrap())
}

/// Reads a file as this user of the host by libnfs, claiming to be the victim; `None` without
/// libnfs's programs.
fn libnfs(serving: &Serving, uid: u32) -> Option<Run> {
    let port = serving.port();
    let url = format!(
        "nfs://127.0.0.1/dir/secret?version=3&nfsport={port}&mountport={port}&uid=1000&gid=1000"
    );
    let uid = uid.to_string();
    let words = [
        "--reuid",
        &uid,
        "--regid",
        &uid,
        "--clear-groups",
        "nfs-cat",
        &url,
    ];
    client(&Sandbox::empty(), "setpriv", &words)
}

const SECRET: &str = "nfs://127.0.0.1/dir:/secret";
const SYSTEM: &str = "nfs://127.0.0.1/dir:/system";
const NEW: &str = "nfs://127.0.0.1/dir:/new";

#[test]
fn a_user_of_this_host_is_nobody_else_by_nfs() {
    let Some((sandbox, serving)) = served("host:dir") else {
        return;
    };
    // Who is who they say.
    let read = call(&serving, VICTIM, "uid=1000,gid=1000", &["cat", SECRET]);
    assert_eq!(read.ok(), "secret\n");
    // Root, as the kernel's client is, calls for others.
    let read = call(&serving, 0, "uid=1000,gid=1000", &["cat", SECRET]);
    assert_eq!(read.ok(), "secret\n");
    for (claims, file) in [
        ("uid=1000,gid=1000", SECRET),
        ("uid=65534,gid=6", SYSTEM),
        ("uid=0,gid=0", SYSTEM),
    ] {
        let read = call(&serving, NOBODY, claims, &["cat", file]);
        assert!(read.fails(1).contains("permission denied"), "{claims}");
    }
    if let Some(read) = libnfs(&serving, VICTIM) {
        assert_eq!(read.out, "secret\n", "{}", read.err);
        let read = libnfs(&serving, NOBODY).unwrap();
        assert!(read.code != 0 && read.out.is_empty(), "{}", read.out);
    }
    let made = call(&serving, NOBODY, "uid=1000,gid=6", &["touch", NEW]);
    made.ok();
    let made = fs::metadata(sandbox.path("dir/new")).unwrap();
    assert_eq!((made.uid(), made.gid()), (NOBODY, NOBODY));
    serving.stop("-TERM");
}

#[test]
fn no_squash_makes_a_user_of_this_host_nobody_else() {
    let Some((_sandbox, serving)) = served("--squash none host:dir") else {
        return;
    };
    for claims in ["uid=0,gid=0", "uid=1000,gid=1000"] {
        let read = call(&serving, NOBODY, claims, &["cat", SECRET]);
        assert!(read.fails(1).contains("permission denied"), "{claims}");
    }
    serving.stop("-TERM");
}

#[test]
fn a_key_that_another_may_know_is_refused() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::empty();
    sandbox.write_secret("mine", &[7; 16]);
    symlink("mine", sandbox.path("link")).unwrap();
    // Nobody waits for a fifo.
    let mut fifo = Command::new("mkfifo");
    assert!(fifo.arg(sandbox.path("fifo")).status().unwrap().success());
    let told = |key: &str| {
        let line = format!("serve --nfs 127.0.0.1:0 --key {key} mem:16M");
        sandbox.run(&line).fails(2)
    };
    assert!(told("link").contains("link: is a symlink; name the file itself"));
    assert!(told("fifo").contains("fifo: is no file"));
    if rustix::process::geteuid().is_root() {
        chown(sandbox.path("mine"), Some(VICTIM), None).unwrap();
        assert!(told("mine").contains("mine: belongs to user 1000, who knows the key"));
        chown(sandbox.path("mine"), Some(0), None).unwrap();
    }
    // One that is made is its user's alone, and so are the directories that it needs.
    let line = "--key new/dir/key --nfs 127.0.0.1:0 mem:16M";
    Serving::start_with(&sandbox, line).stop("-TERM");
    for (name, mode) in [("new", 0o700), ("new/dir", 0o700), ("new/dir/key", 0o600)] {
        let made = fs::metadata(sandbox.path(name)).unwrap();
        assert_eq!(made.mode() & 0o7777, mode, "{name}");
    }
}

#[test]
fn the_list_of_clients_with_locks_is_written_beside_nothing_that_is_there() {
    use std::os::unix::fs::symlink;
    let sandbox = Sandbox::empty();
    sandbox.write("precious", b"precious");
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let address = format!("127.78.{high}.{low}:2049");
    let list = format!("key.{address}.locks");
    symlink("precious", sandbox.path(&format!("{list}.new"))).unwrap();
    let line = format!("--key key --nfs {address} mem:16M");
    Serving::start_with(&sandbox, &line).stop("-TERM");
    assert_eq!(sandbox.read("precious"), b"precious");
    let mode = fs::metadata(sandbox.path(&list)).unwrap().mode();
    assert_eq!(mode & 0o7777, 0o600);
    fs::remove_file(sandbox.path(&list)).unwrap();
    symlink("precious", sandbox.path(&list)).unwrap();
    let told = sandbox.run(&format!("serve {line}")).fails(2);
    assert!(told.contains(&list), "{told}");
}

#[test]
fn nobody_makes_a_program_that_runs_as_another_on_a_served_directory() {
    for (words, keeps) in [("host:dir", false), ("-o suid host:dir", true)] {
        let Some((sandbox, serving)) = served(words) else {
            return;
        };
        call(&serving, 0, "uid=1000,gid=6", &["touch", NEW]).ok();
        let made = fs::metadata(sandbox.path("dir/new")).unwrap();
        assert_eq!((made.uid(), made.gid()), (VICTIM, NOBODY));
        call(&serving, 0, "uid=1000,gid=1000", &["chmod", "4755", NEW]).ok();
        let mode = fs::metadata(sandbox.path("dir/new")).unwrap().mode();
        let expected = if keeps { 0o4755 } else { 0o755 };
        assert_eq!(mode & 0o7777, expected, "{words}");
        serving.stop("-TERM");
    }
}
