//! Volumes of FAT that are damaged, or not of the common kind, on the command line.

use crate::sandbox::{Sandbox, noise};
use std::process::Command;

/// What a boot sector of FAT12 or FAT16 says of places, and the bytes.
struct Image {
    bytes: Vec<u8>,
    reserved: usize,
    fat_len: usize,
}

impl Image {
    fn read(sandbox: &Sandbox, name: &str) -> Self {
        let bytes = sandbox.read(name);
        let sector = word(&bytes, 11);
        Self {
            reserved: word(&bytes, 14) * sector,
            fat_len: word(&bytes, 22) * sector,
            bytes,
        }
    }

    fn root(&self) -> usize {
        self.reserved + 2 * self.fat_len
    }

    fn data(&self) -> usize {
        self.root() + word(&self.bytes, 17) * 32
    }

    fn cluster_len(&self) -> usize {
        usize::from(self.bytes[13]) * word(&self.bytes, 11)
    }

    fn cluster(&self, n: usize) -> usize {
        self.data() + (n - 2) * self.cluster_len()
    }

    /// Byte offset of the entry with this short name in the root directory.
    fn entry(&self, short: &str) -> usize {
        let slots = (self.root()..self.data()).step_by(32);
        let is_it = |at: &usize| self.bytes[*at..*at + 11] == *short.as_bytes();
        slots.into_iter().find(is_it).unwrap()
    }

    fn start(&self, short: &str) -> usize {
        word(&self.bytes, self.entry(short) + 26)
    }

    /// Returns where a copy of FAT16 has the entry of a cluster.
    fn link_at(&self, copy: usize, cluster: usize) -> usize {
        self.reserved + copy * self.fat_len + cluster * 2
    }

    fn chain(&self, start: usize) -> Vec<usize> {
        let next = |n: &usize| Some(word(&self.bytes, self.link_at(0, *n))).filter(|&n| n < 0xfff0);
        std::iter::successors(Some(start), next).collect()
    }

    fn set_link(&mut self, copy: usize, cluster: usize, value: u16) {
        let at = self.link_at(copy, cluster);
        self.bytes[at..at + 2].copy_from_slice(&value.to_le_bytes());
    }
}

fn word(bytes: &[u8], at: usize) -> usize {
    usize::from(u16::from_le_bytes([bytes[at], bytes[at + 1]]))
}

/// Returns the first so many bytes of noise, another for each number.
fn content(number: usize) -> Vec<u8> {
    noise(9000 + number)
}

/// Returns a FAT16 volume with thirty files of several clusters.
fn thirty() -> Sandbox {
    let sandbox = Sandbox::empty();
    sandbox
        .run("mkfs -q -t fat16 --size 32M --seed 1 disk.img")
        .ok();
    std::fs::create_dir(sandbox.path("in")).unwrap();
    for n in 0..30 {
        sandbox.write(&format!("in/F{n}"), &content(n));
    }
    sandbox.run("cp -r in disk.img:/sub").ok();
    sandbox.run("cp -r in/. disk.img:/").ok();
    sandbox
}

/// Sees that volary, or mtools where it is there, reads all sixty files.
fn has_all(sandbox: &Sandbox, by_mtools: bool) {
    let out = sandbox.path("out");
    let _ = std::fs::remove_dir_all(&out);
    if by_mtools {
        std::fs::create_dir(&out).unwrap();
        let mut mcopy = Command::new("mcopy");
        mcopy.args(["-s", "-i"]).arg(sandbox.path("disk.img"));
        match mcopy.args(["::/*"]).arg(&out).output() {
            Ok(done) => assert!(done.status.success(), "{done:?}"),
            Err(e) => return println!("skipped: mcopy: {e}"),
        }
    } else {
        sandbox.run("cp -r disk.img:/ out").ok();
    }
    for n in 0..30 {
        for dir in ["out", "out/sub"] {
            let name = format!("{dir}/F{n}");
            assert!(
                sandbox.read(&name) == content(n),
                "{name}, mtools: {by_mtools}"
            );
        }
    }
}

#[test]
fn thirty_chains_each_broken_in_one_fat_are_read_and_mended_by_the_other() {
    let sandbox = thirty();
    let mut image = Image::read(&sandbox, "disk.img");
    for n in 0..30 {
        let chain = image.chain(image.start(&format!("{:<11}", format!("F{n}"))));
        let values = [1, 0, 0xffff, 0xfff7, 0xffe0, chain[0] as u16];
        image.set_link(n % 2, chain[n % 3], values[n % 6]);
    }
    sandbox.write("disk.img", &image.bytes);
    let listed = sandbox.run("ls disk.img:/sub").ok();
    assert_eq!(listed.lines().count(), 30);
    has_all(&sandbox, false);
    assert!(sandbox.read("disk.img") == image.bytes, "it was changed");
    // What is not read by another copy may change.
    sandbox.run("cp in/F1 disk.img:/sub/new").ok();
    let refused = sandbox.run("rm disk.img:/F0").fails(1);
    assert!(refused.contains("fsck -y first"), "{refused}");
    let mended = sandbox.run("fsck -y disk.img");
    assert_eq!(mended.code, 1, "{}{}", mended.out, mended.err);
    assert!(mended.out.contains("chain-copy"), "{}", mended.out);
    sandbox.is_clean("disk.img");
    has_all(&sandbox, true);
    let after = sandbox.run("ls disk.img:/").ok();
    assert_eq!(after.lines().count(), 31, "{after}");
}

#[test]
fn a_first_fat_of_garbage_is_read_and_mended_by_the_second() {
    let sandbox = thirty();
    let sound = Image::read(&sandbox, "disk.img");
    for (len, fill) in [
        (512, 0xa5),
        (512, 0),
        (sound.fat_len, 0x5a),
        (sound.fat_len, 0xff),
    ] {
        let mut bytes = sound.bytes.clone();
        bytes[sound.reserved..sound.reserved + len].fill(fill);
        sandbox.write("disk.img", &bytes);
        has_all(&sandbox, false);
        assert!(
            sandbox.read("disk.img") == bytes,
            "{fill:#x}: it was changed"
        );
        // Not what a power cut leaves.
        let left = sandbox.run("fsck -p disk.img");
        assert!(left.code & 4 != 0, "{}{}", left.out, left.err);
        assert!(
            sandbox.read("disk.img") == bytes,
            "{fill:#x}: it was changed"
        );
        sandbox.run("fsck -y disk.img");
        sandbox.is_clean("disk.img");
        has_all(&sandbox, true);
        let after = sandbox.run("ls disk.img:/").ok();
        assert_eq!(after.lines().count(), 31, "{fill:#x}: {after}");
    }
}

#[test]
fn the_copy_of_a_boot_sector_that_is_named_is_gone_by_and_restored() {
    let sandbox = Sandbox::new();
    let sound = sandbox.read("unix.img");
    let mut bytes = sound.clone();
    bytes[11..71].fill(0xe5);
    sandbox.write("unix.img", &bytes);
    let mended = sandbox.run("fsck -y -o boot=6 unix.img");
    assert_eq!(mended.code, 1, "{}{}", mended.out, mended.err);
    assert!(mended.out.contains("boot-sector"), "{}", mended.out);
    assert!(sandbox.read("unix.img") == sound);
    sandbox.is_clean("unix.img");
    let read = sandbox.run("cat -o boot=6 unix.img:/docs/a.txt").ok();
    assert_eq!(read, "words\n");
    let refused = sandbox.run("mkdir -o boot=6 unix.img:/new").fails(1);
    assert!(refused.contains("read-only"), "{refused}");
}

#[test]
fn a_directory_whose_dots_are_misplaced_or_gone_is_copied_and_mended() {
    for gone in [false, true] {
        let sandbox = Sandbox::new();
        sandbox.run("mkdir disk.img:/docs/in").ok();
        sandbox.run("cp words disk.img:/docs/in/deep.txt").ok();
        let mut image = Image::read(&sandbox, "disk.img");
        let at = image.cluster(image.start("DOCS       "));
        let slots = 5;
        let dots = image.bytes[at..at + 64].to_vec();
        let rest = image.bytes[at + 64..at + slots * 32].to_vec();
        image.bytes[at..at + rest.len()].copy_from_slice(&rest);
        let dots = if gone { vec![0; 64] } else { dots };
        image.bytes[at + rest.len()..at + slots * 32].copy_from_slice(&dots);
        sandbox.write("disk.img", &image.bytes);
        sandbox.run("cp -r disk.img:/docs out").ok();
        assert_eq!(sandbox.read("out/a.txt"), b"words\n");
        assert_eq!(sandbox.read("out/in/deep.txt"), b"words\n");
        let found = sandbox.run("find disk.img:/").ok();
        assert!(found.contains("docs/in/deep.txt"), "{found}");
        sandbox.run("mv disk.img:/docs disk.img:/empty/docs").ok();
        let read = sandbox.run("cat disk.img:/empty/docs/in/deep.txt").ok();
        assert_eq!(read, "words\n");
        let mended = sandbox.run("fsck -y disk.img");
        assert_eq!(mended.code, 1, "{}{}", mended.out, mended.err);
        sandbox.is_clean("disk.img");
        let listed = sandbox.run("ls disk.img:/empty/docs").ok();
        assert_eq!(listed, "a.txt\nb.txt\nin\n");
        sandbox.run("rm -r disk.img:/empty").ok();
        sandbox.is_clean("disk.img");
    }
}

#[test]
fn a_first_fat_full_of_ends_is_no_garbage_beside_a_second_one_that_was_lost() {
    let sandbox = Sandbox::empty();
    let mkfs = "mkfs -q -t fat16 --size 32M -o cluster=2k --seed 1 disk.img";
    sandbox.run(mkfs).ok();
    std::fs::create_dir(sandbox.path("in")).unwrap();
    // Each takes one cluster: a sector of the FAT has the marks of 256 ends.
    for n in 0..700 {
        sandbox.write(&format!("in/f{n}"), format!("file {n}\n").as_bytes());
    }
    sandbox.run("cp -r in disk.img:/").ok();
    let mut image = Image::read(&sandbox, "disk.img");
    let second = image.reserved + image.fat_len + 512;
    image.bytes[second..second + 512].fill(0);
    sandbox.write("disk.img", &image.bytes);
    assert_ne!(sandbox.run("fsck -y disk.img").code, 0);
    assert_eq!(sandbox.run("fsck -n disk.img").code, 0);
    sandbox.run("cp -r disk.img:/in out").ok();
    for n in 0..700 {
        let content = sandbox.read(&format!("out/f{n}"));
        assert_eq!(content, format!("file {n}\n").as_bytes(), "{n}");
    }
}

#[test]
fn a_long_chain_that_one_fat_has_lost_in_two_sectors_is_kept_whole() {
    for copy in [0, 1] {
        let sandbox = Sandbox::empty();
        let mkfs = "mkfs -q -t fat16 --size 24M -o cluster=1k --seed 1 disk.img";
        sandbox.run(mkfs).ok();
        sandbox.write("big", &noise(1_000_000));
        sandbox.run("cp big disk.img:/").ok();
        let mut image = Image::read(&sandbox, "disk.img");
        let lost = image.reserved + copy * image.fat_len + 512;
        image.bytes[lost..lost + 1024].fill(0);
        sandbox.write("disk.img", &image.bytes);
        sandbox.run("cp disk.img:/big before").ok();
        assert_eq!(sandbox.read("before"), sandbox.read("big"), "FAT {copy}");
        assert_ne!(sandbox.run("fsck -y disk.img").code, 0);
        assert_eq!(sandbox.run("fsck -n disk.img").code, 0);
        sandbox.run("cp disk.img:/big after").ok();
        assert_eq!(sandbox.read("after"), sandbox.read("big"), "FAT {copy}");
    }
}

#[test]
fn a_label_is_shown_in_the_letters_in_which_it_was_given() {
    let sandbox = Sandbox::new();
    sandbox.run("label disk.img ÄÖ").ok();
    assert_eq!(sandbox.run("label disk.img").ok(), "ÄÖ\n");
    let info = sandbox.run("info disk.img").ok();
    assert!(info.contains("ÄÖ") && !info.contains('\u{fffd}'), "{info}");
}

#[test]
fn a_full_root_directory_is_not_called_a_full_volume() {
    let sandbox = Sandbox::empty();
    let line = "mkfs -q -t fat12 --size 1440k -o floppy=1440k disk.img";
    sandbox.run(line).ok();
    let files: Vec<String> = (0..225).map(|i| format!("disk.img:/F{i}")).collect();
    let told = sandbox.run(&format!("touch {}", files.join(" "))).fails(1);
    let why = "the root directory is full; put it into another directory\n";
    assert!(told.ends_with(why), "{told}");
}
