//! Trees on the host, and volumes of them.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, UNIX_EPOCH};
use volary_testkit::oracle::{MKE2FS, Tool, have};
use volary_testkit::rng::pattern;

const E2FSPROGS: &str = "e2fsprogs";
pub(crate) const DEBUGFS: Tool = Tool {
    program: "debugfs",
    package: E2FSPROGS,
};
pub(crate) const E2FSCK: Tool = Tool {
    program: "e2fsck",
    package: E2FSPROGS,
};

/// A place for images, in memory where there is one.
pub(crate) struct Images {
    dir: tempfile::TempDir,
}

/// Returns whether there is what makes images.
pub(crate) fn can_make() -> bool {
    have(&[MKE2FS, DEBUGFS, E2FSCK])
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

    /// Returns a directory with what volumes are made of.
    pub(crate) fn tree(&self) -> PathBuf {
        let src = self.path("src");
        fs::create_dir_all(&src).expect("a directory");
        fill(&src);
        src
    }

    /// Makes a volume by mke2fs, with what `how` says and this size.
    pub(crate) fn made(&self, name: &str, how: &str, size: &str, from: Option<&Path>) -> PathBuf {
        let image = self.path(name);
        let _ = fs::remove_file(&image);
        let mut command = MKE2FS.command();
        command.args([
            "-q",
            "-F",
            "-E",
            "lazy_itable_init=0,hash_seed=01234567-89ab-cdef-0123-456789abcdef",
        ]);
        command.args(how.split_whitespace());
        if let Some(from) = from {
            command.arg("-d").arg(from);
        }
        command.arg(&image).arg(size);
        run(&mut command);
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

/// Gives debugfs requests, one a line, for a volume that they change.
pub(crate) fn debugfs(image: &Path, requests: &str) -> String {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fs::write(file.path(), requests).expect("requests");
    let mut command = DEBUGFS.command();
    command.args(["-w", "-f"]).arg(file.path()).arg(image);
    run(&mut command)
}

/// Sizes about which files are stored differently.
const SIZES: &[usize] = &[
    0, 1, 59, 60, 61, 100, 150, 160, 200, 1023, 1024, 1025, 4095, 4096, 4097, 12_288, 13_000,
    70_000, 300_000,
];

/// Makes a tree of all kinds of files but devices.
pub(crate) fn fill(src: &Path) {
    for (n, len) in SIZES.iter().enumerate() {
        fs::write(src.join(format!("size{len}")), pattern(n as u64, *len)).unwrap();
    }
    let sparse = fs::File::create(src.join("sparse")).unwrap();
    sparse.write_all_at(&pattern(1, 5000), 0).unwrap();
    sparse.write_all_at(&pattern(2, 100), 1_000_000).unwrap();
    sparse.write_all_at(&pattern(3, 9000), 2_000_001).unwrap();
    let deep = (0..12).fold(src.join("deep"), |dir, n| dir.join(format!("level {n}")));
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("f"), "deep").unwrap();
    fs::create_dir(src.join("empty dir")).unwrap();
    fs::create_dir(src.join("few")).unwrap();
    for name in ["a", "b.txt", "a name of some length", "ä"] {
        fs::write(src.join("few").join(name), name).unwrap();
    }
    let many = src.join("many");
    fs::create_dir(&many).unwrap();
    for n in 0..250 {
        fs::write(
            many.join(format!("file number {n} {}", "n".repeat(n % 60))),
            n.to_string(),
        )
        .unwrap();
    }
    let odd = std::ffi::OsStr::from_bytes(b"odd \xff\n\x01\\name");
    fs::write(src.join(odd), "odd").unwrap();
    fs::write(src.join("l".repeat(255)), "long").unwrap();
    for len in [1, 58, 59, 60, 61, 200, 900] {
        symlink("t".repeat(len), src.join(format!("link{len}"))).unwrap();
    }
    fs::hard_link(src.join("size4097"), src.join("hard")).unwrap();
    fs::hard_link(src.join("size4097"), src.join("few/hard too")).unwrap();
    fs::set_permissions(src.join("size1"), fs::Permissions::from_mode(0o4751)).unwrap();
    let file = fs::File::options().write(true).open(src.join("size1023"));
    let then = UNIX_EPOCH + Duration::new(1_200_000_001, 0);
    file.unwrap().set_modified(then).unwrap();
}

/// Returns whether Linux can be asked: it has ext4, and we may mount.
pub(crate) fn can_mount() -> bool {
    let systems = fs::read_to_string("/proc/filesystems").unwrap_or_default();
    let able = rustix::process::geteuid().is_root()
        && systems.split_whitespace().any(|name| name == "ext4")
        && Path::new("/dev/loop-control").exists();
    if !able {
        println!("SKIPPED: no ext4 in this kernel, no loop devices, or no right to mount");
    }
    able
}

/// One mount at a time: there are few loop devices.
static MOUNTS: Mutex<()> = Mutex::new(());

/// A volume that Linux has mounted.
pub(crate) struct Mounted {
    dir: PathBuf,
    _turn: MutexGuard<'static, ()>,
}

impl Mounted {
    /// # Panics
    /// If Linux does not mount it.
    pub(crate) fn new(images: &Images, image: &Path, options: &str) -> Self {
        Self::try_new(images, image, options).expect("a mount")
    }

    pub(crate) fn try_new(images: &Images, image: &Path, options: &str) -> Option<Self> {
        let turn = MOUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        let dir = images.path("mnt");
        fs::create_dir_all(&dir).expect("a directory");
        let options = format!("loop,{options}");
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "ext4", "-o", &options])
            .arg(image)
            .arg(&dir);
        let output = mount.output().expect("a run");
        let is_mounted = output.status.success();
        is_mounted.then(|| Self { dir, _turn: turn })
    }

    pub(crate) fn dir(&self) -> &Path {
        &self.dir
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let done = Command::new("umount").arg(&self.dir).status();
        if !done.is_ok_and(|status| status.success()) {
            let _ = Command::new("umount").arg("-l").arg(&self.dir).status();
        }
    }
}
