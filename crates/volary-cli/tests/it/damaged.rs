//! What copies deliver of volumes that are damaged.

use crate::mounting::Mounting;
use crate::sandbox::{Run, Sandbox, noise};
use crate::serving::{Serving, client};
use volary_testkit::oracle::{MKE2FS, have};

/// Returns where `part` begins in an image.
fn find(image: &[u8], part: &[u8]) -> usize {
    let mut windows = image.windows(part.len());
    windows.position(|w| w == part).unwrap()
}

/// That `copy` is `whole` with zeros in these bytes.
fn has_zeros_at(copy: &[u8], whole: &[u8], at: std::ops::RangeInclusive<usize>) {
    assert_eq!(copy.len(), whole.len());
    let mut expected = whole.to_vec();
    expected[at].fill(0);
    assert!(copy == expected);
}

#[test]
fn a_garbage_block_pointer_costs_the_bytes_that_it_leads_to() {
    let sandbox = Sandbox::empty();
    sandbox
        .run("mkfs -q -t ffs2 --size 16M -o block=8192,fragment=1024 disk.img")
        .ok();
    let whole = noise(80_000);
    sandbox.write("big", &whole);
    sandbox.run("mkdir disk.img:/d").ok();
    for name in ["d/a", "d/big", "d/z", "last"] {
        let line = format!("cp big disk.img:/{name}");
        sandbox.run(&line).ok();
    }
    let mut image = sandbox.read("disk.img");
    // The pointers of the second file, d/big: the content begins where the first of them says.
    let first = find(&image, &whole[..4096]);
    let second = first + 4096 + find(&image[first + 4096..], &whole[..4096]);
    let frag = (second / 1024) as u64;
    let pointers = [frag, frag + 8, frag + 16].map(u64::to_le_bytes).concat();
    let at = find(&image, &pointers);
    image[at + 24..at + 32].copy_from_slice(&0x7fff_ffff_ffff_u64.to_le_bytes());
    sandbox.write("disk.img", &image);
    let said = sandbox.run("cp -r disk.img:/ out").fails(1);
    let expected = "bytes 24576 to 32767 cannot be read and are zeros in the copy: ";
    assert!(said.contains(expected), "{said}");
    let damaged = ["d/a", "d/big", "d/z", "last"].map(|name| sandbox.read(&format!("out/{name}")));
    let (bad, good): (Vec<_>, Vec<_>) = damaged.iter().partition(|held| **held != whole);
    assert_eq!((bad.len(), good.len()), (1, 3));
    has_zeros_at(bad[0], &whole, 24_576..=32_767);
    // A move leaves it where it is.
    let run = sandbox.run("mv disk.img:/d moved");
    assert!(run.err.contains("not moved"), "{}", run.err);
    assert_eq!(sandbox.run("ls disk.img:/d").ok(), "a\nbig\nz\n");
}

#[test]
fn a_broken_chain_gives_what_is_before_the_break() {
    let sandbox = Sandbox::new();
    let whole = noise(100_000);
    sandbox.write("big", &whole);
    sandbox.run("cp big disk.img:/docs/big").ok();
    sandbox.run("cp big disk.img:/last").ok();
    let mut image = sandbox.read("disk.img");
    let word = |image: &[u8], at: usize| usize::from(image[at]) | usize::from(image[at + 1]) << 8;
    let (sector, cluster) = (word(&image, 11), word(&image, 11) * usize::from(image[13]));
    let (reserved, fat) = (word(&image, 14) * sector, word(&image, 22) * sector);
    let data = reserved + 2 * fat + word(&image, 17) * 32;
    let first = (find(&image, &whole[..4096]) - data) / cluster + 2;
    let kept = 20_000_usize.next_multiple_of(cluster);
    let broken = first + kept / cluster - 1;
    for copy in 0..2 {
        // The chain ends here; the file does not.
        let at = reserved + copy * fat + 2 * broken;
        image[at..at + 2].copy_from_slice(&[0xff, 0xff]);
    }
    sandbox.write("disk.img", &image);
    let said = sandbox.run("cp -r disk.img:/ out").fails(1);
    let expected = format!("disk.img:/docs/big: bytes {kept} to 99999 cannot be read");
    assert!(said.contains(&expected), "{said}");
    has_zeros_at(&sandbox.read("out/docs/big"), &whole, kept..=99_999);
    assert!(sandbox.read("out/last") == whole);
    assert_eq!(sandbox.read("out/docs/b.txt"), b"words\n");
}

#[test]
fn a_copy_goes_on_past_what_cannot_be_read_at_all() {
    let sandbox = Sandbox::new();
    sandbox.run("cp words disk.img:/last").ok();
    // The sixth, after what is read ahead: docs/a.txt.
    let said = sandbox
        .run("cp -r --layer fault=open@6 disk.img:/ out")
        .fails(1);
    assert!(said.contains("disk.img:/docs/a.txt: "), "{said}");
    assert_eq!(
        sandbox.shell("ls out out/docs").ok(),
        "out:\nREADME.txt\ndocs\nempty\nlast\n\nout/docs:\nb.txt\n"
    );
    let said = sandbox
        .run("cp -r --layer fault=readdir@4 disk.img:/ less")
        .fails(1);
    assert!(said.contains("disk.img:/docs: "), "{said}");
    assert_eq!(
        sandbox.shell("ls less less/docs").ok(),
        "less:\nREADME.txt\ndocs\nempty\nlast\n\nless/docs:\n"
    );
    // A directory of which the second part is damaged is copied up to there.
    std::fs::create_dir(sandbox.path("many")).unwrap();
    for i in 0..1500 {
        sandbox.write(&format!("many/{i:04}"), b"");
    }
    sandbox.run("cp -r many disk.img:/docs").ok();
    let said = sandbox
        .run("cp -r --layer fault=readdir@2 disk.img:/docs/many part")
        .fails(1);
    assert!(said.contains("disk.img:/docs/many: "), "{said}");
    let count = std::fs::read_dir(sandbox.path("part")).unwrap().count();
    assert!((500..1500).contains(&count), "{count}");
}

#[test]
fn a_read_that_fails_once_costs_nothing_and_a_dead_device_leaves_no_zeros() {
    let sandbox = Sandbox::new();
    let whole = noise(3_000_000);
    sandbox.write("big", &whole);
    sandbox.run("cp big disk.img:/a").ok();
    sandbox
        .run("cp --layer fault=read@3 disk.img:/a again")
        .ok();
    assert!(sandbox.read("again") == whole);
    let said = sandbox
        .run("cp --layer fault=read@3+ disk.img:/a some")
        .fails(1);
    assert!(
        said.contains("to 2999999 cannot be read and are zeros in the copy"),
        "{said}"
    );
    let some = sandbox.read("some");
    let good = some.iter().zip(&whole).take_while(|(a, b)| a == b).count();
    assert!(
        good >= 100_000 && some[good + 300..].iter().all(|b| *b == 0),
        "{good}"
    );
    let run = sandbox.run("cp -r --layer fault=read@2+ disk.img:/ out");
    assert_eq!(run.code, 1, "{}", run.err);
    let left = run
        .err
        .lines()
        .filter(|line| line.contains("nothing of it can be read; left out"));
    assert_eq!(left.count(), 3, "{}", run.err);
    assert_eq!(
        sandbox.shell("ls out out/docs").ok(),
        "out:\nREADME.txt\ndocs\nempty\n\nout/docs:\n"
    );
}

#[test]
fn a_file_of_absurd_length_is_copied_by_its_holes() {
    let sandbox = Sandbox::empty();
    sandbox
        .run("mkfs -q -t ffs2 --size 16M -o block=65536,fragment=8192 disk.img")
        .ok();
    sandbox.write("long", &noise(77_777));
    sandbox.run("cp long disk.img:/long").ok();
    let mut image = sandbox.read("disk.img");
    let size = find(&image, &77_777_u64.to_le_bytes());
    let long = 1_u64 << 54;
    image[size..size + 8].copy_from_slice(&long.to_le_bytes());
    sandbox.write("disk.img", &image);
    let said = sandbox.run("cp disk.img:/long out").fails(1);
    assert!(said.contains("bytes 65536 to 131071"), "{said}");
    // Not every host has files of that length.
    if let Ok(out) = std::fs::metadata(sandbox.path("out")) {
        assert_eq!(out.len(), long);
    }
}

/// Returns a record of a directory on an ISO 9660 volume.
fn record(name: &[u8], block: u32, len: u32, flags: u8) -> Vec<u8> {
    let number = |n: u32| [n.to_le_bytes(), n.to_be_bytes()].concat();
    let mut record = [&[0, 0][..], &number(block), &number(len)].concat();
    record.extend([126, 11, 22, 12, 0, 0, 0, flags, 0, 0, 1, 0, 0, 1]);
    record.push(name.len() as u8);
    record.extend(name);
    record.resize(record.len().next_multiple_of(2), 0);
    record[0] = record.len() as u8;
    record
}

#[test]
fn an_entry_that_leads_nowhere_hides_no_other() {
    const ROOT: u32 = 18;
    let sandbox = Sandbox::empty();
    let mut image = vec![0; 32 << 10];
    let mut descriptor = b"\x01CD001\x01".to_vec();
    descriptor.resize(2048, 0);
    descriptor[128..130].copy_from_slice(&2048_u16.to_le_bytes());
    let root = record(&[0], ROOT, 2048, 2);
    descriptor[156..156 + root.len()].copy_from_slice(&root);
    image.extend(descriptor);
    image.extend(b"\xffCD001\x01");
    image.resize(ROOT as usize * 2048, 0);
    image.extend(root);
    image.extend(record(&[1], ROOT, 2048, 2));
    image.extend(record(b"A.;1", 16, 5, 0));
    image.extend(record(b"BAD", 17, 2048, 2));
    image.extend(record(b"Z.;1", 16, 5, 0));
    image.resize((ROOT as usize + 1) * 2048, 0);
    sandbox.write("disk.iso", &image);
    for (verb, shown) in [
        ("ls disk.iso", "a\nz\n"),
        ("ls -R disk.iso:/", "disk.iso:/:\na\nz\n"),
        ("find disk.iso:/", "disk.iso:/\ndisk.iso:/a\ndisk.iso:/z\n"),
        (
            "tree disk.iso:/",
            "disk.iso:/\n├── a\n└── z\n\n0 directories, 2 files\n",
        ),
    ] {
        let run = sandbox.run(verb);
        assert_eq!((run.code, &*run.out), (1, shown), "{verb}: {}", run.err);
        assert!(run.err.contains("disk.iso:/bad: "), "{verb}: {}", run.err);
    }
}

/// Makes a volume with the files f1, f2 and f3, and an invalid mode in the inode of f2. Returns `None` where
/// the program that makes it is missing.
fn with_a_damaged_inode(kind: &str) -> Option<Sandbox> {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("files")).unwrap();
    for name in ["f1", "f2", "f3"] {
        sandbox.write(&format!("files/{name}"), name.as_bytes());
    }
    if kind == "ext4" {
        if !have(&[MKE2FS]) {
            return None;
        }
        let mut mke2fs = MKE2FS.command();
        mke2fs.args(["-q", "-t", kind, "-d", "files", "disk.img", "16M"]);
        let made = mke2fs.current_dir(sandbox.path("")).output().unwrap();
        assert!(made.status.success(), "{made:?}");
    } else {
        sandbox
            .run(&format!("mkfs -q -t {kind} --size 16M disk.img"))
            .ok();
        sandbox.run("cp -r files/. disk.img:/").ok();
    }
    let listed = sandbox.run("ls -i disk.img:/").ok();
    let line = listed.lines().find(|line| line.ends_with("f2")).unwrap();
    let number = line.split_whitespace().next().unwrap();
    let dumped = sandbox.run(&format!("dump disk.img inode {number}")).ok();
    let head = dumped.lines().next().unwrap();
    let at: usize = head.rsplit(' ').next().unwrap().parse().unwrap();
    let mut image = sandbox.read("disk.img");
    image[at..at + 2].copy_from_slice(&[0x55, 0xf1]);
    sandbox.write("disk.img", &image);
    Some(sandbox)
}

#[test]
fn a_damaged_inode_hides_no_name_whoever_lists() {
    for kind in ["ffs1", "ffs2", "ext4"] {
        let Some(sandbox) = with_a_damaged_inode(kind) else {
            return;
        };
        for list in ["ls -l disk.img:/", "find disk.img:/"] {
            let run = sandbox.run(list);
            assert_eq!(run.code, 1, "{kind}: {list}");
            assert!(
                run.out.contains("f1") && run.out.contains("f3"),
                "{kind}: {list}"
            );
            assert!(run.err.contains("f2"), "{kind}: {list}: {}", run.err);
        }
        if let Some(mounting) = Mounting::start(&sandbox, &["disk.img"]) {
            let names = std::fs::read_dir(sandbox.path("mnt")).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name());
            let is_file = |name: &std::ffi::OsString| name != "lost+found";
            let mut names: Vec<_> = names.filter(is_file).collect();
            names.sort();
            assert_eq!(names, ["f1", "f2", "f3"], "{kind}");
            assert_eq!(sandbox.read("mnt/f3"), b"f3");
            assert!(std::fs::read(sandbox.path("mnt/f2")).is_err());
            mounting.terminate();
        }
        of_servers(&sandbox, kind);
    }
}

/// The same of clients of NFS and SMB.
fn of_servers(sandbox: &Sandbox, kind: &str) {
    let fixed = "serve --json --smb 127.0.0.1:0 --nfs 127.0.0.1:0 --key key --user c disk.img";
    let words: Vec<&str> = fixed.split(' ').collect();
    let mut command = sandbox.command(&words);
    command.env("VOLARY_PASSWORD", "password");
    let serving = Serving::of(command);
    let has_all = |run: &Run| {
        let listed = &run.out;
        let all = ["f1", "f2", "f3"].iter().all(|name| listed.contains(name));
        assert!(all, "{kind}: {listed}{}", run.err);
    };
    let port = serving.port();
    let place = format!("-o port={port},mountport={port} nfs://127.0.0.1/disk:/");
    let run = sandbox.run(&format!("ls {place}"));
    let is_whole = run.code == 1 && run.out.starts_with("f1\nf3\n");
    assert!(is_whole, "{kind}: {}{}", run.out, run.err);
    assert!(
        run.err.contains("/f2: the server answered"),
        "{kind}: {}",
        run.err
    );
    if let Some(run) = client(sandbox, "nfs-ls", &[&serving.url("/disk")]) {
        has_all(&run);
    }
    let address = serving.said["smb"].as_str().unwrap();
    let port = address.rsplit(':').next().unwrap();
    let words = [
        "-U",
        "c%password",
        "-p",
        port,
        "//127.0.0.1/disk",
        "-c",
        "ls",
    ];
    if let Some(run) = client(sandbox, "smbclient", &words) {
        has_all(&run);
    }
    serving.stop("-TERM");
}
