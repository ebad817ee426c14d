//! Volumes of the Fast File System on the command line.

use crate::sandbox::{Sandbox, noise};
use volary_testkit::oracle::{self, Tool};

const MAKEFS: Tool = Tool {
    program: "makefs",
    package: "makefs",
};

/// Returns a tree and an image of it in this format; none where no program makes one.
fn image(version: u32, order: &str) -> Option<Sandbox> {
    if !oracle::have(&[MAKEFS]) {
        return None;
    }
    let sandbox = Sandbox::with_tree();
    let made = MAKEFS
        .command()
        .args(["-t", "ffs", "-s", "1m", "-B", order, "-o"])
        .arg(format!("version={version},bsize=4096,fsize=512"))
        .arg(sandbox.path("disk.img"))
        .arg(sandbox.path("src"))
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
    Some(sandbox)
}

#[test]
fn an_ffs_volume_can_be_looked_at_copied_and_checked() {
    for (version, order, words) in [(1, "le", "little"), (1, "be", "big"), (2, "le", "little")] {
        let Some(sandbox) = image(version, order) else {
            return;
        };
        assert_eq!(sandbox.run("ls disk.img").ok(), "docs\nlink\n");
        assert_eq!(sandbox.run("cat disk.img:/link").ok(), "words\n");
        sandbox.run("cp -r disk.img:/ copy").ok();
        assert_eq!(sandbox.read("copy/docs/words"), b"words\n");
        let link = std::fs::read_link(sandbox.path("copy/link")).unwrap();
        assert_eq!(link.to_str(), Some("docs/words"));
        let info = sandbox.run("info disk.img").ok();
        assert!(info.contains(&format!("UFS{version}")), "{info}");
        assert!(info.contains(&format!("{words}-endian")), "{info}");
        let checked = sandbox.run("fsck -n disk.img").ok();
        assert!(checked.contains("clean"), "{checked}");
        let dumped = sandbox.run("dump disk.img directory 2").ok();
        assert!(dumped.contains("\"docs\""), "{dumped}");
        let listed = sandbox.run("dump disk.img superblocks").ok();
        assert!(listed.contains("good"), "{listed}");
        sandbox.run("map disk.img").ok();
        sandbox.run("cp disk.img:/docs/words mem:/").ok();
    }
}

#[test]
fn a_volume_that_was_not_cleanly_left_says_why_it_takes_no_changes() {
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 8M disk.img").ok();
    let mut image = sandbox.read("disk.img");
    // fs_clean, in the superblock of UFS2.
    image[(64 << 10) + 209] = 0;
    sandbox.write("disk.img", &image);
    sandbox.write("file", b"words");
    let why = "the volume was not cleanly left";
    for line in [
        "cp file disk.img:/",
        "mkdir disk.img:/d",
        "chmod 700 disk.img:/",
    ] {
        let told = sandbox.run(line).fails(1);
        assert!(told.contains(why), "{line}: {told}");
        assert_eq!(told.trim_end().lines().count(), 1, "{line}: {told}");
    }
    sandbox.run("ls disk.img").ok();
    let asked = sandbox.run("mkdir -o ro disk.img:/d").fails(1);
    assert!(!asked.contains(why), "{asked}");
    let served = crate::serving::Serving::start(&sandbox, "disk.img");
    let ended = served.end("-TERM");
    assert!(ended.err.contains("takes no changes: "), "{}", ended.err);
    assert_eq!(ended.err.matches(why).count(), 1, "{}", ended.err);
}

#[test]
fn an_ffs_volume_takes_changes() {
    for (version, order) in [(1, "le"), (1, "be"), (2, "be")] {
        let Some(sandbox) = image(version, order) else {
            return;
        };
        sandbox.write("long", &noise(90_000));
        for line in [
            "mkdir disk.img:/new",
            "cp long disk.img:/new/long",
            "mv disk.img:/docs/words disk.img:/new/other",
            "ln disk.img:/new/long disk.img:/again",
            "rm disk.img:/link",
            "rmdir disk.img:/docs",
        ] {
            sandbox.run(line).ok();
        }
        assert_eq!(sandbox.run("ls disk.img").ok(), "again\nnew\n");
        assert_eq!(sandbox.run("cat disk.img:/new/other").ok(), "words\n");
        sandbox.run("cp disk.img:/again back").ok();
        assert_eq!(sandbox.read("back"), noise(90_000));
        let checked = sandbox.run("fsck -n disk.img").ok();
        assert!(checked.contains("clean"), "{checked}");
    }
}

#[test]
fn ffs_volumes_are_made_in_both_formats_and_byte_orders() {
    let sandbox = Sandbox::empty();
    for (kind, order, words) in [
        ("ffs1", "little", "UFS1"),
        ("ffs1", "big,old", "4.3BSD"),
        ("ffs2", "big", "UFS2"),
    ] {
        let made = format!("mkfs -t {kind} --force --size 8M -o order={order} new.img");
        sandbox.run(&made).ok();
        let info = sandbox.run("info new.img").ok();
        assert!(info.contains(words) && info.contains("8388608"), "{info}");
        assert_eq!(sandbox.run("ls new.img").ok(), "");
        let checked = sandbox.run("fsck -n new.img").ok();
        assert!(checked.contains("clean"), "{checked}");
    }
    let told = sandbox
        .run("mkfs -t ffs1 --force --size 8M -o block=7 new.img")
        .fails(2);
    assert!(told.contains("block=7"), "{told}");
}

/// Makes the pointer to block `number` of a file on a little-endian UFS1 volume lead nowhere. Its
/// blocks of 4096 bytes are `bytes`, its pointers what leads to them.
fn cut_pointer(image: &mut [u8], bytes: &[u8], number: usize) {
    let at = |bytes: &[u8]| {
        let place = image
            .chunks(512)
            .position(|sector| bytes.starts_with(sector));
        u32::try_from(place.expect("a block")).unwrap()
    };
    let pointers: Vec<u8> = bytes
        .chunks(4096)
        .flat_map(|block| at(block).to_le_bytes())
        .collect();
    let found = image
        .windows(pointers.len())
        .position(|bytes| bytes == pointers);
    let place = found.expect("the pointers") + number * 4;
    image[place..place + 4].fill(0x7f);
}

#[test]
fn a_damaged_pointer_of_ffs_costs_its_block_and_fsck_names_the_file() {
    let sandbox = Sandbox::empty();
    let content = noise(7 * 4096);
    sandbox.write("file", &content);
    sandbox
        .run("mkfs -q -t ffs1 --size 4M -o order=little,block=4096,fragment=512 disk.img")
        .ok();
    sandbox.run("mkdir disk.img:/docs").ok();
    sandbox.run("cp file disk.img:/docs/file").ok();
    let mut image = sandbox.read("disk.img");
    cut_pointer(&mut image, &content, 3);
    sandbox.write("disk.img", &image);

    let looked = sandbox.run("fsck -n disk.img");
    assert!(looked.code != 0, "{}", looked.out);
    let line = "bad-block: /docs/file: ";
    assert!(looked.out.contains(line), "{}", looked.out);
    assert!(sandbox.read("disk.img") == image);

    let mended = sandbox.run("fsck -y disk.img").out;
    assert!(mended.contains(line), "{mended}");
    assert!(
        mended.contains("; mended: the pointer becomes a hole"),
        "{mended}"
    );
    let mut kept = content.clone();
    kept[3 * 4096..4 * 4096].fill(0);
    sandbox.shell("volary cat disk.img:/docs/file > there").ok();
    assert!(sandbox.read("there") == kept);
    sandbox.run("cp disk.img:/docs/file copy").ok();
    assert!(sandbox.read("copy") == kept);
    let checked = sandbox.run("fsck -n disk.img").ok();
    assert!(checked.contains("clean"), "{checked}");
}

/// Of a figure that no disk has, nothing is made.
#[test]
fn a_superblock_with_absurd_figures_of_a_disk_is_changed_all_the_same() {
    const SUPERBLOCK: usize = 65_536;
    /// `fs_old_rotdelay`, `fs_old_rps` and `fs_old_nsect` (fs.h).
    const FIGURES: [usize; 3] = [64, 68, 168];
    let sandbox = Sandbox::empty();
    sandbox.run("mkfs -q -t ffs2 --size 8M disk.img").ok();
    let mut image = sandbox.read("disk.img");
    for at in FIGURES {
        let at = SUPERBLOCK + at;
        image[at..at + 4].copy_from_slice(&i32::MAX.to_le_bytes());
    }
    sandbox.write("disk.img", &image);
    sandbox.run("touch disk.img:/file").ok();
    assert_eq!(sandbox.run("ls disk.img").ok(), "file\n");
}
