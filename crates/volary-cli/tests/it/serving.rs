//! `volary serve`, by the clients of libnfs and Samba.

use crate::sandbox::{Run, Sandbox, noise};
use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A server that runs; killed if it is still there at the end of a test.
pub(crate) struct Serving {
    child: Child,
    out: BufReader<ChildStdout>,
    /// What it said first.
    pub(crate) said: serde_json::Value,
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Serving {
    /// Serves on a free port, with a key of the sandbox.
    pub(crate) fn start(sandbox: &Sandbox, words: &str) -> Self {
        let fixed = "serve --json --nfs 127.0.0.1:0 --key key";
        let words: Vec<&str> = fixed
            .split_whitespace()
            .chain(words.split_whitespace())
            .collect();
        Self::of(sandbox.command(&words))
    }

    /// Serves with these words alone.
    pub(crate) fn start_with(sandbox: &Sandbox, words: &str) -> Self {
        let words: Vec<&str> = ["serve", "--json"]
            .into_iter()
            .chain(words.split_whitespace())
            .collect();
        Self::of(sandbox.command(&words))
    }

    pub(crate) fn of(mut command: Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        if line.is_empty() {
            let mut words = String::new();
            let mut err = child.stderr.take().unwrap();
            err.read_to_string(&mut words).unwrap();
            panic!("{words}");
        }
        Self {
            child,
            out,
            said: serde_json::from_str(&line).unwrap(),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn port(&self) -> &str {
        let address = self.said["nfs"].as_str().unwrap();
        address.rsplit(':').next().unwrap()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        let port = self.port();
        format!("nfs://127.0.0.1{path}?version=3&nfsport={port}&mountport={port}")
    }

    /// Stops it with a signal: it ends well, and says so.
    pub(crate) fn stop(self, signal: &str) {
        let mut ended = self.end(signal);
        // Who was refused what is there as well; a panic is nobody's to cause.
        let of_servers = ["volary: SMB: ", "volary: NFS: ", "volary: FUSE: "];
        let lines = ended.err.split_inclusive('\n');
        let is_ours = |line: &&str| {
            let is_log = of_servers.iter().any(|server| line.starts_with(server));
            !is_log || line.contains("panic")
        };
        ended.err = lines.filter(is_ours).collect();
        assert_eq!(ended.ok(), "{\"status\":\"stopped\"}\n");
    }

    /// Stops it with a signal: how it ended, and what it said since it served.
    pub(crate) fn end(mut self, signal: &str) -> Run {
        let id = self.child.id().to_string();
        let killed = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(killed.success());
        let (mut out, mut err) = (String::new(), String::new());
        self.out.read_to_string(&mut out).unwrap();
        let mut words = self.child.stderr.take().unwrap();
        words.read_to_string(&mut err).unwrap();
        let code = self.child.wait().unwrap().code().unwrap_or(-1);
        Run { code, out, err }
    }
}

/// Returns a client's program; `None` where there is none.
pub(crate) fn client(sandbox: &Sandbox, program: &str, words: &[&str]) -> Option<Run> {
    let mut command = Command::new("timeout");
    command.arg("300").arg(program).args(words);
    let output = command.current_dir(sandbox.path("")).output().unwrap();
    if output.status.code() == Some(127) {
        let ci = std::env::var("CI").as_deref() == Ok("true");
        assert!(
            !ci,
            "{program} is missing: cargo xtask tools, or apt-get install libnfs-utils smbclient acl"
        );
        println!("skipped: no {program}");
        return None;
    }
    Some(Run::of(&output))
}

#[test]
fn what_a_client_writes_is_on_the_image_when_it_ends() {
    for signal in ["-TERM", "-INT"] {
        let sandbox = Sandbox::new();
        let serving = Serving::start(&sandbox, "--squash none disk.img unix.img");
        assert_eq!(serving.said["status"], "serving");
        let exports: Vec<_> = serving.said["volumes"].as_array().unwrap().iter().collect();
        assert_eq!(exports[0]["export"], "/disk");
        assert_eq!(exports[1]["export"], "/unix");
        for image in ["disk", "unix"] {
            let url = serving.url(&format!("/{image}/new.bin"));
            let Some(copied) = client(&sandbox, "nfs-cp", &["tree/sub/b.bin", &url]) else {
                return;
            };
            assert_eq!(copied.code, 0, "{}", copied.err);
        }
        serving.stop(signal);
        for image in ["disk.img", "unix.img"] {
            sandbox.is_clean(image);
            sandbox.run(&format!("cp {image}:/new.bin back")).ok();
            assert!(sandbox.read("back") == noise(300_000), "{image}");
        }
    }
}

#[test]
fn a_failed_write_is_told_once_and_when_it_ends() {
    let sandbox = Sandbox::new();
    sandbox.with_a_far_directory("unix.img");
    let words = "serve --json --nfs 127.0.0.1:0 --key key --squash none unix.img";
    let words: Vec<&str> = words.split_whitespace().collect();
    let serving = Serving::of(sandbox.short_of_room(&words));
    let far = serving.url("/unix/far/file");
    let Some(copied) = client(&sandbox, "nfs-cp", &["words", &far]) else {
        return;
    };
    assert_ne!(copied.code, 0, "{}", copied.out);
    serving.end("-TERM").tells_of_a_failed_write("unix.img");
}

#[test]
fn nothing_named_is_something_to_look_at() {
    let sandbox = Sandbox::empty();
    let serving = Serving::start(&sandbox, "");
    assert_eq!(serving.said["volumes"][0]["export"], "/demo");
    if let Some(listed) = client(&sandbox, "nfs-ls", &[&serving.url("/demo")]) {
        assert!(listed.out.contains("README.txt"), "{}", listed.out);
    }
    serving.stop("-HUP");
}

#[test]
fn layers_places_and_reading_only_are_kept_to() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "--ro --layer idmap=squash:5:6 unix.img:/docs");
    assert_eq!(serving.said["volumes"][0]["export"], "/docs");
    assert_eq!(serving.said["volumes"][0]["read_only"], true);
    let url = serving.url("/docs");
    if let Some(listed) = client(&sandbox, "nfs-ls", &[&url]) {
        assert!(listed.out.contains("a.txt"), "{}", listed.out);
        assert!(!listed.out.contains("README"), "{}", listed.out);
        let refused = client(&sandbox, "nfs-cp", &["words", &serving.url("/docs/new")]);
        assert_ne!(refused.unwrap().code, 0);
    }
    serving.stop("-TERM");
    sandbox.is_clean("unix.img");
}

#[test]
fn a_file_says_what_to_serve() {
    let sandbox = Sandbox::new();
    let config = "\
nfs = '127.0.0.1:1'
[[volume]]
volume = 'disk.img'
name = 'first'
[[volume]]
volume = 'unix.img:/docs'
name = 'second'
read-only = true
layers = ['count']
";
    sandbox.write("serve.toml", config.as_bytes());
    // The command line goes first.
    let serving = Serving::start(&sandbox, "--config serve.toml");
    let volumes = serving.said["volumes"].as_array().unwrap();
    let said: Vec<_> = volumes
        .iter()
        .map(|v| {
            (
                v["export"].as_str().unwrap(),
                v["read_only"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(said, [("/first", false), ("/second", true)]);
}

#[test]
fn the_key_is_made_once_and_kept_from_others() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    let sandbox = Sandbox::new();
    let run = || Serving::start(&sandbox, "disk.img").stop("-TERM");
    run();
    let first = sandbox.read("key");
    assert_eq!(first.len(), 16);
    assert_ne!(first, [0; 16]);
    let mode = std::fs::metadata(sandbox.path("key")).unwrap().mode();
    assert_eq!(mode & 0o777, 0o600);
    run();
    assert_eq!(sandbox.read("key"), first);
    let open = std::fs::Permissions::from_mode(0o644);
    std::fs::set_permissions(sandbox.path("key"), open).unwrap();
    let words = sandbox.run("serve --key key --nfs 0 disk.img").fails(2);
    assert!(words.contains("chmod 600"), "{words}");
}

/// Each line fails with this code, and with a line that has these words.
fn tell(sandbox: &Sandbox, lines: &[(&str, i32, &str)]) {
    for (line, code, words) in lines {
        let told = sandbox.run(line).fails(*code);
        assert!(told.contains(words), "{line}: {told}");
    }
}

#[test]
fn what_cannot_be_served_is_told_in_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.toml", b"nfs = 5\n");
    sandbox.write("short", b"short");
    let first = Serving::start(&sandbox, "disk.img");
    let taken = format!("serve --key key --nfs {} unix.img", first.port());
    let elsewhere = "serve --nfs 203.0.113.1 --allow 10.0.0.1 --i-know-auth-sys --key key unix.img";
    let layer = "serve --layer none unix.img --key key --nfs 0";
    let lines = [
        (taken.as_str(), 1, "--nfs PORT"),
        ("serve --key key --nfs 0 disk.img", 3, "disk.img: in use"),
        ("serve --key key --nfs 0 none.img", 3, "none.img"),
        ("serve --key key --nfs 0 blank.img", 3, "mkfs"),
        ("serve --nfs 0.0.0.0 unix.img", 2, "--i-know-auth-sys"),
        ("serve --nfs here unix.img", 2, "127.0.0.1:2049"),
        (elsewhere, 1, "no address of this host"),
        ("serve --allow x unix.img --key key", 2, "--allow"),
        ("serve --squash some unix.img --key key", 2, "--squash"),
        ("serve --anonymous me unix.img --key key", 2, "--anonymous"),
        (layer, 2, "unknown layer"),
        ("serve --key key unix.img unix.img", 2, "/unix"),
        ("serve --key short unix.img", 2, "chmod 600"),
        ("serve --config bad.toml", 2, "bad.toml: line 1, column 7"),
        ("serve --config none.toml", 2, "none.toml"),
        ("serve --smb unix.img --key key", 2, "nobody could log on"),
        ("serve --smb --user me unix.img", 2, "VOLARY_PASSWORD"),
        ("serve --smb=here unix.img", 2, "127.0.0.1:4450"),
        ("serve --smb --users words unix.img", 2, "chmod 600"),
        ("serve -o ro=maybe --key key unix.img", 2, "ro"),
    ];
    tell(&sandbox, &lines);
    first.stop("-TERM");
    sandbox.is_clean("unix.img");
}

#[test]
fn a_file_of_users_is_its_server_s_or_root_s() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: only root can make another's file");
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.write_secret("users", b"me:0:0:00112233445566778899aabbccddeeff\n");
    let users = sandbox.path("users");
    std::os::unix::fs::chown(users, Some(65534), Some(65534)).unwrap();
    let theirs = "serve --smb=203.0.113.1:0 --users users unix.img";
    let as_them = "serve --run-as nobody --smb=203.0.113.1:0 --users users unix.img";
    let lines = [
        (theirs, 2, "belongs to user 65534"),
        (as_them, 1, "no address of this host"),
    ];
    tell(&sandbox, &lines);
    sandbox.is_clean("unix.img");
}

#[test]
fn names_layers_and_mounts_that_cannot_be_are_told_in_one_line() {
    let sandbox = Sandbox::new();
    sandbox.write_secret("users", b"me:0:0:00112233445566778899aabbccddeeff\n");
    sandbox.write_secret("bad-users", b"m/e:0:0:00112233445566778899aabbccddeeff\n");
    let casefold = "serve --layer casefold --nfs 0 --key key unix.img";
    let elsewhere = "serve --smb=203.0.113.1:0 --users users unix.img";
    let none = "serve --mount none unix.img --key key --nfs 0";
    let file = "serve --mount words unix.img --key key --nfs 0";
    let bad_users = "serve --smb=0 --users bad-users unix.img";
    let twice = "serve --smb=0 --users users --user ME unix.img";
    let lines = [
        (none, 1, "none"),
        (file, 1, "words"),
        ("serve --mount mnt disk.img unix.img", 2, "several volumes"),
        (elsewhere, 1, "no address of this host"),
        ("serve --smb --users users a:b.img", 2, "no name of a share"),
        (bad_users, 2, "bad-users: 'm/e' is no name"),
        ("serve --smb --user m:e unix.img", 2, "'m:e' is no name"),
        (twice, 2, "'me' is in the file of users as well"),
        (casefold, 2, "casefold"),
    ];
    tell(&sandbox, &lines);
    sandbox.is_clean("unix.img");
}

/// Returns whether this host can mount; says so if not.
pub(crate) fn can_mount() -> bool {
    let able = std::path::Path::new("/dev/fuse").exists() && rustix::process::geteuid().is_root();
    let ci = std::env::var("CI").as_deref() == Ok("true");
    assert!(able || !ci, "no /dev/fuse, or no right to mount");
    if !able {
        println!("skipped: no /dev/fuse, or no right to mount");
    }
    able
}

#[test]
fn a_mount_beside_the_servers_shares_files_and_locks_with_their_clients() {
    use rustix::fs::{FlockOperation, fcntl_lock};
    use volary_testkit::nfs::client::Client;
    use volary_testkit::nfs::locks::{DENIED, GRANTED, Locker};
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "--squash none --mount mnt unix.img");
    assert_eq!(serving.said["volumes"][0]["mount"], "mnt");
    let file = sandbox.path("mnt/new");
    std::fs::write(&file, b"through the mount").unwrap();
    let mut nfs = Client::new(serving.said["nfs"].as_str().unwrap().parse().unwrap());
    let root = nfs.mnt("/unix").unwrap();
    let (fh, _) = nfs.lookup(&root, b"new").unwrap();
    assert_eq!(nfs.read(&fh, 0, 100).unwrap().0, b"through the mount");
    let held = std::fs::OpenOptions::new().write(true).open(&file).unwrap();
    fcntl_lock(&held, FlockOperation::NonBlockingLockExclusive).unwrap();
    let mut locker = Locker::new(nfs, &fh, b"one", 1);
    assert_eq!(locker.lock((0, 1), true, false), DENIED);
    fcntl_lock(&held, FlockOperation::NonBlockingUnlock).unwrap();
    assert_eq!(locker.lock((0, 1), true, false), GRANTED);
    let refused = fcntl_lock(&held, FlockOperation::NonBlockingLockExclusive);
    assert_eq!(refused.unwrap_err(), rustix::io::Errno::AGAIN);
    drop(held);
    serving.stop("-TERM");
    assert!(!file.exists(), "still mounted");
    sandbox.is_clean("unix.img");
    assert_eq!(sandbox.run("cat unix.img:/new").ok(), "through the mount");
}

#[test]
fn a_mount_that_its_user_ends_leaves_the_servers_as_they_are() {
    if !can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "--squash none --mount mnt unix.img");
    std::fs::write(sandbox.path("mnt/new"), b"new").unwrap();
    let mut umount = Command::new("umount");
    assert!(umount.arg(sandbox.path("mnt")).status().unwrap().success());
    let address = serving.said["nfs"].as_str().unwrap().parse().unwrap();
    let mut nfs = volary_testkit::nfs::client::Client::new(address);
    let root = nfs.mnt("/unix").unwrap();
    assert!(nfs.lookup(&root, b"new").is_ok());
    assert!(nfs.remove(&root, b"new").is_ok());
    serving.stop("-TERM");
    sandbox.is_clean("unix.img");
}

#[test]
fn it_says_how_to_mount_each_volume() {
    let sandbox = Sandbox::new();
    let line = "serve --nfs 127.0.0.1:0 --smb 127.0.0.1:0 --user me --key key disk.img unix.img";
    let mut command = sandbox.command(&line.split(' ').collect::<Vec<_>>());
    command.env("VOLARY_PASSWORD", "secret");
    let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
    let out = BufReader::new(child.stdout.take().unwrap());
    let is_root = rustix::process::geteuid().is_root();
    let count = if is_root { 25 } else { 24 };
    let lines: Vec<String> = out.lines().take(count).map(Result::unwrap).collect();
    let of_root = "me, who runs this, is root (uid 0) on each share.";
    assert_eq!(lines.get(24).is_some_and(|line| line == of_root), is_root);
    let _ = child.kill();
    let _ = child.wait();
    assert_eq!(lines[..2], ["disk.img is /disk", "unix.img is /unix"]);
    assert!(
        lines[2].starts_with("Serving NFS on 127.0.0.1:"),
        "{lines:?}"
    );
    assert!(
        lines[13].starts_with("Serving SMB on 127.0.0.1:"),
        "{lines:?}"
    );
    let nfs = ["Linux", "macOS", "Windows", "libnfs"];
    let smb = ["Linux", "macOS", "Windows", "Samba"];
    for (at, head, name, systems) in [
        (3, "To mount /disk by NFS:", "disk", nfs),
        (8, "To mount /unix by NFS:", "unix", nfs),
        (14, "To mount disk by SMB:", "disk", smb),
        (19, "To mount unix by SMB:", "unix", smb),
    ] {
        assert_eq!(lines[at], head, "{lines:?}");
        for (line, system) in lines[at + 1..].iter().zip(systems) {
            assert!(line.trim_start().starts_with(system), "{lines:?}");
            let names_it =
                line.contains(&format!("/{name}")) || line.contains(&format!("\\{name}"));
            assert!(names_it || line.contains("portmapper"), "{line}");
        }
    }
}

#[test]
fn samba_s_client_copies_in_and_out() {
    let sandbox = Sandbox::new();
    let mut command = sandbox.command(&[
        "serve",
        "--json",
        "--smb",
        "127.0.0.1:0",
        "--nfs",
        "127.0.0.1:0",
        "--key",
        "key",
        "--user",
        "tester",
        "unix.img",
    ]);
    command.env("VOLARY_PASSWORD", "pass");
    let serving = Serving::of(command);
    let address = serving.said["smb"].as_str().unwrap().to_string();
    let port = address.rsplit(':').next().unwrap();
    let words = [
        "-p",
        port,
        "-U",
        "tester%pass",
        "-m",
        "SMB3",
        "//127.0.0.1/unix",
        "-c",
        "put tree/sub/b.bin new.bin; get new.bin back; ls",
    ];
    let Some(run) = client(&sandbox, "smbclient", &words) else {
        return;
    };
    assert_eq!(run.code, 0, "{}{}", run.out, run.err);
    assert!(run.out.contains("README.txt"), "{}", run.out);
    assert!(sandbox.read("back") == noise(300_000));
    // The NFS client beside it sees the same volume.
    if let Some(listed) = client(&sandbox, "nfs-ls", &[&serving.url("/unix")]) {
        assert!(listed.out.contains("300000 new.bin"), "{}", listed.out);
    }
    let wrong = [
        "-p",
        port,
        "-U",
        "tester%wrong",
        "//127.0.0.1/unix",
        "-c",
        "ls",
    ];
    assert_ne!(client(&sandbox, "smbclient", &wrong).unwrap().code, 0);
    serving.stop("-TERM");
    sandbox.is_clean("unix.img");
}

#[test]
fn what_is_served_can_be_used_as_a_volume_again() {
    let sandbox = Sandbox::new();
    let first = Serving::start(&sandbox, "--squash none unix.img");
    let export = format!("nfs://127.0.0.1:{}/unix", first.port());
    sandbox.run(&format!("cp -r tree {export}:/copy")).ok();
    let listed = sandbox.run(&format!("ls {export}:/copy")).ok();
    assert_eq!(listed, "a.txt\nsub\n");
    sandbox
        .run(&format!("mv {export}:/copy/sub {export}:/moved"))
        .ok();
    // And served once more.
    let second = Serving::start(&sandbox, &format!("--squash none {export}"));
    let again = format!("nfs://127.0.0.1:{}/unix?uid=0", second.port());
    sandbox.run(&format!("cp {again}:/moved/b.bin back")).ok();
    assert!(sandbox.read("back") == noise(300_000));
    sandbox.run(&format!("rm -r {again}:/copy")).ok();
    second.stop("-TERM");
    first.stop("-TERM");
    sandbox.is_clean("unix.img");
    let left = sandbox.run("ls unix.img").ok();
    assert!(left.contains("moved") && !left.contains("copy"), "{left}");
}

#[test]
fn exports_that_cannot_be_had_are_refused_in_a_line() {
    let sandbox = Sandbox::new();
    let serving = Serving::start(&sandbox, "disk.img");
    let port = serving.port().to_owned();
    for (export, code, words) in [
        ("/other", 3, "has no export /other"),
        ("/disk?what=1", 2, "unknown option 'what'"),
        ("/disk?timeout=0", 2, "option 'timeout' is out of range"),
    ] {
        let line = format!("ls nfs://127.0.0.1:{port}{export}");
        let said = sandbox.run(&line).fails(code);
        assert!(said.contains(words), "{said}");
    }
    serving.stop("-TERM");
    // Not waited for, though a call may take ten minutes.
    let line = format!("timeout 60 volary ls 'nfs://127.0.0.1:{port}/disk?timeout=600'");
    let said = sandbox.shell(&line).fails(3);
    assert!(said.contains("cannot connect"), "{said}");
}
