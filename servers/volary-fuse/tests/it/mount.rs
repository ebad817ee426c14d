//! A volume in memory, mounted on a directory of its own.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use tempfile::TempDir;
use volary_block::MemDevice;
use volary_cedar::CEDAR;
use volary_core::{Attach, Cred, Format, Fs, Make, Options, Time};
use volary_fat::FAT;
use volary_ffs::FFS;
use volary_fuse::{MountOptions, Mounted, Stop, serve};
use volary_host::HostOptions;
use volary_mem::{Mem, MemOptions};
use volary_session::{Session, Volume, VolumeOptions};
use volary_testkit::volumes::clean;

/// A mount; unmounted when dropped.
pub(crate) struct Mount {
    pub(crate) volume: Arc<Volume>,
    pub(crate) mounted: Mounted,
    _dir: TempDir,
    /// The directory of the host that is mounted.
    _below: Option<TempDir>,
    /// What the volume was made by, and on.
    made: Option<(&'static dyn Format, Arc<MemDevice>)>,
}

impl Mount {
    /// Returns a volume with every ability; `None` where nothing can be mounted.
    pub(crate) fn new(options: &MountOptions) -> Option<Self> {
        Self::of(MemOptions::sized(256 << 20), options)
    }

    /// Returns a volume as `mem` says.
    pub(crate) fn of(mem: MemOptions, options: &MountOptions) -> Option<Self> {
        Self::of_volume(volume(mem), options)
    }

    /// Returns a FAT32 volume with the UNIX extension, in memory.
    pub(crate) fn of_fat(len: u64, options: &MountOptions) -> Option<Self> {
        Self::of_made(&FAT, "fat32", "unix", len, options)
    }

    /// Returns an FFS volume of this kind, in memory; `how` are options of its making.
    pub(crate) fn of_ffs(kind: &str, how: &str, len: u64, options: &MountOptions) -> Option<Self> {
        Self::of_made(&FFS, kind, how, len, options)
    }

    /// Returns a Cedar volume, in memory.
    pub(crate) fn of_cedar(len: u64, options: &MountOptions) -> Option<Self> {
        Self::of_made(&CEDAR, "cedar", "", len, options)
    }

    /// Returns a new volume in memory; `how` are options of its making.
    fn of_made(
        format: &'static dyn Format,
        kind: &str,
        how: &str,
        len: u64,
        options: &MountOptions,
    ) -> Option<Self> {
        let dev = Arc::new(MemDevice::new(len));
        let make = Make {
            now: clock(),
            options: Options::parse(how),
            ..Make::default()
        };
        format.make(dev.clone(), kind, &make).unwrap();
        let fs = format.attach(dev.clone(), &Attach::default()).unwrap();
        let mut mount = Self::of_volume(volume_of(fs), options)?;
        mount.made = Some((format, dev));
        Some(mount)
    }

    /// Unmounts; then the format's own check finds nothing.
    pub(crate) fn leave_clean(self) {
        let (format, dev) = self.made.expect("a volume that was made");
        drop(self.volume);
        self.mounted.unmount().unwrap();
        clean(format, dev, "").unwrap();
    }

    /// Returns a directory of the host: in memory, where syncing does not wait for what
    /// others write.
    pub(crate) fn of_host(by_handle: bool, options: &MountOptions) -> Option<Self> {
        let below = TempDir::new_in("/dev/shm").unwrap();
        let how = HostOptions {
            by_handle,
            ..HostOptions::default()
        };
        let fs = volary_host::attach(below.path(), &how).unwrap();
        let mut mount = Self::of_volume(volume_of(fs), options)?;
        mount._below = Some(below);
        Some(mount)
    }

    pub(crate) fn of_volume(volume: Arc<Volume>, options: &MountOptions) -> Option<Self> {
        if !can_mount() {
            return None;
        }
        let dir = TempDir::new().unwrap();
        let mounted = serve(Arc::clone(&volume), dir.path(), options, Stop::Call).unwrap();
        Some(Self {
            volume,
            mounted,
            _dir: dir,
            _below: None,
            made: None,
        })
    }

    /// Returns a place in the volume.
    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.mounted.path().join(path)
    }

    /// Another client of the same volume: root, past the mount.
    pub(crate) fn other(&self) -> Session {
        self.volume.session(Cred::root())
    }
}

pub(crate) fn volume(mem: MemOptions) -> Arc<Volume> {
    volume_of(Mem::attach(mem, clock()).unwrap())
}

/// Returns a file system in memory with every ability.
pub(crate) fn memory() -> Fs {
    Mem::attach(MemOptions::sized(256 << 20), clock()).unwrap()
}

pub(crate) fn volume_of(fs: Fs) -> Arc<Volume> {
    let how = VolumeOptions {
        trust: true,
        ..VolumeOptions::new("test", clock)
    };
    Volume::new(fs, how)
}

/// Returns whether this host can mount; says so if not.
pub(crate) fn can_mount() -> bool {
    let able = Path::new("/dev/fuse").exists()
        && (rustix::process::geteuid().is_root() || runs("fusermount3", "-V"));
    if !able {
        assert!(
            std::env::var_os("CI").is_none(),
            "no /dev/fuse, or no right to mount"
        );
        eprintln!("SKIPPED: no /dev/fuse, or no right to mount");
    }
    able
}

fn runs(program: &str, flag: &str) -> bool {
    let mut command = Command::new(program);
    command
        .arg(flag)
        .stdout(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

#[expect(clippy::disallowed_methods, reason = "tests run by the host's clock")]
pub(crate) fn clock() -> Time {
    SystemTime::now().into()
}

/// Looks again and again until `holds`, at most two minutes.
#[expect(clippy::disallowed_methods, reason = "other processes give no sign")]
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..12_000 {
        if holds() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("not within two minutes: {what}");
}

/// Where the process is to mount that [`start_server`] starts.
const TO_MOUNT: &str = "VOLARY_TEST_MOUNT";

/// Another process, serving a volume of its own on `place` until a signal.
pub(crate) fn start_server(place: &Path) -> Child {
    let mut test = Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "mount::what_the_server_does"]);
    let server = test
        .env(TO_MOUNT, place)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the server mounts", || is_mounted(place));
    server
}

#[test]
fn what_the_server_does() {
    if let Some(place) = std::env::var_os(TO_MOUNT) {
        let volume = volume(MemOptions::sized(16 << 20));
        let options = MountOptions::default();
        serve(volume, place.as_ref(), &options, Stop::Signals)
            .unwrap()
            .wait()
            .unwrap();
    }
}

pub(crate) fn is_mounted(place: &Path) -> bool {
    let all = fs::read_to_string("/proc/self/mounts").unwrap();
    all.lines()
        .any(|line| line.split(' ').nth(1) == place.to_str())
}
