//! `cp` of long files out of volumes, which the host copies from the image itself where it can.

use crate::sandbox::{Run, Sandbox, noise};
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::LazyLock;

/// Not a whole number of any blocks.
const LEN: usize = (8 << 20) + 4321;

/// Returns what the long file holds.
fn whole() -> &'static [u8] {
    static WHOLE: LazyLock<Vec<u8>> = LazyLock::new(|| noise(LEN));
    &WHOLE
}

/// A volume with a long file.
fn with_file(sandbox: &Sandbox, mkfs: &str, image: &str) {
    let made = format!("mkfs -q {mkfs} --size 64M {image}");
    sandbox.run(&made).ok();
    sandbox.write("file", whole());
    sandbox.run(&format!("cp file {image}:/")).ok();
}

/// Copies a file of a volume out to `out`, and gives how many calls read files for that, without those
/// that find out what the volume is.
fn reads(sandbox: &Sandbox, volume: &str) -> u64 {
    let io =
        "while read -r what count; do [ $what = syscr: ] && echo $count; done < /proc/$$/io; true";
    let count = |line: &str| {
        let line = format!("{line}; {io}");
        sandbox.shell(&line).ok().trim().parse::<u64>().unwrap()
    };
    let listed = count(&format!("volary ls {volume}:/ > list"));
    count(&format!("volary cp {volume}:/file out")).saturating_sub(listed)
}

/// Puts an image into the rest of a disk, as its first partition.
fn as_partition(sandbox: &Sandbox, image: &str, disk: &str) {
    let bytes = sandbox.read(image);
    let start = 2048_u32;
    let sectors = u32::try_from(bytes.len() / 512).unwrap();
    let mut mbr = vec![0; 512];
    mbr[450] = 0x0c;
    mbr[454..458].copy_from_slice(&start.to_le_bytes());
    mbr[458..462].copy_from_slice(&sectors.to_le_bytes());
    mbr[510..].copy_from_slice(&[0x55, 0xaa]);
    let file = File::create(sandbox.path(disk)).unwrap();
    file.write_all_at(&mbr, 0).unwrap();
    file.write_all_at(&bytes, u64::from(start) * 512).unwrap();
}

#[test]
fn long_files_come_out_whole_in_few_calls() {
    let sandbox = Sandbox::empty();
    for (mkfs, image) in [
        ("-t fat32", "fat.img"),
        ("-t ffs2", "ffs.img"),
        ("-t ffs1", "ffs1.img"),
        ("-t cedar", "cedar.img"),
    ] {
        with_file(&sandbox, mkfs, image);
        let count = reads(&sandbox, image);
        assert!(sandbox.read("out") == whole(), "{image}");
        // Parts of 256 KiB would be more than 32.
        assert!(count < 25, "{image}: {count} reads");
    }
    as_partition(&sandbox, "fat.img", "disk");
    let count = reads(&sandbox, "disk#1");
    assert!(sandbox.read("out") == whole());
    assert!(count < 25, "{count} reads");
    sandbox.run("mv ffs.img:/file moved").ok();
    assert!(sandbox.read("moved") == whole());
    sandbox.run("fsck -n ffs.img").ok();
}

#[test]
fn what_is_in_another_form_in_the_image_comes_out_as_it_is_read() {
    let sandbox = Sandbox::empty();
    with_file(&sandbox, "-t fat32", "a.qcow2");
    sandbox.run("cp a.qcow2:/file out").ok();
    assert!(sandbox.read("out") == whole());
    sandbox.run("mkfs -q -t fat32 --size 64M crypt.img").ok();
    sandbox.write_secret("pass", b"words\n");
    let layer = "--layer crypt=passphrase-file=pass";
    sandbox.run(&format!("cp {layer} file crypt.img:/")).ok();
    sandbox
        .run(&format!("cp {layer} crypt.img:/file clear"))
        .ok();
    assert!(sandbox.read("clear") == whole());
}

#[test]
fn a_layer_that_looks_at_reads_sees_those_of_a_copy() {
    let sandbox = Sandbox::empty();
    with_file(&sandbox, "-t fat32", "a.img");
    let copy = "cp --layer audit=log,reads --layer fault=read@2+ a.img:/file out";
    let run = sandbox.run(copy);
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(
        run.err.contains("cannot be read and are zeros"),
        "{}",
        run.err
    );
    let log = String::from_utf8(sandbox.read("log")).unwrap();
    assert!(log.contains("read"), "{log}");
}

#[test]
fn holes_stay_holes_between_long_stretches() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 64M a.img").ok();
    let file = File::create(sandbox.path("file")).unwrap();
    let data = &whole()[..3 << 20];
    file.write_all_at(data, 4 << 20).unwrap();
    file.write_all_at(data, 12 << 20).unwrap();
    file.set_len(20 << 20).unwrap();
    sandbox.run("cp file a.img:/").ok();
    sandbox.run("cp a.img:/file out").ok();
    assert!(sandbox.read("out") == sandbox.read("file"));
    let room = sandbox.path("out").metadata().unwrap().blocks() * 512;
    assert!(room < 7 << 20, "{room}");
}

#[test]
fn a_budget_counts_what_the_host_copies() {
    let sandbox = Sandbox::empty();
    with_file(&sandbox, "-t fat32", "a.img");
    sandbox.run("cp file a.img:/more").ok();
    let run = sandbox.run("cp -r --max-size 10M a.img:/ out");
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(run.err.contains("stopped before it"), "{}", run.err);
    assert!(sandbox.read("out/file") == whole());
    assert!(!sandbox.path("out/more").exists());
}

#[test]
fn where_the_host_has_no_room_no_half_file_is_left() {
    let sandbox = Sandbox::empty();
    with_file(&sandbox, "-t fat32", "a.img");
    // Longer than a file may be there.
    sandbox.write("file", &whole().repeat(2));
    sandbox.run("cp file a.img:/").ok();
    let output = sandbox
        .short_of_room(&["cp", "a.img:/file", "out"])
        .output();
    let run = Run::of(&output.unwrap());
    assert_eq!(run.code, 1, "{}", run.err);
    assert!(!sandbox.path("out").exists(), "{}", run.err);
}

#[test]
fn an_image_is_not_copied_over_itself() {
    let sandbox = Sandbox::empty();
    with_file(&sandbox, "-t fat32", "file.img");
    sandbox.run("mv file.img:/file file.img:/file.img").ok();
    let before = sandbox.read("file.img");
    let run = sandbox.run("cp -r file.img:/. .");
    assert!(run.err.contains("left as it is"), "{}", run.err);
    assert!(sandbox.read("file.img") == before);
}
