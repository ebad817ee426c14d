//! Block devices, and images that the kernel has mounted through a loop device.

use crate::flushing::make;
use crate::mounting::Mounting;
use crate::sandbox::Sandbox;
use std::path::PathBuf;
use std::process::Command;
use volary_testkit::oracle::{self, MKE2FS};

/// A loop device over an image; dropped, what is mounted of it is taken away, and it too.
struct Loop {
    node: String,
    dir: PathBuf,
}

impl Loop {
    /// Returns a device over this image; `None` where there are none.
    fn over(sandbox: &Sandbox, image: &str) -> Option<Self> {
        let made = Command::new("losetup")
            .args(["-f", "--show"])
            .arg(sandbox.path(image))
            .output();
        let node = made.ok().filter(|made| made.status.success());
        let Some(node) = node.map(|made| String::from_utf8(made.stdout).unwrap()) else {
            println!("SKIPPED: no loop device is to be had");
            return None;
        };
        let node = node.trim_end().to_owned();
        let dir = sandbox.path("kernel");
        Some(Self { node, dir })
    }

    /// Lets the kernel mount it. Returns whether it does.
    fn mount(&self) -> bool {
        std::fs::create_dir_all(&self.dir).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "ext4", &self.node]).arg(&self.dir);
        let is_done = mount.status().is_ok_and(|status| status.success());
        if !is_done {
            println!("SKIPPED: the kernel does not mount ext4");
        }
        is_done
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.dir).output();
        let _ = Command::new("losetup").args(["-d", &self.node]).output();
    }
}

#[test]
fn what_the_kernel_has_mounted_is_only_read() {
    if !oracle::have(&[MKE2FS]) {
        return;
    }
    let sandbox = Sandbox::empty();
    let mut mke2fs = MKE2FS.command();
    mke2fs.args(["-q", "-t", "ext4"]).arg(sandbox.path("a.img"));
    assert!(mke2fs.arg("16M").status().unwrap().success());
    let Some(device) = Loop::over(&sandbox, "a.img") else {
        return;
    };
    if !device.mount() {
        return;
    }
    let place = device.dir.to_str().unwrap();
    for image in ["a.img", &device.node] {
        for verb in [
            "mkfs --force -q",
            "mkfs --force -q --size 8M",
            "fsck -y",
            "tune --clean",
            "label",
        ] {
            if image != "a.img" && verb.contains("--size") {
                continue;
            }
            let words = if verb == "label" { " NEW" } else { "" };
            let run = sandbox.run(&format!("{verb} {image}{words}"));
            assert_ne!(run.code, 0, "{verb} {image}");
            let told = format!("mounted at {place}");
            assert!(run.err.contains(&told), "{verb} {image}: {}", run.err);
            let as_loop = format!(", as {}; unmount it", device.node);
            assert!(
                image != "a.img" || run.err.contains(&as_loop),
                "{}",
                run.err
            );
            assert_eq!(run.err.lines().count(), 1, "{}", run.err);
        }
        sandbox.run(&format!("fsck -n {image}")).ok();
    }
    assert_eq!(sandbox.read("a.img").len(), 16 << 20);
}

#[test]
fn a_device_has_one_writer_by_whatever_node() {
    let sandbox = Sandbox::empty();
    make(&sandbox, "fat16");
    let Some(device) = Loop::over(&sandbox, "fat16.img") else {
        return;
    };
    let Some(mounting) = Mounting::start(&sandbox, &[&device.node]) else {
        return;
    };
    let number = device.node.trim_start_matches("/dev/loop");
    let other = sandbox.path("node");
    let mut mknod = Command::new("mknod");
    mknod.arg(&other).args(["b", "7", number]);
    if mknod.status().is_ok_and(|status| status.success()) {
        let told = sandbox.run("mkfs --force node").fails(3);
        assert!(told.contains("in use by"), "{told}");
    }
    mounting.end();
    sandbox
        .run(&format!("mkfs -q --force {}", device.node))
        .ok();
}
