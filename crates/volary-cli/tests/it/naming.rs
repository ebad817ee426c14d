//! What volumes, kinds and images are called.

use crate::sandbox::Sandbox;
use std::process::Command;

#[test]
fn kinds_are_made_by_the_names_that_other_systems_have_for_them() {
    let sandbox = Sandbox::empty();
    for (kind, size, key, value) in [
        ("vfat", "64M", "kind", "fat16"),
        ("msdos", "1M", "kind", "fat12"),
        ("fat", "600M", "kind", "fat32"),
        ("FAT32", "64M", "kind", "fat32"),
        ("ufs", "16M", "format", "UFS2"),
        ("ffs", "16M", "format", "UFS2"),
        ("UFS1", "16M", "format", "UFS1"),
        ("ufs2", "16M", "format", "UFS2"),
    ] {
        let made = format!("mkfs -q -t {kind} --size {size} a.img");
        sandbox.run(&made).ok();
        let info = sandbox.run("info --json a.img").ok();
        let expected = format!("\"{key}\": \"{value}\"");
        assert!(info.contains(&expected), "{kind}: {info}");
        std::fs::remove_file(sandbox.path("a.img")).unwrap();
    }
}

#[test]
fn only_kinds_that_can_be_made_are_offered_by_mkfs() {
    let sandbox = Sandbox::empty();
    let told = sandbox.run("mkfs -t hfs --size 16M a.img").fails(2);
    let (_, offered) = told.split_once("there are: ").unwrap();
    assert_eq!(
        offered,
        "fat12, fat16, fat32, cedar, ffs1, ffs2, v7, sysv\n"
    );
    let told = sandbox.run("mkfs -t iso --size 16M a.img").fails(1);
    assert!(told.contains("xorriso"), "{told}");
    assert!(!sandbox.path("a.img").exists());
}

#[test]
fn what_a_volume_has_none_of_is_null_in_json() {
    let sandbox = Sandbox::empty();
    for (kind, keys) in [
        ("fat16", &["label", "UNIX extension"][..]),
        ("ffs2", &["label"]),
        ("cedar", &["label", "remote"]),
    ] {
        let made = format!("mkfs -q --force -t {kind} --size 16M a.img");
        sandbox.run(&made).ok();
        let info = sandbox.run("info --json a.img").ok();
        for key in keys {
            assert!(info.contains(&format!("\"{key}\": null")), "{kind}: {info}");
        }
        assert!(!info.contains("\"none\""), "{kind}: {info}");
        let text = sandbox.run("info a.img").ok();
        assert!(text.contains("none"), "{text}");
    }
    sandbox
        .run("mkfs -q --force -t fat16 -L none --size 16M a.img")
        .ok();
    let info = sandbox.run("info --json a.img").ok();
    assert!(
        info.to_lowercase().contains("\"label\": \"none\""),
        "{info}"
    );
}

#[test]
fn a_place_without_its_slash_is_refused_with_how_it_is_written() {
    let sandbox = Sandbox::new();
    for line in [
        "ls disk.img:README.txt",
        "cat disk.img:docs/a.txt",
        "cp disk.img:README.txt got",
        "cp words disk.img:new",
        "mv disk.img:README.txt disk.img:/x",
        "rm disk.img:README.txt",
    ] {
        let told = sandbox.run(line).fails(2);
        assert!(told.contains("disk.img:/"), "{line}: {told}");
    }
    assert!(!sandbox.path("disk.img:new").exists());
    // It may be meant.
    sandbox
        .run_words(&["cp", "disk.img:/README.txt", r"disk.img\:new"])
        .ok();
    assert_eq!(sandbox.read("disk.img:new"), b"words\n");
}

#[test]
fn urls_of_what_is_not_opened_say_what_to_do() {
    let sandbox = Sandbox::empty();
    for (url, says) in [
        ("smb://server/share", "mount it"),
        ("SMB://server/share", "mount it"),
        ("https://server/disk.img", "fetch it"),
        ("file:///disk.img", "name the file itself"),
    ] {
        for verb in ["ls", "info", "cp -r tree"] {
            let told = sandbox.run(&format!("{verb} {url}")).fails(2);
            assert!(told.contains(says), "{verb}: {told}");
        }
    }
}

#[test]
fn a_qcow2_image_is_made_by_its_name_and_is_one() {
    let sandbox = Sandbox::empty();
    for (words, name) in [("", "a.qcow2"), ("--format qcow2", "a.img")] {
        let made = format!("mkfs -q -t fat32 --size 64M {words} {name}");
        sandbox.run(&made).ok();
        sandbox.run(&format!("cp -r tree {name}:/")).ok();
        assert!(sandbox.read(name).starts_with(b"QFI\xfb"));
        assert!(sandbox.read(name).len() < 4 << 20);
        sandbox.run(&format!("fsck -n {name}")).ok();
        let larger = sandbox
            .run(&format!("mkfs --force --size 128M {name}"))
            .fails(1);
        assert!(
            larger.contains("a qcow2 image of 67108864 bytes"),
            "{larger}"
        );
        qemu_takes(&sandbox, name);
    }
    sandbox.run("mkfs -q --size 1M --format raw b.qcow2").ok();
    assert_eq!(sandbox.read("b.qcow2").len(), 1 << 20);
    let told = sandbox.run("mkfs -q --size 1M c.vmdk").fails(2);
    assert!(told.contains("no vmdk images"), "{told}");
    assert!(!sandbox.path("c.vmdk").exists());
}

/// QEMU finds nothing wrong, and reads the same bytes.
fn qemu_takes(sandbox: &Sandbox, name: &str) {
    let qemu = |args: &[&str]| {
        let mut qemu = Command::new("qemu-img");
        qemu.args(args).current_dir(sandbox.path("")).output()
    };
    let checked = match qemu(&["check", "-f", "qcow2", name]) {
        Ok(checked) => checked,
        Err(e) => {
            let ci = std::env::var("CI").as_deref() == Ok("true");
            assert!(!ci, "qemu-img is missing: apt-get install qemu-utils");
            println!("skipped: qemu-img: {e}");
            return;
        }
    };
    assert!(checked.status.success(), "{checked:?}");
    let converted = qemu(&["convert", "-f", "qcow2", "-O", "raw", name, "raw.img"]).unwrap();
    assert!(converted.status.success(), "{converted:?}");
    assert_eq!(sandbox.read("raw.img").len(), 64 << 20);
    assert_eq!(sandbox.run("cat raw.img:/tree/a.txt").ok(), "alpha\n");
}
