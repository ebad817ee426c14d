//! Volumes of NTFS on the command line.

use crate::sandbox::Sandbox;
use std::process::Command;
use volary_testkit::oracle::ntfs;

/// Returns a tree, and a volume that ntfs-3g has put it on; none where that is missing.
fn image() -> Option<Sandbox> {
    if !ntfs::can_mount() {
        return None;
    }
    let sandbox = Sandbox::with_tree();
    sandbox.write("src/large", &vec![7; 300_000]);
    let image = sandbox.path("disk.img");
    ntfs::make(&image, 8 << 20, "-L LABEL");
    let mounted = ntfs::Mounted::new(&image, &sandbox.path("place"), "umask=022");
    let copied = Command::new("sh")
        .args(["-c", "cp -r src/. place"])
        .current_dir(sandbox.path("."))
        .output();
    drop(mounted);
    assert!(copied.unwrap().status.success());
    Some(sandbox)
}

#[test]
fn volumes_of_windows_can_be_looked_at_copied_and_checked() {
    let Some(sandbox) = image() else { return };
    let listed = sandbox.run("ls disk.img").ok();
    assert_eq!(listed, "docs\nlarge\nlink\n");
    assert_eq!(sandbox.run("cat disk.img:/link").ok(), "words\n");
    sandbox.run("cp -r disk.img:/ copy").ok();
    for file in ["docs/words", "large"] {
        let ours = sandbox.read(&format!("copy/{file}"));
        assert!(ours == sandbox.read(&format!("src/{file}")), "{file}");
    }
    let info = sandbox.run("info disk.img").ok();
    assert!(info.contains("LABEL") && info.contains("ntfs"), "{info}");
    let checked = sandbox.run("fsck -n disk.img").ok();
    assert!(checked.contains("clean"), "{checked}");
    sandbox.run("map disk.img").ok();
    let dumped = sandbox.run("dump disk.img record /large").ok();
    assert!(dumped.contains("$DATA"), "{dumped}");
    let told = sandbox.run("rm disk.img:/link").fails(1);
    assert!(told.contains("read-only"), "{told}");
}

#[test]
fn damage_of_a_record_is_told_and_the_rest_is_copied() {
    let Some(sandbox) = image() else { return };
    let dumped = sandbox.run("dump disk.img record /large").ok();
    let digits = dumped.split("at byte ").nth(1).unwrap();
    let at: usize = digits.lines().next().unwrap().parse().unwrap();
    let mut image = sandbox.read("disk.img");
    image[at + 510] ^= 0x40;
    sandbox.write("disk.img", &image);
    let told = sandbox.run("fsck -n disk.img");
    assert_ne!(told.code, 0, "{}{}", told.out, told.err);
    assert!(told.out.contains("torn"), "{}", told.out);
    let copied = sandbox.run("cp -r disk.img:/ copy");
    assert_eq!(copied.code, 1, "{}", copied.err);
    assert!(sandbox.read("copy/docs/words") == sandbox.read("src/docs/words"));
}

#[test]
fn a_volume_without_its_boot_sector_is_read_by_the_replica() {
    let Some(sandbox) = image() else { return };
    let mut image = sandbox.read("disk.img");
    image[..512].fill(0);
    sandbox.write("disk.img", &image);
    let listed = sandbox.run("ls disk.img");
    assert_eq!(
        (listed.code, listed.out.as_str()),
        (0, "docs\nlarge\nlink\n")
    );
    let word =
        "volary: disk.img: the boot sector at byte 0 makes no sense, read by its replica at byte ";
    assert!(listed.err.starts_with(word), "{}", listed.err);
    assert!(!listed.err.contains("fsck"), "{}", listed.err);
    let told = sandbox.run("fsck -y disk.img");
    assert_eq!(told.code, 4, "{}{}", told.out, told.err);
    assert!(
        told.out.contains("the boot sector makes no sense"),
        "{}",
        told.out
    );
    assert!(sandbox.read("disk.img") == image);
}
