//! mkntfs and ntfs-3g.

use super::{MKNTFS, NTFS_3G, have};
use rustix::fs::{FlockOperation, fcntl_lock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns whether volumes can be made and filled. A line says why not.
pub fn can_mount() -> bool {
    let able = have(&[MKNTFS, NTFS_3G])
        && rustix::process::geteuid().is_root()
        && Path::new("/dev/fuse").exists();
    if !able {
        println!("SKIPPED: no ntfs-3g, no FUSE, or no right to mount");
    }
    able
}

/// Makes a volume of so many bytes, with more options of mkntfs.
///
/// # Panics
/// If mkntfs fails.
pub fn make(image: &Path, size: u64, how: &str) {
    let file = File::create(image).expect("an image");
    file.set_len(size).expect("a size");
    let mut command = MKNTFS.command();
    command.args(["-q", "-F", "-Q", "-p", "0", "-H", "255", "-S", "63"]);
    if !how.contains("-s ") {
        command.args(["-s", "512"]);
    }
    run(command.args(how.split_whitespace()).arg(image));
}

fn run(command: &mut Command) {
    let output = command.output().expect("a run");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
}

/// A volume that ntfs-3g has mounted, until it is dropped.
#[derive(Debug)]
pub struct Mounted {
    dir: PathBuf,
    image: PathBuf,
}

impl Mounted {
    /// Mounts an image at a directory, which is made if it is not there.
    ///
    /// # Panics
    /// If ntfs-3g does not mount it.
    pub fn new(image: &Path, dir: &Path, options: &str) -> Self {
        std::fs::create_dir_all(dir).expect("a directory");
        run(NTFS_3G.command().arg(image).arg(dir).args(["-o", options]));
        Self {
            dir: dir.to_path_buf(),
            image: image.to_path_buf(),
        }
    }

    /// Returns where it is mounted.
    pub fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A program that another thread starts has all open files for a moment.
        let done = Command::new("umount").arg(&self.dir).output();
        if !done.is_ok_and(|done| done.status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
        // ntfs-3g goes on writing for a while, and holds a lock until it is done.
        let file = File::options().write(true).open(&self.image);
        let locked = file.map(|file| fcntl_lock(file, FlockOperation::LockExclusive));
        if !std::thread::panicking() {
            assert!(locked.is_ok_and(|locked| locked.is_ok()), "a lock");
        }
    }
}
