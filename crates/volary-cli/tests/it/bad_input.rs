//! What is wrong with what the user gave: one line that says what and what to
//! do, an exit code that the man page lists, and nothing changed.

use crate::sandbox::{PROGRAM, Sandbox};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

/// The volume could not be opened.
const NOT_OPENED: i32 = 3;

#[test]
fn a_missing_image_is_named_and_how_to_make_one() {
    let sandbox = Sandbox::empty();
    for line in [
        "ls gone.img:/",
        "info gone.img",
        "cp tree/a.txt gone.img:/",
        "df gone.img",
    ] {
        let said = sandbox.run(line).fails(NOT_OPENED);
        assert!(
            said.contains("gone.img: no such image; make one with"),
            "{said}"
        );
    }
    assert!(!sandbox.path("gone.img").exists());
}

#[test]
fn a_path_of_a_volume_without_the_volume_is_taken_for_one() {
    let sandbox = Sandbox::empty();
    let said = sandbox.run("ls /in-no-root/a").fails(NOT_OPENED);
    let hint = "no such image; in a volume it is VOLUME:/in-no-root/a";
    assert!(said.contains(hint), "{said}");
}

#[test]
fn a_directory_is_no_image() {
    let sandbox = Sandbox::empty();
    for line in [
        "ls tree:/",
        "info tree",
        "cp tree/a.txt tree:/",
        "mkfs tree",
    ] {
        let said = sandbox.run(line).fails(NOT_OPENED);
        assert!(said.contains("tree: is a directory"), "{said}");
    }
}

#[test]
fn an_empty_image_is_named_and_what_to_do() {
    let sandbox = Sandbox::empty();
    sandbox.write("empty.img", b"");
    for line in ["ls empty.img", "rm -r empty.img:/x"] {
        let said = sandbox.run(line).fails(NOT_OPENED);
        assert!(
            said.contains("empty.img: empty; make a volume on it with"),
            "{said}"
        );
    }
    assert_eq!(sandbox.read("empty.img"), b"");
}

#[test]
fn zeros_are_no_volume() {
    let sandbox = Sandbox::new();
    let said = sandbox.run("ls blank.img").fails(NOT_OPENED);
    assert!(
        said.contains("nothing but zeros; make one with: volary mkfs"),
        "{said}"
    );
}

#[test]
fn what_begins_with_zeros_and_holds_something_is_not_called_blank() {
    let sandbox = Sandbox::empty();
    let mut image = vec![0; 64 << 20];
    sandbox.run("mkfs -q -t fat16 --size 32M part.img").ok();
    let part = sandbox.read("part.img");
    image[1 << 20..][..part.len()].copy_from_slice(&part);
    sandbox.write("disk.img", &image);
    let told = sandbox.run("fsck -n disk.img").fails(8);
    assert!(told.contains("holds something at byte 1048576"), "{told}");
    let told = sandbox.run("mkfs -q disk.img").fails(1);
    assert!(told.contains("something at byte 1048576"), "{told}");
    assert!(told.contains("with --force it is lost"), "{told}");
    assert!(sandbox.read("disk.img") == image);

    sandbox.run("mkfs -q -t ffs1 --size 16M ffs.img").ok();
    let mut image = sandbox.read("ffs.img");
    image[..72 << 10].fill(0);
    sandbox.write("ffs.img", &image);
    let told = sandbox.run("mkfs -q ffs.img").fails(1);
    assert!(told.contains("with --force it is lost"), "{told}");
    assert!(sandbox.read("ffs.img") == image);
}

#[test]
fn a_qcow2_image_that_was_cut_is_refused() {
    let sandbox = Sandbox::empty();
    sandbox.write("file", &crate::sandbox::noise(8 << 20));
    sandbox.run("mkfs -q -t ffs2 --size 32M t.qcow2").ok();
    sandbox.run("cp file t.qcow2:/").ok();
    let whole = sandbox.read("t.qcow2");
    sandbox.write("t.qcow2", &whole[..5_000_000]);
    for line in ["cp t.qcow2:/file back", "cp file t.qcow2:/again"] {
        let told = sandbox.run(line).fails(4);
        assert!(told.contains("(is the image truncated?)"), "{told}");
        assert!(told.contains("qemu-img check"), "{told}");
        assert!(!told.contains("volary fsck"), "{told}");
    }
    let told = sandbox.run("fsck -n t.qcow2").fails(8);
    assert!(told.contains("qemu-img check"), "{told}");
    assert!(!told.contains("volary fsck"), "{told}");
}

#[test]
fn foreign_formats_are_named() {
    let sandbox = Sandbox::empty();
    let image = |parts: &[(usize, &[u8])]| {
        let mut bytes = vec![0; 1 << 20];
        for (at, part) in parts {
            bytes[*at..at + part.len()].copy_from_slice(part);
        }
        bytes
    };
    type Parts = &'static [(usize, &'static [u8])];
    let cases: [(Parts, &str); 6] = [
        (
            &[(3, b"NTFS    "), (510, b"\x55\xaa")],
            "an NTFS file system",
        ),
        (
            &[(0x438, b"\x53\xef"), (0x460, b"\x40")],
            "an ext4 file system",
        ),
        (&[(0x8001, b"CD001")], "an ISO 9660 image"),
        (&[(0, b"\x1f\x8b\x08")], "a gzip file; decompress it first"),
        (&[(0x1_0040, b"_BHRfS_M")], "a Btrfs file system"),
        (&[(0, b"LUKS\xba\xbe")], "a LUKS encrypted volume"),
    ];
    for (parts, expected) in cases {
        let bytes = image(parts);
        sandbox.write("x.img", &bytes);
        for line in [
            "ls x.img",
            "fsck -y x.img",
            "cp tree/a.txt x.img:/",
            "tune --clean x.img",
        ] {
            let code = if line.starts_with("fsck") {
                8
            } else {
                NOT_OPENED
            };
            let said = sandbox.run(line).fails(code);
            assert!(said.contains(&format!("x.img: {expected}")), "{said}");
        }
        assert!(sandbox.read("x.img") == bytes, "{expected}: was changed");
    }
}

#[test]
fn mkfs_overwrites_only_what_it_may() {
    let sandbox = Sandbox::new();
    let before = sandbox.read("disk.img");
    let said = sandbox.run("mkfs disk.img").fails(1);
    assert!(
        said.contains("holds a fat16 volume; with --force it is lost"),
        "{said}"
    );
    let said = sandbox.run("mkfs --size 1M disk.img").fails(1);
    assert!(said.contains("is there, with 67108864 bytes"), "{said}");
    assert!(sandbox.read("disk.img") == before);
    let said = sandbox.run("mkfs new.img").fails(NOT_OPENED);
    assert!(said.contains("--size 64M"), "{said}");
    let said = sandbox.run("mkfs -t fat32 --size 4k new.img").fails(2);
    assert!(said.contains("new.img: "), "{said}");
    let said = sandbox.run("mkfs -t ext9 --size 4M new.img").fails(2);
    assert!(
        said.contains("unknown kind 'ext9'; there are: fat12"),
        "{said}"
    );
    let said = sandbox.run("mkfs -o colour=red --size 4M new.img").fails(2);
    assert!(
        said.contains("unknown option 'colour'; known are: "),
        "{said}"
    );
    assert!(!sandbox.path("new.img").exists(), "half an image was left");
    sandbox.run("mkfs --force -q disk.img").ok();
    assert_eq!(sandbox.run("ls disk.img").ok(), "");
}

#[test]
fn a_truncated_image_is_refused_for_what_it_is() {
    let sandbox = Sandbox::new();
    let file = fs::OpenOptions::new()
        .write(true)
        .open(sandbox.path("disk.img"))
        .unwrap();
    file.set_len(1 << 20).unwrap();
    let before = sandbox.read("disk.img");
    for line in ["ls disk.img", "cp tree/a.txt disk.img:/"] {
        let run = sandbox.run(line);
        assert!(
            run.code == NOT_OPENED || run.code == 4,
            "{} {}",
            run.code,
            run.err
        );
        let code = run.code;
        let said = run.fails(code);
        assert!(said.contains("(is the image truncated?)"), "{said}");
    }
    assert!(sandbox.read("disk.img") == before);
}

#[test]
fn an_image_without_permission_is_named() {
    let sandbox = Sandbox::new();
    if !rustix::process::geteuid().is_root() {
        return;
    }
    // As root nothing is forbidden: as nobody, with a program that nobody can run.
    // A copy that this process wrote could be open in a program that another test starts,
    // and is not run as long as it is.
    let copied = Command::new("cp")
        .arg(PROGRAM)
        .arg(sandbox.path("volary"))
        .status();
    assert!(copied.unwrap().success());
    let mode = |name: &str, mode| {
        fs::set_permissions(sandbox.path(name), fs::Permissions::from_mode(mode)).unwrap();
    };
    mode("", 0o755);
    mode("volary", 0o755);
    mode("disk.img", 0o600);
    mode("unix.img", 0o644);
    for (words, expected) in [
        (["ls", "disk.img"], "disk.img: no permission to read it"),
        (
            ["mkdir", "unix.img:/new"],
            "unix.img: no permission to write it",
        ),
    ] {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]);
        command
            .arg(sandbox.path("volary"))
            .args(words)
            .current_dir(sandbox.path(""));
        let Ok(output) = command.output() else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(NOT_OPENED), "{said}");
        assert!(
            said.contains(expected) && said.lines().count() == 1,
            "{said}"
        );
    }
    let mut look = Command::new("setpriv");
    look.args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(sandbox.path("volary"));
    let output = look
        .args(["ls", "unix.img"])
        .current_dir(sandbox.path(""))
        .output()
        .unwrap();
    assert!(output.status.success(), "what can be read can be listed");
    let mut bench = Command::new("setpriv");
    bench
        .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
        .arg(sandbox.path("volary"));
    let output = bench.args(["bench", "paper", "fifs"]).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        !output.status.success() && said.contains("run it as root") && said.lines().count() == 1,
        "{said}"
    );
}

#[test]
fn partitions_that_are_not_there_are_refused_with_those_that_are() {
    let sandbox = Sandbox::new();
    let said = sandbox.run("ls disk.img#1:/").fails(NOT_OPENED);
    assert!(said.contains("no partition 1"), "{said}");
    let mut disk = vec![0; 1 << 20];
    disk.extend(sandbox.read("disk.img"));
    let sectors = (64_u32 << 20) / 512;
    disk[446..462].copy_from_slice(&[0, 1, 1, 0, 0x0e, 1, 1, 0, 0, 8, 0, 0, 0, 0, 0, 0]);
    disk[458..462].copy_from_slice(&sectors.to_le_bytes());
    disk[510..512].copy_from_slice(&[0x55, 0xaa]);
    sandbox.write("table.img", &disk);
    assert!(sandbox.run("ls table.img#1:/").ok().contains("README.txt"));
    let said = sandbox.run("ls table.img#2:/").fails(NOT_OPENED);
    assert!(said.contains("no partition 2; there are: 1"), "{said}");
    let said = sandbox.run("ls table.img:/").fails(NOT_OPENED);
    assert!(
        said.contains("an MBR partition table; name a partition: IMAGE#1"),
        "{said}"
    );
    let said = sandbox.run("mkfs table.img").fails(1);
    assert!(said.contains("name a partition"), "{said}");
}

#[test]
fn a_path_that_is_not_there_is_named() {
    let sandbox = Sandbox::new();
    for line in [
        "ls disk.img:/gone",
        "cat disk.img:/gone",
        "stat disk.img:/gone/x",
        "rm disk.img:/gone",
        "mv disk.img:/gone disk.img:/new",
        "chmod 600 disk.img:/gone",
        "cp disk.img:/gone out",
        "du disk.img:/gone",
        "find disk.img:/gone",
        "mkdir disk.img:/gone/x",
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(
            said.contains("disk.img:/gone") && said.contains("no such file"),
            "{said}"
        );
    }
    let said = sandbox.run("cp gone disk.img:/").fails(1);
    assert!(said.contains("gone: no such file or directory"), "{said}");
    sandbox.is_clean("disk.img");
}

#[test]
fn what_cannot_be_done_to_a_node_is_said() {
    let sandbox = Sandbox::new();
    for (line, expected) in [
        ("cat disk.img:/docs", "is a directory"),
        ("rm disk.img:/docs", "is a directory; use rm -r"),
        ("rmdir disk.img:/docs", "directory not empty"),
        ("rmdir disk.img:/README.txt", "not a directory"),
        ("mkdir disk.img:/docs", "already exists"),
        ("rm -r disk.img:/", "the volume's root"),
        ("cp disk.img:/docs out", "is a directory; use cp -r"),
        ("cp tree disk.img:/", "is a directory; use cp -r"),
        ("readlink disk.img:/README.txt", "not a symlink"),
        ("ln -s x disk.img:/s", "this volume cannot do that"),
        ("mv disk.img:/docs disk.img:/docs/x", "not moved"),
        (
            "cp disk.img:/README.txt disk.img:/README.txt",
            "over itself",
        ),
    ] {
        let said = sandbox.run(line).fails(1);
        assert!(said.contains(expected), "{line}: {said}");
    }
    let said = sandbox.run("cp -r disk.img:/docs disk.img:/docs").fails(2);
    assert!(said.contains("into itself"), "{said}");
    sandbox.is_clean("disk.img");
}

#[test]
fn a_command_line_that_makes_no_sense_is_one_line_too() {
    let sandbox = Sandbox::new();
    for (line, expected) in [
        ("", "Usage"),
        ("frobnicate", "unrecognized subcommand 'frobnicate'"),
        ("ls", "<PLACE>"),
        ("ls --colour disk.img", "unexpected argument '--colour'"),
        ("chmod 9 disk.img:/README.txt", "'9' is no mode"),
        (
            "touch -d yesterday disk.img:/README.txt",
            "'yesterday' is no time",
        ),
        ("truncate -s lots disk.img:/README.txt", "'lots' is no size"),
        ("ls nfs:server/export", "write nfs://HOST/EXPORT"),
        ("ls mem:lots", "no size of a volume in memory"),
        ("cp tree/a.txt tree/b.txt", "both are places of the host"),
        ("mv tree/a.txt tree/b.txt", "both are places of the host"),
        ("ls -o colour=red disk.img", "unknown option 'colour'"),
        ("ls -o memory=lots disk.img", "option 'memory' is 'lots'"),
        ("tune disk.img", "nothing to change"),
        ("attrib +q disk.img:/README.txt", "no DOS attribute 'Q'"),
    ] {
        let run = sandbox.run(line);
        if line.is_empty() {
            assert_eq!(run.code, 2);
            assert!(run.err.contains(expected), "{}", run.err);
            continue;
        }
        // The driver's own options are checked when it opens the volume.
        let said = run.fails(2);
        assert!(said.contains(expected), "{line}: {said}");
    }
    assert_eq!(sandbox.run("fsck --colour disk.img").code, 16);
    assert_eq!(sandbox.run("fsck gone.img").code, 8);
}

#[test]
fn an_image_that_another_uses_is_left_alone() {
    let sandbox = Sandbox::new();
    let image = fs::File::open(sandbox.path("disk.img")).unwrap();
    rustix::fs::flock(&image, rustix::fs::FlockOperation::LockShared).unwrap();
    assert!(
        sandbox.run("ls disk.img").ok().contains("README.txt"),
        "readers share it"
    );
    let said = sandbox.run("mkdir disk.img:/x").fails(NOT_OPENED);
    let who = format!("disk.img: in use by process {} (", std::process::id());
    assert!(said.contains(&who), "{said}");
    rustix::fs::flock(&image, rustix::fs::FlockOperation::LockExclusive).unwrap();
    let said = sandbox.run("ls disk.img").fails(NOT_OPENED);
    assert!(said.contains("in use"), "{said}");
}

#[test]
fn a_mount_point_that_cannot_be_used_is_named() {
    let sandbox = Sandbox::new();
    let before = sandbox.read("disk.img");
    for (dir, expected) in [
        ("gone", "gone: "),
        ("words", "words: "),
        ("/proc", "/proc: "),
    ] {
        let run = sandbox.run_words(&["mount", "disk.img", dir]);
        assert_eq!(run.code, 1, "{}", run.err);
        assert!(
            run.err.contains(expected) && run.err.lines().count() == 1,
            "{}",
            run.err
        );
    }
    assert!(sandbox.read("disk.img") == before, "the image was changed");
}

#[test]
fn nothing_is_said_when_nobody_reads() {
    let sandbox = Sandbox::new();
    let run = sandbox.shell("volary find disk.img | head -1; volary --help | head -1");
    assert_eq!(run.err, "");
}

#[test]
fn names_that_would_move_the_cursor_are_escaped() {
    let sandbox = Sandbox::empty();
    let run = sandbox.run_words(&["ls", "evil\x1b[2J.img:/"]);
    let said = run.fails(NOT_OPENED);
    assert!(said.contains("evil\\u{1b}[2J.img"), "{said}");
}

#[test]
fn torture_says_what_it_does_not_know() {
    let sandbox = Sandbox::empty();
    for (words, why) in [
        (&["run", "fat64", "--random", "1"][..], "no volume"),
        (&["run", "fat12"], "nothing to run"),
        (&["kill", "fat64"], "no volume"),
        (&["run", "fat12", "--pairs", "--part", "3/3"], "N/M"),
        (&["run", "fat12", "--triples", "--part", "3"], "N/M"),
        (
            &["replay", "fat12", "remove /x", "--cut", "1:-"],
            "no operation",
        ),
        (&["replay", "fat12", "sync", "--cut", "1"], "EVENT:CHOICE"),
        (&["replay", "fat12", "sync", "--cut", "1:2"], "EVENT:CHOICE"),
    ] {
        let words = [&["torture"], words].concat();
        let said = sandbox.run_words(&words).fails(2);
        assert!(said.contains(why), "{said}");
    }
    let words = ["torture", "replay", "fat12", "sync", "--cut", "999:-"];
    let said = sandbox.run_words(&words).fails(1);
    assert!(said.contains("no cut at event 999"), "{said}");
}
