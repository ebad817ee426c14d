//! What a user types wrongly, and what goes wrong around them: one line that says what, where
//! and what to do, and a code that scripts can go by.

use crate::examples::verbs;
use crate::sandbox::{PROGRAM, Run, Sandbox};
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};

/// Returns the code for a command line that makes no sense; fsck(8) has its own.
fn usage(verb: &str) -> i32 {
    if verb == "fsck" { 16 } else { 2 }
}

/// What each command that takes `-o` is told beside.
const LINES: [(&str, &str); 30] = [
    ("mkfs", "--size 4M new.img"),
    ("ls", "disk.img"),
    ("tree", "disk.img"),
    ("find", "disk.img"),
    ("cat", "disk.img:/README.txt"),
    ("stat", "disk.img:/README.txt"),
    ("cp", "words disk.img:/new"),
    ("mv", "disk.img:/README.txt disk.img:/new"),
    ("rm", "disk.img:/README.txt"),
    ("mkdir", "disk.img:/new"),
    ("rmdir", "disk.img:/empty"),
    ("ln", "-s words disk.img:/new"),
    ("readlink", "disk.img:/README.txt"),
    ("chmod", "644 disk.img:/README.txt"),
    ("chown", "0 disk.img:/README.txt"),
    ("touch", "disk.img:/README.txt"),
    ("truncate", "-s 0 disk.img:/README.txt"),
    ("attrib", "+r disk.img:/README.txt"),
    ("versions", "disk.img:/README.txt"),
    ("du", "disk.img"),
    ("df", "disk.img"),
    ("sha256sum", "disk.img:/README.txt"),
    ("bulk", "disk.img"),
    ("conform", "disk.img"),
    ("fsck", "-y disk.img"),
    ("tune", "disk.img"),
    ("quota", "disk.img"),
    ("map", "disk.img"),
    ("mount", "disk.img mnt"),
    ("serve", "--nfs 127.0.0.1:0 --key key disk.img"),
];

#[test]
fn an_option_that_makes_no_sense_ends_every_command_with_the_same_code() {
    let sandbox = Sandbox::new();
    let before = sandbox.read("disk.img");
    let mut checked = 0;
    for verb in verbs(&sandbox) {
        let help = sandbox.run_words(&[&verb, "--help"]).ok();
        let line = LINES.iter().find(|(name, _)| *name == verb);
        let mut wrong = vec!["--bogus"];
        if help.contains("--options <") {
            wrong.extend(["-o bogus", "-o bogus=1"]);
        }
        if help.contains("--layer <") {
            wrong.extend(["-o memory=many", "--layer bogus", "--layer throttle=many"]);
        }
        assert!(
            wrong.len() == 1 || line.is_some(),
            "{verb} is not in the table"
        );
        for words in wrong {
            let rest = line.map_or("", |(_, rest)| rest);
            let run = sandbox.run(&format!("{verb} {words} {rest}"));
            let said = run.fails(usage(&verb));
            let name = words.rsplit(['=', ' ', ',']).next().unwrap();
            let is_named = ["bogus", "many", name]
                .iter()
                .any(|word| said.contains(word));
            // bench and torture have verbs of their own: those are looked at first.
            assert!(is_named, "{verb} {words}: {said}");
            checked += 1;
        }
    }
    assert!(checked > 150, "{checked}");
    assert!(sandbox.read("disk.img") == before);
    assert!(!sandbox.path("new.img").exists());
}

#[test]
fn an_unknown_option_is_told_with_all_that_there_are() {
    let sandbox = Sandbox::new();
    for (line, known) in [
        (
            "ls -o bogus disk.img",
            &["umask", "memory", "commit", "ro"][..],
        ),
        (
            "mount -o bogus disk.img mnt",
            &["umask", "memory", "allow_other", "readahead"],
        ),
        (
            "serve --key key -o bogus disk.img",
            &["umask", "memory", "commit"],
        ),
    ] {
        let said = sandbox.run(line).fails(2);
        assert!(
            said.contains("disk.img: unknown option 'bogus'; known are: "),
            "{said}"
        );
        for name in known {
            assert!(said.contains(&format!(" {name}")), "{said} lacks {name}");
        }
    }
}

/// A line, its code, and words of what is said.
const MEANT: [(&str, i32, &str); 19] = [
    (
        "mkfs --size 4M --seed abc new.img",
        2,
        "'abc' is no number; write 7 or 0x1000",
    ),
    ("mkfs --size 0 new.img", 2, "an image of 0 bytes"),
    ("mkfs --size big new.img", 2, "'big' is no size; write 64M"),
    ("mkfs --size 1 new.img", 2, "too small for fat12"),
    (
        "mkfs --size 4M gone/new.img",
        3,
        "there is no directory gone; make it first",
    ),
    ("badsect disk.img first", 2, "'first' is no number"),
    ("torture run fat12 --seed abc", 2, "it is no number"),
    ("serve --grace soon", 2, "it is no number"),
    ("serve --grace 70000", 2, "70000 is not in 0..=65535"),
    (
        "ls tree",
        3,
        "tree: is a directory; as a volume it is host:tree",
    ),
    (
        "mount tree mnt",
        3,
        "tree: is a directory; as a volume it is host:tree",
    ),
    (
        "serve --key key tree",
        3,
        "tree: is a directory; as a volume it is host:tree",
    ),
    (
        "info tree",
        3,
        "tree: is a directory; name an image or a block device",
    ),
    ("ls disk.img:docs", 2, "has a slash: disk.img:/docs"),
    ("ls -", 3, "a volume is not read from standard input"),
    (
        "lss disk.img",
        2,
        "unrecognized subcommand 'lss'; a similar subcommand exists: 'ls'",
    ),
    ("umount mnt", 2, "unmount with: fusermount3 -u DIR"),
    (
        "info -o ro disk.img",
        2,
        "unexpected argument '-o' found; see volary info --help",
    ),
    (
        "ls nfs://127.0.0.1:1/x",
        3,
        "cannot connect to 127.0.0.1:1: Connection refused\n",
    ),
];

#[test]
fn what_is_typed_wrongly_is_told_with_what_was_meant() {
    let sandbox = Sandbox::new();
    for (line, code, words) in MEANT {
        let said = sandbox.run(line).fails(code);
        assert!(said.contains(words), "{line}: {said}");
    }
    assert!(!sandbox.path("new.img").exists());
}

#[test]
fn names_that_are_too_long_or_no_text_are_refused_in_a_line() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let sandbox = Sandbox::new();
    let long = "n".repeat(300);
    for (words, code) in [
        (["mkdir", &format!("disk.img:/{long}")], 1),
        (["mkdir", &format!("unix.img:/{long}")], 1),
        (["ls", &long], 3),
        (["info", &format!("{long}/{long}")], 3),
    ] {
        let said = sandbox.run_words(&words).fails(code);
        assert!(said.contains("name too long"), "{said}");
    }
    for (words, code) in [
        ([&b"mkdir"[..], b"disk.img:/\xff"], 1),
        ([b"ls", b"\xff\xfe"], 3),
        ([b"\x1b[2J\xff", b"x"], 2),
    ] {
        let mut command = sandbox.command(&[]);
        command.args(words.map(OsStr::from_bytes));
        let said = Run::of(&command.output().unwrap()).fails(code);
        assert!(
            !said.trim_end().contains(|c: char| c.is_control()),
            "{said}"
        );
    }
    let kinds = ["ffs2", "cedar"];
    for kind in kinds {
        sandbox
            .run(&format!("mkfs -q -t {kind} --size 16M {kind}.img"))
            .ok();
        let said = sandbox
            .run_words(&["mkdir", &format!("{kind}.img:/{long}")])
            .fails(1);
        assert!(said.contains("name too long"), "{said}");
    }
}

/// Commands that print.
const PRINT: [&str; 24] = [
    "ls -l disk.img",
    "ls --json disk.img",
    "tree disk.img",
    "find disk.img",
    "cat disk.img:/README.txt",
    "stat disk.img:/README.txt",
    "cp disk.img:/README.txt -",
    "du disk.img",
    "df disk.img",
    "sha256sum disk.img:/README.txt",
    "bulk disk.img",
    "bulk --sha256 disk.img",
    "bulk --json disk.img",
    "info disk.img",
    "dump disk.img boot",
    "map disk.img",
    "label disk.img",
    "formats",
    "layers --json",
    "completions bash",
    "help",
    "ls --help",
    "--version",
    "fsck -n disk.img",
];

#[test]
fn what_cannot_be_printed_is_a_failure() {
    let sandbox = Sandbox::new();
    for line in PRINT {
        for (place, why) in [
            ("/dev/full", "no space left"),
            ("&-", "bad file descriptor"),
        ] {
            let run = sandbox.shell(&format!("volary {line} >{place}"));
            let code = if line.starts_with("fsck") { 8 } else { 1 };
            let said = run.fails(code);
            assert!(
                said.contains(&format!("standard output: {why}")),
                "{line}: {said}"
            );
        }
    }
    // What prints nothing needs nobody to print to.
    sandbox.shell("volary mkdir disk.img:/new >&-").ok();
    sandbox.shell("volary ls disk.img >/dev/null").ok();
}

#[test]
fn a_reader_that_has_had_enough_is_no_failure() {
    let sandbox = Sandbox::new();
    for line in PRINT.iter().filter(|line| !line.starts_with("fsck")) {
        let run = sandbox.shell(&format!("{{ volary {line}; echo $? >code; }} | true"));
        assert_eq!(
            (run.err.as_str(), sandbox.read("code")),
            ("", b"0\n".to_vec()),
            "{line}"
        );
    }
}

#[test]
fn colours_are_for_terminals_and_only_for_who_wants_them() {
    let sandbox = Sandbox::new();
    let has_colours = |line: &str| sandbox.shell(line).ok().contains("\x1b[");
    for line in ["volary map disk.img", "volary ls --help"] {
        let on_terminal = |variables: &str| {
            let line = format!("export TERM=xterm {variables}; script -qec '{line}' /dev/null");
            has_colours(&line)
        };
        assert!(!has_colours(line), "{line}");
        assert!(has_colours(&format!("CLICOLOR_FORCE=1 {line}")), "{line}");
        assert!(
            !has_colours(&format!("CLICOLOR_FORCE=1 NO_COLOR=1 {line}")),
            "{line}"
        );
        assert!(on_terminal(""), "{line}");
        assert!(on_terminal("NO_COLOR="), "{line}");
        for without in ["NO_COLOR=1", "TERM=dumb", "CLICOLOR=0"] {
            assert!(!on_terminal(without), "{line} with {without}");
        }
    }
}

#[test]
fn an_image_whose_user_just_ends_is_waited_for_and_another_is_named() {
    let sandbox = Sandbox::new();
    let hold = |seconds: &str| {
        let mut flock = Command::new("flock");
        flock
            .args(["disk.img", "sh", "-c"])
            .arg(format!("echo; exec sleep {seconds}"));
        let mut child = flock
            .current_dir(sandbox.path(""))
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut told = [0];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut told).unwrap();
        child
    };
    let mut ending = hold("0.3");
    sandbox.run("mkdir disk.img:/new").ok();
    ending.wait().unwrap();
    let mut staying = hold("60");
    let said = sandbox.run("ls disk.img").fails(3);
    // The lock is flock's; its child has the descriptor too.
    let who = format!(
        "disk.img: in use by process {} (flock); wait for it",
        staying.id()
    );
    staying.kill().unwrap();
    staying.wait().unwrap();
    assert!(said.contains(&who), "{said}");
}

/// Runs a line as an ordinary user in a place of their own.
fn as_user(sandbox: &Sandbox, line: &str) -> Run {
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line, "sh", PROGRAM])
        .current_dir(sandbox.path(""))
        .uid(1000)
        .gid(1000);
    Run::of(&shell.stdin(Stdio::null()).output().unwrap())
}

#[test]
fn a_mount_that_cannot_be_is_told_with_what_to_do() {
    if !crate::serving::can_mount() {
        return;
    }
    use std::os::unix::fs::{PermissionsExt, chown};
    let sandbox = Sandbox::new();
    fs::set_permissions(sandbox.path(""), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(sandbox.path("theirs")).unwrap();
    for own in ["theirs", "disk.img"] {
        chown(sandbox.path(own), Some(1000), Some(1000)).unwrap();
    }
    // Each in a world of its own: what stands in for /dev/fuse is seen by nobody else.
    let apart = |what: &str, volary: &str| {
        let line = format!("mount --bind {what} /dev/fuse; {volary} mount disk.img theirs");
        sandbox.shell(&format!("unshare -m sh -c '{line}'"))
    };
    sandbox.shell("mknod closed c 10 229; chmod 600 closed; mknod open c 10 229; chmod 666 open; mknod nobody c 10 250").ok();
    let user = format!("setpriv --reuid 1000 --regid 1000 --clear-groups {PROGRAM}");
    let bare = format!("setpriv --reuid 1000 --regid 1000 --clear-groups env PATH=/none {PROGRAM}");
    let weak = format!("setpriv --bounding-set=-sys_admin {PROGRAM}");
    for (run, words) in [
        (
            as_user(&sandbox, "\"$1\" mount disk.img mnt"),
            "mnt: belongs to user 0; give a directory that you may write",
        ),
        (
            apart("closed", &user),
            "theirs: no permission to open /dev/fuse; have root let users in",
        ),
        (
            apart("open", &bare),
            "theirs: only root can mount without fusermount3; install the package fuse3",
        ),
        (
            apart("nobody", "volary"),
            "theirs: nothing serves /dev/fuse; load the kernel",
        ),
        (
            apart("words", "volary"),
            "theirs: this host has no /dev/fuse; load the kernel",
        ),
        (
            apart("open", &weak),
            "theirs: the kernel refuses the mount; use sudo",
        ),
        (
            sandbox.run("mount disk.img gone"),
            "gone: does not exist; make the directory first",
        ),
        (
            sandbox.run("mount disk.img words"),
            "words: is not a directory; give an existing directory",
        ),
        (
            sandbox.run("serve --key key --mount gone disk.img"),
            "gone: does not exist; make the directory first",
        ),
    ] {
        let said = run.fails(1);
        assert!(said.contains(words), "{said}");
    }
}

#[test]
fn a_mount_hides_what_was_in_its_directory_and_says_so() {
    if !crate::serving::can_mount() {
        return;
    }
    let sandbox = Sandbox::new();
    let run = sandbox.run("mount --background disk.img tree");
    sandbox.shell("fusermount3 -u tree").ok();
    assert_eq!(run.code, 0, "{}", run.err);
    assert_eq!(
        run.err,
        "volary: tree: is not empty; what is in it is hidden until it is unmounted\n"
    );
    assert_eq!(sandbox.read("tree/a.txt"), b"alpha\n");
    // The server may still be at its end: whoever opens the image waits for it.
    sandbox.run("ls disk.img").ok();
}

#[test]
fn what_ends_in_dots_is_neither_removed_nor_moved() {
    let sandbox = Sandbox::new();
    for volume in ["disk.img:", "unix.img:", "host:tree:"] {
        let dir = match volume {
            "host:tree:" => "/sub",
            _ => "/docs",
        };
        let before = sandbox.run(&format!("find {volume}/")).ok();
        for path in ["/..", "/.", "/../", "/./", "/../.", "//..//"] {
            for verb in ["rm -r", "rm -rf", "rm", "rmdir"] {
                let told = sandbox.run(&format!("{verb} {volume}{dir}{path}")).fails(1);
                assert!(told.contains("is not removed"), "{told}");
            }
            let told = sandbox.run(&format!("mv {volume}{dir}{path} blank.img:/x"));
            assert!(told.fails(1).contains("is not moved"));
        }
        sandbox.run(&format!("rm -r {volume}/..")).fails(1);
        assert_eq!(sandbox.run(&format!("find {volume}/")).ok(), before);
    }
    // The others are done.
    let run = sandbox.run("rm -r disk.img:/docs/.. disk.img:/docs");
    assert_eq!((run.code, run.err.lines().count()), (1, 1), "{}", run.err);
    assert_eq!(sandbox.run("ls disk.img").ok(), "README.txt\nempty\n");
    for place in ["tree/sub/..", "tree/sub/.", "tree/.."] {
        let told = sandbox.run(&format!("mv {place} disk.img:/new")).fails(1);
        assert!(told.contains("is not moved"), "{told}");
    }
    assert!(sandbox.path("tree/sub/deep/empty").is_dir());
    assert_eq!(sandbox.run("ls disk.img").ok(), "README.txt\nempty\n");
}

#[test]
fn pictures_are_not_drawn_over_images() {
    let sandbox = Sandbox::new();
    std::fs::hard_link(sandbox.path("disk.img"), sandbox.path("linked")).unwrap();
    let before = ["disk.img", "unix.img"].map(|image| sandbox.read(image));
    for picture in ["disk.img", "linked", "unix.img"] {
        let drawn = sandbox.run(&format!("map --svg {picture} disk.img"));
        drawn.fails(1);
        let drawn = sandbox.run(&format!("sim --disk hdd --svg {picture} -- ls disk.img"));
        drawn.fails(1);
    }
    let after = ["disk.img", "unix.img"].map(|image| sandbox.read(image));
    assert!(before == after);
    for _ in 0..2 {
        sandbox.run("map --svg map.svg disk.img").ok();
    }
    assert!(sandbox.read("map.svg").starts_with(b"<svg"));
}

#[test]
fn words_of_the_user_do_nothing_at_the_terminal() {
    let sandbox = Sandbox::new();
    let words = "\x1b[31mred";
    for line in [
        &["label", "disk.img", words][..],
        &["mkfs", "--label", words, "blank.img"],
        &["ls", "-o", words, "disk.img"],
        &["ls", words],
    ] {
        let run = sandbox.run_words(line);
        assert_ne!(run.code, 0);
        assert!(!run.err.contains('\x1b'), "{:?}", run.err);
        assert!(run.err.contains("u{1b}[31mred"), "{:?}", run.err);
    }
}
