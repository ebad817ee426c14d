//! Volumes, served on a port of this host.

use crate::client::Client;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};
use volary_block::MemDevice;
use volary_core::{Attach, BlockDevice, Cred, Format, Make, Options, Time};
use volary_fat::FAT;
use volary_mem::{Mem, MemOptions};
use volary_nfs::{ExportOptions, ServeOptions, Server, Squash, serve};
use volary_session::{Session, Volume, VolumeOptions};

pub(crate) use volary_testkit::nfs::client::NAME;

/// A server with one volume; detached when dropped.
pub(crate) struct Served {
    pub(crate) volume: Arc<Volume>,
    pub(crate) server: Server,
}

impl Drop for Served {
    fn drop(&mut self) {
        assert_eq!(self.server.programs().defects(), 0, "calls that panicked");
    }
}

impl Served {
    /// Returns a volume with every ability.
    pub(crate) fn mem() -> Self {
        Self::of(mem(), &export(), &options(1))
    }

    pub(crate) fn of(volume: Arc<Volume>, export: &ExportOptions, options: &ServeOptions) -> Self {
        let exports = vec![(Arc::clone(&volume), export.clone())];
        let server = serve(exports, options).unwrap();
        Self { volume, server }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    /// Returns a client that calls as root.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address())
    }

    /// Another client of the same volume: root, past the server.
    pub(crate) fn other(&self) -> Session {
        self.volume.session(Cred::root())
    }
}

/// Root is root.
pub(crate) fn export() -> ExportOptions {
    ExportOptions {
        squash: Squash::None,
        ..ExportOptions::new(NAME)
    }
}

pub(crate) fn options(instance: u64) -> ServeOptions {
    // Runs begin at least some thousand calls apart.
    let instance = instance * 1_000_003;
    ServeOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), [7; 16], instance)
}

pub(crate) fn mem() -> Arc<Volume> {
    volume(Mem::attach(MemOptions::sized(1 << 30), clock()).unwrap())
}

/// Returns a FAT32 volume with the UNIX extension, in memory.
pub(crate) fn fat_device(len: u64) -> Arc<dyn BlockDevice> {
    let dev = Arc::new(MemDevice::new(len));
    let make = Make {
        now: clock(),
        options: Options::parse("unix"),
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat32", &make).unwrap();
    dev
}

pub(crate) fn fat(dev: Arc<dyn BlockDevice>) -> Arc<Volume> {
    volume(FAT.attach(dev, &Attach::default()).unwrap())
}

pub(crate) fn volume(fs: volary_core::Fs) -> Arc<Volume> {
    Volume::new(fs, VolumeOptions::new(NAME, clock))
}

#[expect(clippy::disallowed_methods, reason = "tests run by the host's clock")]
pub(crate) fn clock() -> Time {
    SystemTime::now().into()
}

#[expect(clippy::disallowed_methods, reason = "tests run by the host's clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::disallowed_methods, reason = "other processes give no sign")]
pub(crate) fn rest(millis: u64) {
    std::thread::sleep(Duration::from_millis(millis));
}

/// How long to wait for what comes at once where the host has nothing else to do.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// Waits until it is so; fails after two minutes.
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let since = now();
    while !is_so() {
        assert!(since.elapsed() < PATIENCE, "{what}");
        rest(5);
    }
}
