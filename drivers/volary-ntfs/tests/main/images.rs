//! Volumes of mkntfs, and trees that ntfs-3g puts on them.

use rustix::fs::{XattrFlags, setxattr};
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, UNIX_EPOCH};
pub(crate) use volary_testkit::oracle::ntfs::can_mount;
use volary_testkit::oracle::ntfs::{self, Mounted};
use volary_testkit::oracle::{MKNTFS, have};
use volary_testkit::rng::pattern;

/// A place for images, in memory where there is one.
pub(crate) struct Images {
    dir: tempfile::TempDir,
}

/// Returns whether there is what makes images.
pub(crate) fn can_make() -> bool {
    have(&[MKNTFS])
}

impl Images {
    pub(crate) fn new() -> Self {
        Self {
            dir: volary_testkit::volumes::scratch(),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Makes a volume with mkntfs, of `size` bytes, with the options `how`.
    pub(crate) fn made(&self, name: &str, how: &str, size: u64) -> PathBuf {
        let image = self.path(name);
        ntfs::make(&image, size, how);
        image
    }

    /// Makes a volume, and fills it through a mount.
    pub(crate) fn filled(&self, how: &str, size: u64, fill: impl FnOnce(&Path)) -> PathBuf {
        let image = self.made("filled.img", how, size);
        let mounted = mounted(self, &image, "");
        fill(mounted.dir());
        drop(mounted);
        image
    }
}

/// Runs a program that has to succeed.
pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().expect("a run");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Mounts a volume of these.
pub(crate) fn mounted(images: &Images, image: &Path, options: &str) -> Mounted {
    let options = format!("umask=022,atime,{options}");
    Mounted::new(image, &images.path("mnt"), options.trim_end_matches(','))
}

/// Sizes about which files are stored differently.
const SIZES: &[usize] = &[
    0, 1, 100, 511, 600, 700, 1024, 4095, 4096, 4097, 12_288, 70_000, 300_000,
];

pub(crate) fn attribute(path: &Path, name: &str, value: &[u8]) {
    setxattr(path, name, value, XattrFlags::empty()).unwrap_or_else(|e| panic!("{name}: {e}"));
}

/// Makes a tree of all kinds of files.
pub(crate) fn fill(dir: &Path) {
    for (n, len) in SIZES.iter().enumerate() {
        fs::write(dir.join(format!("size{len}")), pattern(n as u64, *len)).unwrap();
    }
    let sparse = fs::File::create(dir.join("sparse")).unwrap();
    sparse.write_all_at(&pattern(1, 5000), 0).unwrap();
    sparse.write_all_at(&pattern(2, 100), 1_000_000).unwrap();
    sparse.write_all_at(&pattern(3, 9000), 2_000_001).unwrap();
    sparse.set_len(3_000_000).unwrap();
    let deep = (0..12).fold(dir.join("deep"), |dir, n| dir.join(format!("level {n}")));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f"), "deep").unwrap();
    fs::create_dir(dir.join("empty dir")).unwrap();
    fs::create_dir(dir.join("few")).unwrap();
    for name in [
        "a",
        "A",
        "b.txt",
        "a name of some length",
        "ä",
        "Ä",
        "日本語",
        "😀 pair",
    ] {
        fs::write(dir.join("few").join(name), name).unwrap();
    }
    let many = dir.join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..250 {
        let name = format!("file number {n} {}", "n".repeat(n % 60));
        fs::write(many.join(name), n.to_string()).unwrap();
    }
    for n in (0..250).step_by(7) {
        let name = format!("file number {n} {}", "n".repeat(n % 60));
        fs::remove_file(many.join(name)).unwrap();
    }
    fs::write(dir.join("l".repeat(255)), "long").unwrap();
    fs::write(dir.join("odd \x01\\ : \"name\""), "odd").unwrap();
    for len in [1, 60, 400] {
        std::os::unix::fs::symlink("t".repeat(len), dir.join(format!("link{len}"))).unwrap();
    }
    fs::hard_link(dir.join("size4097"), dir.join("hard")).unwrap();
    fs::hard_link(dir.join("size4097"), dir.join("few/hard too")).unwrap();
    for n in 0..60 {
        let name = format!("many/one of many names, this is number {n}");
        fs::hard_link(dir.join("size700"), dir.join(name)).unwrap();
    }
    streams(dir);
    let file = fs::File::options().write(true).open(dir.join("size600"));
    // ntfs-3g rounds parts of seconds before 1970 the other way.
    let then = UNIX_EPOCH - Duration::new(1_000_000_000, 0);
    file.unwrap().set_modified(then).unwrap();
}

/// Named streams, so many on one file that its attributes are in several records.
fn streams(dir: &Path) {
    let file = dir.join("size1024");
    for (name, len) in [("user.small", 5), ("user.empty", 0), ("user.large", 40_000)] {
        attribute(&file, name, &pattern(len as u64, len));
    }
    attribute(&dir.join("few"), "user.of a directory", b"value");
    let file = dir.join("size4096");
    for n in 0..50 {
        attribute(
            &file,
            &format!("user.stream {n}"),
            &pattern(n, 100 + 30 * n as usize),
        );
    }
}
