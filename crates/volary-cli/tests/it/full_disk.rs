//! An image that grows on a disk of the host that has no room left.

use crate::sandbox::{Sandbox, noise};
use std::process::Command;

/// A small disk of the host on the sandbox's `mnt`.
struct SmallDisk(std::path::PathBuf);

impl SmallDisk {
    /// `None`, with a word, where no file system can be mounted.
    fn new(sandbox: &Sandbox) -> Option<Self> {
        let disk = Self(sandbox.path("mnt"));
        let mut mount = Command::new("mount");
        let mounted = mount
            .args(["-t", "tmpfs", "-o", "size=3M", "tmpfs"])
            .arg(&disk.0)
            .output();
        match mounted {
            Ok(run) if run.status.success() => Some(disk),
            other => {
                println!("skipped: a tmpfs cannot be mounted (root can): {other:?}");
                std::mem::forget(disk);
                None
            }
        }
    }

    fn gets_room(&self) {
        let mut mount = Command::new("mount");
        let mounted = mount.args(["-o", "remount,size=32M"]).arg(&self.0).status();
        assert!(mounted.unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

const FULL: &str = "the host's disk is full";

#[test]
fn a_full_disk_of_the_host_is_told_as_that_and_leaves_what_preening_mends() {
    let sandbox = Sandbox::empty();
    sandbox.write("big", &noise(4 << 20));
    for kind in ["fat16", "fat32", "ffs1", "ffs2", "cedar"] {
        for image in ["mnt/a.img", "mnt/a.qcow2"] {
            let Some(disk) = SmallDisk::new(&sandbox) else {
                return;
            };
            let made = format!("mkfs -q -t {kind} --size 64M {image}");
            sandbox.run(&made).ok();
            sandbox.run(&format!("mkdir {image}:/d")).ok();
            let run = sandbox.run(&format!("cp tree/a.txt big {image}:/d"));
            assert_eq!(run.code, 1, "{kind}: {}", run.err);
            assert!(run.err.contains(FULL), "{kind}: {}", run.err);
            assert!(!run.err.contains("on the volume"), "{kind}: {}", run.err);
            disk.gets_room();
            let preened = sandbox.run(&format!("fsck -p {image}"));
            let is_whole = preened.code == 0 || preened.code == 1;
            assert!(is_whole, "{kind} {image}: {}{}", preened.out, preened.err);
            sandbox.run(&format!("fsck -n {image}")).ok();
            sandbox.run(&format!("cp big {image}:/d/again")).ok();
            sandbox.run(&format!("cp {image}:/d/again back")).ok();
            assert!(sandbox.read("back") == sandbox.read("big"), "{kind}");
        }
    }
}

#[test]
fn what_clients_of_a_mount_write_to_a_full_disk_fails_as_its_device_did() {
    let sandbox = Sandbox::empty();
    std::fs::create_dir(sandbox.path("at")).unwrap();
    let Some(_disk) = SmallDisk::new(&sandbox) else {
        return;
    };
    sandbox.run("mkfs -q -t fat16 --size 64M mnt/a.img").ok();
    sandbox.write("big", &noise(4 << 20));
    let run = sandbox.shell(
        "volary mount mnt/a.img at 2>said & pid=$!; \
         i=0; until mountpoint -q at || [ $i = 100 ]; do sleep 0.05; i=$((i+1)); done; \
         cp big at/big 2>failed; sync -f at 2>>failed; kill $pid; wait $pid; cat failed said",
    );
    assert!(
        run.out.contains("Input/output error"),
        "{}{}",
        run.out,
        run.err
    );
    assert!(run.out.contains(FULL), "{}{}", run.out, run.err);
}

#[test]
fn no_image_is_left_where_there_is_no_room_to_make_a_volume() {
    let sandbox = Sandbox::empty();
    let Some(_disk) = SmallDisk::new(&sandbox) else {
        return;
    };
    std::fs::write(sandbox.path("mnt/fill"), noise((3 << 20) - 8192)).unwrap();
    for name in ["mnt/a.img", "mnt/a.qcow2"] {
        let run = sandbox.run(&format!("mkfs -q -t fat32 --size 64M {name}"));
        assert_ne!(run.code, 0, "{name}");
        assert!(run.err.contains(FULL), "{name}: {}", run.err);
        assert!(!sandbox.path(name).exists(), "{name}");
    }
}

#[test]
fn a_file_that_cannot_get_its_size_is_not_left_empty() {
    let sandbox = Sandbox::new();
    let told = sandbox.run("truncate -s 100T disk.img:/new").fails(1);
    assert!(told.contains("disk.img:/new"), "{told}");
    assert!(!sandbox.run("ls disk.img").ok().contains("new"));
    sandbox
        .run("truncate -s 100T disk.img:/README.txt")
        .fails(1);
    assert_eq!(sandbox.run("cat disk.img:/README.txt").ok(), "words\n");
}
