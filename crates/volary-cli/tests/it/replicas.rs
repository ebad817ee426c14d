//! Volumes of which the first superblock or boot sector has gone.

use crate::sandbox::Sandbox;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A volume: how it is made, what of it is destroyed, and where the replica stands.
struct Case {
    make: &'static str,
    /// Ranges of bytes.
    gone: &'static [(u64, usize)],
    /// `superblock at byte 65536`, and where its replica is found.
    what: &'static str,
    at: u64,
}

const CASES: &[Case] = &[
    Case {
        make: "-t ffs2 --size 16M",
        gone: &[(0, 72 << 10)],
        what: "superblock at byte 65536",
        at: 144 * 512,
    },
    Case {
        make: "-t ffs2 --size 16M -o order=big,hashes",
        gone: &[(65_536, 1376)],
        what: "superblock at byte 65536",
        at: 144 * 512,
    },
    Case {
        make: "-t ffs1 --size 16M",
        gone: &[(0, 16 << 10)],
        what: "superblock at byte 8192",
        at: 32 * 512,
    },
    Case {
        make: "-t ffs1 --size 16M -o order=big,old",
        gone: &[(0, 16 << 10)],
        what: "superblock at byte 8192",
        at: 32 * 512,
    },
    Case {
        make: "-t fat32 --size 64M",
        gone: &[(0, 512)],
        what: "boot sector at byte 0",
        at: 6 * 512,
    },
    Case {
        make: "-t cedar --size 16M",
        gone: &[(0, 512)],
        what: "root at byte 0",
        at: 2 * 4096,
    },
    Case {
        make: "-t cedar --size 16M",
        gone: &[(0, 12 << 10)],
        what: "root at byte 0",
        at: (16 << 20) - 4096,
    },
];

impl Case {
    /// The volume, with a file and a directory, and without its first superblock.
    fn made(&self, sandbox: &Sandbox) {
        sandbox
            .run(&format!("mkfs -q --force {} a.img", self.make))
            .ok();
        sandbox.run("mkdir a.img:/docs").ok();
        sandbox.run("cp tree/a.txt a.img:/docs").ok();
        for (at, len) in self.gone {
            destroy(sandbox, *at, &vec![0xa5; *len]);
        }
    }

    /// Returns what every verb that reads says of it.
    fn word(&self) -> String {
        format!(
            "volary: a.img: the {} makes no sense, read by its replica at byte {}; volary fsck -y a.img writes it anew\n",
            self.what, self.at
        )
    }
}

fn destroy(sandbox: &Sandbox, at: u64, bytes: &[u8]) {
    let file = File::options().write(true).open(sandbox.path("a.img"));
    file.unwrap().write_all_at(bytes, at).unwrap();
}

#[test]
fn every_verb_reads_by_the_replica_that_it_finds_and_says_so() {
    for case in CASES {
        let sandbox = Sandbox::empty();
        case.made(&sandbox);
        for (line, says) in [
            ("ls a.img:/docs", "a.txt"),
            ("cat a.img:/docs/a.txt", "alpha"),
            ("find a.img -name a.txt", "/docs/a.txt"),
            ("cp -r a.img:/docs got", ""),
            ("info a.img", ""),
            ("map a.img", ""),
            ("label a.img", ""),
            ("df a.img", ""),
        ] {
            let run = sandbox.run(line);
            assert_eq!(
                (run.code, run.err),
                (0, case.word()),
                "{}: {line}",
                case.make
            );
            assert!(run.out.contains(says), "{}: {line}: {}", case.make, run.out);
        }
        assert_eq!(sandbox.read("got/a.txt"), b"alpha\n");
    }
}

#[test]
fn nothing_is_changed_by_a_replica() {
    for case in CASES {
        let sandbox = Sandbox::empty();
        case.made(&sandbox);
        let before = sandbox.read("a.img");
        for line in [
            "cp tree/a.txt a.img:/b.txt",
            "mkdir a.img:/new",
            "rm a.img:/docs/a.txt",
            "label a.img OTHER",
        ] {
            let told = sandbox.run(line).fails(4);
            let hint = "nothing is changed; volary fsck -y a.img writes it anew";
            assert!(told.contains(hint), "{}: {line}: {told}", case.make);
        }
        assert!(sandbox.read("a.img") == before, "{}", case.make);
    }
}

#[test]
fn fsck_writes_the_first_one_anew_without_being_told_what_it_was() {
    for case in CASES {
        let sandbox = Sandbox::empty();
        case.made(&sandbox);
        let looked = sandbox.run("fsck -n a.img");
        assert_eq!(
            looked.code, 4,
            "{}: {}{}",
            case.make, looked.out, looked.err
        );
        let mended = sandbox.run("fsck -y a.img");
        assert_eq!(
            mended.code, 1,
            "{}: {}{}",
            case.make, mended.out, mended.err
        );
        assert_eq!(sandbox.run("cat a.img:/docs/a.txt").ok(), "alpha\n");
        sandbox.run("mkdir a.img:/new").ok();
        sandbox.run("fsck -n a.img").ok();
    }
}

#[test]
fn a_first_one_with_a_field_out_of_range_is_passed_over_too() {
    let sandbox = Sandbox::empty();
    // fs_bsize, BPB_BytsPerSec.
    for (make, at) in [
        ("-t ffs2 --size 16M", 65_536 + 48),
        ("-t fat32 --size 64M", 11),
    ] {
        sandbox.run(&format!("mkfs -q --force {make} a.img")).ok();
        sandbox.run("cp tree/a.txt a.img:/").ok();
        destroy(&sandbox, at, &[0x55, 0x55]);
        let run = sandbox.run("cat a.img:/a.txt");
        assert_eq!((run.code, run.out.as_str()), (0, "alpha\n"), "{}", run.err);
        assert!(run.err.contains("read by its replica"), "{}", run.err);
    }
}

#[test]
fn replicas_of_later_groups_are_found_by_how_long_a_group_is() {
    let sandbox = Sandbox::empty();
    let made = "mkfs -q -t ffs2 --size 200M -o block=32k,fragment=4k a.img";
    sandbox.run(made).ok();
    sandbox.run("cp tree/a.txt a.img:/").ok();
    let listed = sandbox.run("dump a.img superblocks").ok();
    let sectors: Vec<u64> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.parse().ok())
        .collect();
    let [first, second, third, ..] = sectors[..] else {
        panic!("{listed}");
    };
    assert!(third * 512 > 16 << 20, "{listed}");
    for sector in [first, second] {
        destroy(&sandbox, sector * 512, &[0; 8192]);
    }
    let run = sandbox.run("cat a.img:/a.txt");
    assert_eq!((run.code, run.out.as_str()), (0, "alpha\n"), "{}", run.err);
    let at = format!("replica at byte {}", third * 512);
    assert!(run.err.contains(&at), "{} {at}", run.err);
}

#[test]
fn a_superblock_that_is_named_is_gone_by_with_and_without_a_type() {
    let sandbox = Sandbox::empty();
    let case = &CASES[0];
    for line in [
        "ls -o superblock=144 a.img:/docs",
        "ls --type ffs -o superblock=144 a.img:/docs",
        "ls --type UFS2 -o superblock=144 a.img:/docs",
        "find -o type=ffs,superblock=144 -name a.txt a.img",
    ] {
        case.made(&sandbox);
        let listed = sandbox.run(line).ok();
        assert!(listed.contains("a.txt"), "{line}: {listed}");
    }
    for line in ["fsck -y -b 144 a.img", "fsck -y -t ffs -b 144 a.img"] {
        case.made(&sandbox);
        let mended = sandbox.run(line);
        assert_eq!(mended.code, 1, "{line}: {}{}", mended.out, mended.err);
        assert_eq!(sandbox.run("ls a.img:/docs").ok(), "a.txt\n");
    }
}

#[test]
fn dump_shows_what_is_stored_and_goes_by_the_replica_for_the_rest() {
    let sandbox = Sandbox::empty();
    CASES[0].made(&sandbox);
    let listed = sandbox.run("dump a.img superblocks").ok();
    assert!(!listed.contains("sector        128"), "{listed}");
    let run = sandbox.run("dump a.img directory 2");
    assert_eq!((run.code, run.err), (0, CASES[0].word()));
    assert!(run.out.contains("\"docs\""), "{}", run.out);
}

#[test]
fn a_server_and_its_configuration_file_open_by_replica_and_type() {
    let sandbox = Sandbox::empty();
    CASES[0].made(&sandbox);
    sandbox.write(
        "bad.toml",
        b"[[volume]]\nvolume = \"a.img\"\ntype = \"hfs\"\n",
    );
    let told = sandbox.run("serve --config bad.toml").fails(2);
    assert!(told.contains("unknown kind 'hfs'"), "{told}");
    sandbox.write(
        "wrong.toml",
        b"[[volume]]\nvolume = \"a.img\"\ntype = \"cedar\"\n",
    );
    let told = sandbox.run("serve --config wrong.toml");
    assert_eq!(told.code, 4, "{}", told.err);
    let mut serving = sandbox
        .command(&["serve", "--nfs", "127.0.0.1:0", "a.img"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0];
    std::io::Read::read_exact(serving.stdout.as_mut().unwrap(), &mut first).unwrap();
    let pid = rustix::process::Pid::from_child(&serving);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let ended = serving.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(said.contains(CASES[0].word().trim()), "{said}");
}

#[test]
fn what_holds_something_else_now_is_not_opened_by_an_old_replica() {
    let sandbox = Sandbox::empty();
    for case in CASES {
        case.made(&sandbox);
        // ext4's superblock, and a partition table.
        destroy(&sandbox, 0, &[0; 2048]);
        destroy(&sandbox, 0x438, &[0x53, 0xef]);
        let told = sandbox.run("ls a.img").fails(3);
        assert!(told.contains("an ext2 file system"), "{told}");
        case.made(&sandbox);
        let mut table = [0; 512];
        table[446..462].copy_from_slice(&[0, 1, 1, 0, 0x0c, 0, 0, 0, 0, 8, 0, 0, 0, 8, 0, 0]);
        table[510..].copy_from_slice(&[0x55, 0xaa]);
        destroy(&sandbox, 0, &table);
        let told = sandbox.run("ls a.img").fails(3);
        assert!(told.contains("an MBR partition table"), "{told}");
    }
}

#[test]
fn replicas_that_the_rest_of_the_volume_has_gone_from_are_not_believed() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 64M a.img").ok();
    let listed = sandbox.run("dump a.img superblocks").ok();
    let last = listed.lines().last().unwrap();
    let sector: u64 = last.split_whitespace().nth(1).unwrap().parse().unwrap();
    // All but the last group.
    let len = usize::try_from(sector * 512).unwrap();
    destroy(&sandbox, 0, &crate::sandbox::noise(len));
    let told = sandbox.run("ls a.img").fails(3);
    assert!(told.contains("no replica"), "{told}");
}

#[test]
fn a_cedar_root_that_its_volume_has_gone_from_is_gone_by_only_for_its_type() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t cedar --size 64M a.img").ok();
    destroy(&sandbox, 0, &crate::sandbox::noise((64 << 20) - (64 << 10)));
    let before = sandbox.read("a.img");
    for (line, code) in [
        ("info a.img", 3),
        ("fsck -n a.img", 8),
        ("fsck -y a.img", 8),
    ] {
        let told = sandbox.run(line).fails(code);
        assert!(told.contains("no replica"), "{line}: {told}");
        assert!(sandbox.read("a.img") == before, "{line}");
    }
    let run = sandbox.run("info --type cedar a.img");
    assert_eq!(run.code, 0, "{}", run.err);
    assert!(run.err.contains("read by its replica"), "{}", run.err);
    assert!(sandbox.read("a.img") == before);
}

#[test]
fn a_cedar_volume_without_its_beginning_is_found_by_what_else_is_left() {
    let sandbox = Sandbox::empty();
    // The beginning; all before the middle, where the name table and the log are.
    for gone in [64 << 10, 24 << 20] {
        sandbox
            .run("mkfs -q --force -t cedar --size 64M a.img")
            .ok();
        sandbox.run("mkdir a.img:/docs").ok();
        destroy(&sandbox, 0, &crate::sandbox::noise(gone));
        let run = sandbox.run("ls a.img");
        assert_eq!((run.code, run.out.as_str()), (0, "docs\n"), "{}", run.err);
        assert!(run.err.contains("read by its replica"), "{}", run.err);
        let mended = sandbox.run("fsck -y a.img");
        assert_eq!(mended.code, 1, "{}{}", mended.out, mended.err);
        assert_eq!(sandbox.run("ls a.img").ok(), "docs\n");
    }
}

#[test]
fn without_any_replica_the_error_names_what_is_there_and_the_type() {
    let sandbox = Sandbox::empty();
    sandbox.write("a.img", &crate::sandbox::noise(1 << 20));
    let bytes = &sandbox.read("a.img")[..8];
    let digits: Vec<String> = bytes.iter().map(|b| format!("{b:02x}")).collect();
    for verb in ["ls", "info", "map", "dump", "stat"] {
        let told = sandbox.run(&format!("{verb} a.img")).fails(3);
        let says = |words: &str| assert!(told.contains(words), "{words}: {told}");
        says(&format!("begins with {}", digits.join(" ")));
        says("no replica of a superblock or boot sector was found");
        says("--type KIND");
    }
    let told = sandbox.run("fsck -n a.img").fails(8);
    assert!(told.contains("--type KIND"), "{told}");
    let told = sandbox.run("ls --type fat32 a.img").fails(4);
    assert!(told.contains("boot sector"), "{told}");
    sandbox.write("zeros", &[0; 1 << 20]);
    let told = sandbox.run("ls zeros").fails(3);
    assert!(told.contains("nothing but zeros"), "{told}");
}
