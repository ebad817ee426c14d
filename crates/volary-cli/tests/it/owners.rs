//! Who owns what: on volumes that keep owners, and on those that do not.

use crate::mounting::Mounting;
use crate::sandbox::{PROGRAM, Run, Sandbox};
use crate::serving::{Serving, can_mount};
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// An ordinary user: root becomes one, and all others are.
struct User {
    id: u32,
    sandbox: Sandbox,
}

impl User {
    fn new() -> Self {
        let sandbox = Sandbox::empty();
        fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o777)).unwrap();
        let me = rustix::process::geteuid();
        let id = if me.is_root() { 1000 } else { me.as_raw() };
        Self { id, sandbox }
    }

    fn command(&self, line: &str) -> Command {
        let words: Vec<&str> = line.split_whitespace().collect();
        let mut command = self.sandbox.command(&words);
        if rustix::process::geteuid().is_root() {
            command
                .uid(self.id)
                .gid(self.id)
                .env("HOME", self.sandbox.path(""));
        }
        command
    }

    fn run(&self, line: &str) -> Run {
        Run::of(&self.command(line).output().unwrap())
    }

    fn owner_of(&self, place: &str) -> (u64, u64) {
        let text = self.sandbox.run(&format!("stat --json {place}")).ok();
        let all: serde_json::Value = serde_json::from_str(&text).unwrap();
        let number = |key: &str| all[0][key].as_u64().unwrap();
        (number("uid"), number("gid"))
    }
}

#[test]
fn a_new_volume_belongs_to_who_made_it() {
    let user = User::new();
    for kind in ["ffs1", "ffs2", "ffs1 -o old", "cedar", "fat32 --unix"] {
        user.run(&format!("mkfs -q -f -t {kind} --size 64M v.img"))
            .ok();
        user.run("cp tree/a.txt v.img:/a.txt").ok();
        // As root sees it, who is nobody's owner.
        let (uid, _) = user.owner_of("v.img:/");
        assert_eq!(uid, u64::from(user.id), "{kind}");
        assert_eq!(
            user.owner_of("v.img:/a.txt").0,
            u64::from(user.id),
            "{kind}"
        );
        user.sandbox.run("fsck -n v.img").ok();
    }
}

#[test]
fn a_new_volume_is_written_through_nfs_by_who_made_it() {
    let user = User::new();
    user.run("mkfs -q -t ffs2 --size 16M v.img").ok();
    let mut command = user.command("serve --json --nfs 127.0.0.1:0 --key key v.img");
    command.stdin(Stdio::null());
    let serving = Serving::of(command);
    let port = serving.port().to_owned();
    let volume = format!("nfs://127.0.0.1:{port}/v?uid={0}&gid={0}", user.id);
    user.sandbox.run(&format!("mkdir {volume}:/made")).ok();
    let other = format!("nfs://127.0.0.1:{port}/v?uid=4711&gid=4711");
    let refused = user.sandbox.run(&format!("mkdir {other}:/not")).fails(1);
    assert!(refused.contains("permission denied"), "{refused}");
    serving.stop("-TERM");
    assert_eq!(user.owner_of("v.img:/made").0, u64::from(user.id));
}

#[test]
fn another_owner_is_asked_for_by_name_or_number() {
    let sandbox = Sandbox::empty();
    let list = |image: &str| sandbox.run(&format!("ls -ld {image}:/")).ok();
    for kind in ["ffs2", "cedar", "fat16 --unix"] {
        let made = format!("mkfs -q -f -t {kind} --size 64M --owner 7:8 v.img");
        sandbox.run(&made).ok();
        let found = list("v.img");
        assert_eq!(
            found.split_whitespace().skip(2).take(2).collect::<Vec<_>>(),
            ["7", "8"]
        );
        sandbox.run("fsck -n v.img").ok();
    }
    sandbox
        .run("mkfs -q -f -t ffs2 --size 64M --owner root:root v.img")
        .ok();
    assert!(list("v.img").contains(" 0 0 "));
    for (line, words) in [
        (
            "mkfs -t fat16 --size 64M --owner 7:8 new.img",
            "with --unix only",
        ),
        (
            "mkfs -t ffs1 -o old --size 64M --owner 70000:8 new.img",
            "cannot keep 70000:8",
        ),
        (
            "mkfs -t ffs2 --size 64M --owner nobody-there new.img",
            "no user 'nobody-there'",
        ),
    ] {
        let said = sandbox.run(line).fails(2);
        assert!(said.contains(words), "{said}");
        assert!(!sandbox.path("new.img").exists());
    }
}

/// Modes and owners, as each way to a volume shows them: that of a directory and of a file.
fn shown(sandbox: &Sandbox, mask: &str, words: &str, image: &str) -> String {
    let line = format!("umask {mask}; volary ls -ld {words} {image}:/docs {image}:/docs/a.txt");
    let text = sandbox.shell(&line).ok();
    let mode = |line: &str| line.split_whitespace().take(4).map(str::to_owned).collect();
    let lines: Vec<Vec<String>> = text.lines().map(mode).collect();
    let part = |line: &Vec<String>| format!("{} {} {}", line[0], line[2], line[3]);
    lines.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// Returns an image, the umask of who opens it, options, and modes and owners of a directory and a file.
fn ways() -> [(&'static str, &'static str, &'static str, String); 6] {
    let me = rustix::process::geteuid().as_raw();
    let mine = rustix::process::getegid().as_raw();
    [
        (
            "disk.img",
            "077",
            "",
            format!("drwx------ {me} {mine}, -rwx------ {me} {mine}"),
        ),
        (
            "disk.img",
            "027",
            "",
            format!("drwxr-x--- {me} {mine}, -rwxr-x--- {me} {mine}"),
        ),
        (
            "disk.img",
            "077",
            "-o umask=027,uid=5,gid=6",
            "drwxr-x--- 5 6, -rwxr-x--- 5 6".into(),
        ),
        (
            "disk.img",
            "077",
            "-o own=root,fmask=111",
            "drwxrwxrwx 0 0, -rw-rw-rw- 0 0".into(),
        ),
        (
            "unix.img",
            "077",
            "",
            format!("drwxr-xr-x {me} {mine}, -rw-r--r-- {me} {mine}"),
        ),
        (
            "unix.img",
            "022",
            "-o umask=077",
            format!("drwx------ {me} {mine}, -rw------- {me} {mine}"),
        ),
    ]
}

#[test]
fn who_owns_what_has_no_owner_is_the_same_by_each_way_to_it() {
    let sandbox = Sandbox::new();
    for (image, mask, words, expected) in ways() {
        let what = format!("{image}, umask {mask} {words}");
        assert_eq!(shown(&sandbox, mask, words, image), expected, "{what}");
        assert_eq!(
            served(&sandbox, mask, words, image),
            expected,
            "{what}, served"
        );
        assert_eq!(
            copied(&sandbox, mask, words, image),
            modes_of(&as_copied(image, words, &expected)),
            "{what}, copied"
        );
        if can_mount() {
            assert_eq!(
                mounted(&sandbox, mask, words, image),
                expected,
                "{what}, mounted"
            );
        }
    }
}

/// Returns the program under this mask.
fn masked(sandbox: &Sandbox, mask: &str, words: &str) -> Command {
    let mut shell = Command::new("sh");
    let line = format!("umask {mask}; exec {PROGRAM} {words}");
    shell
        .args(["-c", &line])
        .current_dir(sandbox.path(""))
        .stdin(Stdio::null());
    shell
}

fn served(sandbox: &Sandbox, mask: &str, words: &str, image: &str) -> String {
    let line = format!("serve --json --nfs 127.0.0.1:0 --key key --squash none {words} {image}");
    let serving = Serving::of(masked(sandbox, mask, &line));
    let name = image.strip_suffix(".img").unwrap();
    // As root, who may look at everything.
    let volume = format!("'nfs://127.0.0.1:{}/{name}?uid=0&gid=0'", serving.port());
    let found = shown(sandbox, "022", "", &volume);
    serving.stop("-TERM");
    found
}

fn mounted(sandbox: &Sandbox, mask: &str, words: &str, image: &str) -> String {
    let line = format!("mount --tell {words} {image} mnt");
    let mounting = Mounting::of(sandbox, masked(sandbox, mask, &line));
    let part = |path: &str| {
        let meta = fs::metadata(sandbox.path(path)).unwrap();
        let kind = if meta.is_dir() { 'd' } else { '-' };
        let letters = (0..9).map(|bit| match meta.mode() >> (8 - bit) & 1 {
            0 => '-',
            _ => ['r', 'w', 'x'][bit % 3],
        });
        let letters: String = std::iter::once(kind).chain(letters).collect();
        format!("{letters} {} {}", meta.uid(), meta.gid())
    };
    let found = format!("{}, {}", part("mnt/docs"), part("mnt/docs/a.txt"));
    drop(mounting);
    found
}

/// Modes that `cp -p` gives to copies; whose they are depends on who copies.
fn copied(sandbox: &Sandbox, mask: &str, words: &str, image: &str) -> String {
    let mut cp = masked(sandbox, mask, &format!("cp -rp {words} {image}:/docs out"));
    Run::of(&cp.output().unwrap()).ok();
    let mode = |path: &str| {
        let mode = fs::metadata(sandbox.path(path)).unwrap().mode();
        format!("{:o}", mode & 0o777)
    };
    let found = format!("{} {}", mode("out"), mode("out/a.txt"));
    fs::remove_dir_all(sandbox.path("out")).unwrap();
    found
}

/// Returns what a copy on the host is: a file of a volume without modes is no program there, unless
/// options say what its mode is.
fn as_copied(image: &str, words: &str, shown: &str) -> String {
    let Some((dir, file)) = shown.split_once(", ") else {
        return shown.to_owned();
    };
    match image == "disk.img" && words.is_empty() {
        true => format!("{dir}, {}", file.replace('x', "-")),
        false => shown.to_owned(),
    }
}

/// Returns the modes in what [`shown`] gives, in octal.
fn modes_of(shown: &str) -> String {
    let octal = |part: &str| {
        let bits = part.chars().skip(1).take(9);
        format!(
            "{:o}",
            bits.fold(0, |mode, letter| mode << 1 | u32::from(letter != '-'))
        )
    };
    shown.split(", ").map(octal).collect::<Vec<_>>().join(" ")
}
