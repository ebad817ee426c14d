//! File systems of our own, mounted for one test.

use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Returns whether this test may mount; says so if not, which is an error in CI.
pub(crate) fn can_mount() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        let words = "to mount a file system takes root";
        assert!(std::env::var_os("CI").is_none(), "{words}");
        eprintln!("SKIPPED: {words}");
    }
    root
}

/// A whole file system, empty, mounted until it is dropped.
pub(crate) struct Own {
    point: PathBuf,
    _dir: TempDir,
}

impl Own {
    /// `tmpfs`, or `ext4` on an image.
    pub(crate) fn new(kind: &str) -> Self {
        let dir = TempDir::new().expect("a directory");
        let (point, image) = (dir.path().join("mount"), dir.path().join("image"));
        std::fs::create_dir(&point).expect("a mount point");
        let mut mount = Command::new("mount");
        if kind == "tmpfs" {
            mount.args(["-t", "tmpfs", "-o", "size=1g", "none"]);
        } else {
            let file = std::fs::File::create(&image).expect("an image");
            file.set_len(64 << 20).expect("room");
            let options = "lazy_itable_init=1,lazy_journal_init=1,nodiscard";
            let mut make = Command::new(format!("mkfs.{kind}"));
            run(make.args(["-q", "-m", "0", "-E", options]).arg(&image));
            mount.args(["-o", "loop"]).arg(&image);
        }
        run(mount.arg(&point));
        // Made by mkfs; the tests want to begin with nothing.
        let _ = std::fs::remove_dir(point.join("lost+found"));
        Self { point, _dir: dir }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.point
    }
}

impl Drop for Own {
    fn drop(&mut self) {
        run(Command::new("umount").arg("-l").arg(self.path()));
    }
}

fn run(command: &mut Command) {
    let done = command.output().expect("the program");
    let errors = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{command:?}: {errors}");
}
