//! What `serve` and `mount` have given up once they have started.

use crate::mounting::Mounting;
use crate::sandbox::{PROGRAM, Run, Sandbox};
use crate::serving::Serving;
use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::{Command, Stdio};

/// A user that every Debian has.
const USER: &str = "daemon";
const UID: u32 = 1;

/// Returns the fields of all threads' status; one value, if all have the same.
fn status(id: u32) -> HashMap<String, String> {
    let mut all: HashMap<String, String> = HashMap::new();
    for thread in fs::read_dir(format!("/proc/{id}/task")).unwrap() {
        let text = fs::read_to_string(thread.unwrap().path().join("status")).unwrap();
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap();
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            let before = all.entry(field.to_owned()).or_insert_with(|| value.clone());
            if *before != value {
                *before = "threads differ".to_owned();
            }
        }
    }
    all
}

/// Those of a process that has given up what it can.
fn is_confined(id: u32) {
    let status = status(id);
    assert_eq!(status["NoNewPrivs"], "1");
    // A filter.
    assert_eq!(status["Seccomp"], "2");
    // Nothing of CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_PERFMON, CAP_NET_ADMIN.
    let rights = u64::from_str_radix(&status["CapPrm"], 16).unwrap();
    for right in [21, 19, 38, 12] {
        assert_eq!(rights >> right & 1, 0, "right {right}");
    }
    let limits = fs::read_to_string(format!("/proc/{id}/limits")).unwrap();
    let core = limits.lines().find(|line| line.starts_with("Max core"));
    let core: Vec<&str> = core.unwrap().split_whitespace().collect();
    assert_eq!(core[4..6], ["0", "0"]);
    let memory = fs::metadata(format!("/proc/{id}/mem")).unwrap();
    assert_eq!(memory.uid(), 0);
}

/// Returns whether this kernel has all that can be given up; if not, whoever asks for it is told.
fn is_whole(sandbox: &Sandbox) -> bool {
    let said = sandbox.run("mount --sandbox strict mem: nowhere").fails(1);
    let lacks = said.contains("--sandbox strict: this system lacks ");
    assert!(lacks || said.contains("does not exist"), "{said}");
    !lacks
}

fn is_root() -> bool {
    let is = rustix::process::geteuid().is_root();
    if !is {
        println!("SKIPPED: not root");
    }
    is
}

#[test]
fn a_server_gives_up_what_it_does_not_need_unless_told_not_to() {
    let sandbox = Sandbox::new();
    let users = "me:0:0:00112233445566778899aabbccddeeff\n";
    sandbox.write_secret("users", users.as_bytes());
    for words in [
        "disk.img",
        "--smb 127.0.0.1:0 --users users unix.img",
        "host:tree",
        "--sandbox strict disk.img host:tree",
    ] {
        if words.contains("strict") && !is_whole(&sandbox) {
            continue;
        }
        let serving = Serving::start(&sandbox, words);
        is_confined(serving.id());
        serving.stop("-TERM");
    }
    for words in ["--no-sandbox disk.img", "--sandbox off disk.img"] {
        let serving = Serving::start(&sandbox, words);
        let status = status(serving.id());
        assert_eq!((&*status["NoNewPrivs"], &*status["Seccomp"]), ("0", "0"));
        serving.stop("-TERM");
    }
}

#[test]
fn a_mount_gives_up_what_it_does_not_need_and_is_unmounted_all_the_same() {
    let sandbox = Sandbox::new();
    for words in [
        &["disk.img"][..],
        &["host:tree"],
        &["--sandbox", "strict", "-o", "nosymfollow", "unix.img"],
    ] {
        if words.contains(&"strict") && !is_whole(&sandbox) {
            continue;
        }
        let Some(mounting) = Mounting::start(&sandbox, words) else {
            return;
        };
        is_confined(mounting.id());
        assert!(fs::read_dir(sandbox.path("mnt")).unwrap().count() > 0);
        fs::write(sandbox.path("mnt/new.txt"), b"new").unwrap();
        assert_eq!(fs::read(sandbox.path("mnt/new.txt")).unwrap(), b"new");
        mounting.terminate();
        assert_eq!(fs::read_dir(sandbox.path("mnt")).unwrap().count(), 0);
    }
    sandbox.is_clean("disk.img");
}

#[test]
fn an_ordinary_user_s_mount_is_confined_and_unmounted_too() {
    let sandbox = Sandbox::new();
    let has_helper = Command::new("fusermount3").arg("-V").output().is_ok();
    if !is_root() || !crate::serving::can_mount() || !has_helper {
        return;
    }
    let facts = fs::metadata("/dev/fuse").unwrap();
    if facts.mode() & 0o006 != 0o006 {
        println!("SKIPPED: /dev/fuse is root's alone");
        return;
    }
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    for name in ["mnt", "unix.img"] {
        chown(sandbox.path(name), Some(UID), Some(UID)).unwrap();
    }
    let user = |program: &str, words: &[&str]| {
        let mut command = Command::new("setpriv");
        let ids = [format!("--reuid={UID}"), format!("--regid={UID}")];
        command
            .args(ids)
            .args(["--clear-groups", program])
            .args(words);
        command.current_dir(sandbox.path(""));
        command
    };
    let mounted = user(PROGRAM, &["mount", "--tell", "unix.img", "mnt"]);
    let mounting = Mounting::of(&sandbox, mounted);
    is_confined(mounting.id());
    let listed = Run::of(&user("ls", &["mnt"]).output().unwrap());
    assert!(listed.out.contains("README.txt"), "{}", listed.err);
    mounting.terminate();
    assert_eq!(fs::read_dir(sandbox.path("mnt")).unwrap().count(), 0);
}

#[test]
fn layers_reach_their_own_files() {
    let sandbox = Sandbox::new();
    sandbox.write_secret("pass", b"word\n");
    sandbox.run("mkfs -q -t ffs2 --size 16M new.img").ok();
    let words = "--layer crypt=pass --layer audit=log,reads --squash none new.img";
    let serving = Serving::start(&sandbox, words);
    is_confined(serving.id());
    let place = format!("nfs://127.0.0.1:{}/new?uid=0:/made", serving.port());
    sandbox.run(&format!("cp tree/a.txt {place}")).ok();
    serving.stop("-TERM");
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    assert!(log.contains("made"), "{log}");
    assert!(!sandbox.path("log,reads").exists());
}

#[test]
fn a_volume_that_is_served_and_mounted_is_unmounted_at_the_end() {
    let sandbox = Sandbox::new();
    if !crate::serving::can_mount() {
        return;
    }
    let serving = Serving::start(&sandbox, "--mount mnt disk.img");
    is_confined(serving.id());
    assert!(sandbox.path("mnt/README.txt").exists());
    serving.stop("-TERM");
    assert!(!sandbox.path("mnt/README.txt").exists());
}

/// Serves as [`USER`] for good, a directory of theirs and an image of root's.
fn run_as(sandbox: &Sandbox, key: &str) -> Serving {
    let words = [
        "serve",
        "--json",
        "--nfs",
        "127.0.0.1:0",
        "--squash",
        "none",
        "--run-as",
        USER,
        "--key",
        key,
        "disk.img",
        "host:theirs",
    ];
    Serving::of(sandbox.command(&words))
}

#[test]
fn a_server_runs_as_another_for_good_and_opens_what_that_one_may() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::set_permissions(sandbox.path("disk.img"), fs::Permissions::from_mode(0o600)).unwrap();
    for dir in ["theirs", "state"] {
        fs::create_dir(sandbox.path(dir)).unwrap();
        chown(sandbox.path(dir), Some(UID), Some(UID)).unwrap();
    }
    sandbox.write_secret("theirs/secret", b"root's");
    // Made as root before, key and all: it goes on with it.
    let before = Serving::of(sandbox.command(&[
        "serve",
        "--json",
        "--nfs",
        "127.0.0.1:0",
        "--key",
        "state/key",
        "disk.img",
    ]));
    before.stop("-TERM");
    let made = sandbox.read("state/key");
    for _ in 0..2 {
        let serving = run_as(&sandbox, "state/key");
        assert_eq!(serving.said["run_as"], USER);
        is_confined(serving.id());
        let status = status(serving.id());
        let ids = format!("{UID} {UID} {UID} {UID}");
        assert_eq!((&status["Uid"], &status["Gid"]), (&ids, &ids));
        assert!(!status["Groups"].split(' ').any(|group| group == "0"));
        for held in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(status[held], "0000000000000000", "{held}");
        }
        let url = |path: &str| format!("nfs://127.0.0.1:{}{path}", serving.port());
        // The image is root's, and was opened before.
        sandbox
            .run(&format!("cp tree/a.txt {}:/new.txt", url("/disk?uid=0")))
            .ok();
        // On the host it is that user, whoever calls.
        let refused = sandbox.run(&format!("cat {}:/secret", url("/theirs?uid=0")));
        assert_ne!(refused.code, 0, "{}", refused.out);
        sandbox
            .run(&format!("cp tree/a.txt {}:/made", url("/theirs?uid=0")))
            .ok();
        assert_eq!(
            fs::metadata(sandbox.path("theirs/made")).unwrap().uid(),
            UID
        );
        fs::remove_file(sandbox.path("theirs/made")).unwrap();
        serving.stop("-TERM");
        sandbox.run("rm disk.img:/new.txt").ok();
        assert_eq!(sandbox.read("state/key"), made);
    }
}

#[test]
fn a_directory_is_mounted_as_another_for_good() {
    if !is_root() {
        return;
    }
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.path("theirs")).unwrap();
    chown(sandbox.path("theirs"), Some(UID), Some(UID)).unwrap();
    sandbox.write_secret("theirs/secret", b"root's");
    let Some(mounting) = Mounting::start(&sandbox, &["--run-as", USER, "host:theirs"]) else {
        return;
    };
    let status = status(mounting.id());
    assert_eq!(status["Uid"], format!("{UID} {UID} {UID} {UID}"));
    fs::read(sandbox.path("mnt/secret")).unwrap_err();
    fs::write(sandbox.path("mnt/made"), b"x").unwrap();
    assert_eq!(
        fs::metadata(sandbox.path("theirs/made")).unwrap().uid(),
        UID
    );
    mounting.terminate();
}

#[test]
fn who_cannot_be_run_as_is_told_in_one_line() {
    let sandbox = Sandbox::new();
    for (words, code, told) in [
        (
            "serve --run-as nobody-there disk.img",
            2,
            "no user 'nobody-there'",
        ),
        ("serve --run-as root disk.img", 2, "that is root"),
        ("serve --run-as 0 disk.img", 2, "that is root"),
        ("mount --run-as root disk.img mnt", 2, "that is root"),
    ] {
        let said = sandbox.run(words).fails(code);
        assert!(said.contains(told), "{said}");
    }
    if !is_root() {
        return;
    }
    // A place where that user could not keep what it has to.
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    let said = sandbox
        .run(&format!("serve --run-as {USER} --key key disk.img"))
        .fails(2);
    assert!(said.contains("may not write there"), "{said}");
    // And one who is not root.
    let mut command = Command::new("setpriv");
    command
        .args(["--reuid=1000", "--regid=1000", "--clear-groups", PROGRAM])
        .args(["serve", "--run-as", USER, "mem:"])
        .stdin(Stdio::null());
    let said = Run::of(&command.output().unwrap()).fails(1);
    assert!(said.contains("only root can"), "{said}");
    assert!(Path::new("/proc/self").exists());
}

#[test]
fn drivers_forbid_unsafe_code_but_the_one_that_calls_the_system() {
    let mut others = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../drivers")).unwrap()
    {
        let path = entry.unwrap().path();
        let head = fs::read_to_string(path.join("src/lib.rs")).unwrap();
        if !head.contains("#![forbid(unsafe_code)]") {
            others.push(path.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    assert_eq!(others, ["volary-host"]);
}
