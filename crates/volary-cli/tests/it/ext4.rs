//! Volumes of ext2, ext3 and ext4 on the command line.

use crate::sandbox::Sandbox;
use volary_testkit::oracle::{self, MKE2FS};

/// Returns a tree, and volumes that `mke2fs` has made of it; none where it is missing.
fn image(kind: &str) -> Option<Sandbox> {
    if !oracle::have(&[MKE2FS]) {
        return None;
    }
    let sandbox = Sandbox::with_tree();
    sandbox.write("src/large", &vec![7; 300_000]);
    let made = MKE2FS
        .command()
        .args(["-q", "-t", kind, "-L", "LABEL", "-d"])
        .arg(sandbox.path("src"))
        .arg(sandbox.path("disk.img"))
        .arg("16M")
        .output();
    let made = made.unwrap();
    assert!(made.status.success(), "{made:?}");
    Some(sandbox)
}

#[test]
fn volumes_of_linux_can_be_looked_at_copied_and_checked() {
    for kind in ["ext2", "ext3", "ext4"] {
        let Some(sandbox) = image(kind) else { return };
        let listed = sandbox.run("ls disk.img").ok();
        assert_eq!(listed, "docs\nlarge\nlink\nlost+found\n", "{kind}");
        assert_eq!(sandbox.run("cat disk.img:/link").ok(), "words\n", "{kind}");
        sandbox.run("cp -r disk.img:/ copy").ok();
        for file in ["docs/words", "large"] {
            let ours = sandbox.read(&format!("copy/{file}"));
            assert!(
                ours == sandbox.read(&format!("src/{file}")),
                "{kind} {file}"
            );
        }
        let info = sandbox.run("info disk.img").ok();
        assert!(info.contains("LABEL") && info.contains(kind), "{info}");
        let checked = sandbox.run("fsck -n disk.img").ok();
        assert!(checked.contains("clean"), "{checked}");
        sandbox.run("map disk.img").ok();
        let told = sandbox.run("rm disk.img:/link").fails(1);
        assert!(told.contains("read-only"), "{told}");
    }
}

#[test]
fn damage_is_told_with_the_file_that_has_it() {
    let Some(sandbox) = image("ext4") else { return };
    let mut image = sandbox.read("disk.img");
    // The root's directory block begins with its own number and a record of 12 bytes.
    let root = [2, 0, 0, 0, 12, 0, 1, 2, b'.', 0, 0, 0];
    let root = image.windows(12).position(|bytes| bytes == root).unwrap();
    image[root + 24] ^= 0x40;
    sandbox.write("disk.img", &image);
    let told = sandbox.run("fsck -n disk.img");
    assert_ne!(told.code, 0, "{}{}", told.out, told.err);
    // What is not damaged is copied all the same.
    let copied = sandbox.run("cp -r -o nochecksums disk.img:/ copy");
    assert_eq!(copied.code, 1, "{}", copied.err);
    assert!(sandbox.read("copy/large") == sandbox.read("src/large"));
}

#[test]
fn a_volume_without_its_superblock_is_read_by_a_replica_and_stays_as_it_is() {
    let Some(sandbox) = image("ext4") else { return };
    let mut image = sandbox.read("disk.img");
    image[..4096].fill(0xa5);
    sandbox.write("disk.img", &image);
    for (line, says) in [
        ("ls disk.img", "docs\nlarge\nlink\nlost+found\n"),
        ("cat disk.img:/link", "words\n"),
        ("info disk.img", "LABEL"),
        ("map disk.img", ""),
        ("bulk disk.img", ""),
        ("cp -r disk.img:/ copy", ""),
    ] {
        let run = sandbox.run(line);
        assert_eq!(run.code, 0, "{line}: {}", run.err);
        assert!(run.out.contains(says), "{line}: {}", run.out);
        let word = "volary: disk.img: the superblock at byte 1024 makes no sense, read by its replica at byte 8389632\n";
        assert_eq!(run.err.lines().next(), word.lines().next(), "{line}");
    }
    assert!(sandbox.read("copy/large") == sandbox.read("src/large"));
    for line in ["fsck -n disk.img", "fsck -y disk.img"] {
        let told = sandbox.run(line);
        assert_eq!(told.code, 4, "{line}: {}", told.err);
        let words = "the superblock makes no sense; the check goes by its replica at byte 8389632";
        assert!(told.out.contains(words), "{line}: {}", told.out);
        assert!(
            told.out.contains("save what can be read"),
            "{line}: {}",
            told.out
        );
    }
    let told = sandbox.run("rm disk.img:/link").fails(1);
    assert!(told.contains("read-only"), "{told}");
    assert!(sandbox.read("disk.img") == image);
}
