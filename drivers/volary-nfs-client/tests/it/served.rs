//! Volumes served by volary's own server on a port of this host, and attached
//! again through it.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use volary_block::MemDevice;
use volary_core::{Attach, BlockDevice, Format, Fs, Make, Options, Result, Time};
use volary_fat::FAT;
use volary_host::HostOptions;
use volary_mem::{Mem, MemOptions};
use volary_nfs::{ExportOptions, LockState, ServeOptions, Server, Squash, serve};
use volary_nfs_client::{Location, NfsOptions};
use volary_session::{Volume, VolumeOptions};

pub(crate) const NAME: &str = "test";

/// A server of one volume. Dropped, it stops.
pub(crate) struct Served {
    server: Server,
    volume: Arc<Volume>,
}

impl Drop for Served {
    fn drop(&mut self) {
        assert_eq!(self.server.programs().defects(), 0, "calls that panicked");
    }
}

impl Served {
    pub(crate) fn of(fs: Fs) -> Self {
        Self::at(fs, SocketAddr::from(([127, 0, 0, 1], 0)), 1)
    }

    /// On an address, as the `instance`-th run of the server.
    pub(crate) fn at(fs: Fs, address: SocketAddr, instance: u64) -> Self {
        let volume = Volume::new(fs, VolumeOptions::new(NAME, clock));
        Self::of_volume(volume, address, instance)
    }

    pub(crate) fn of_volume(volume: Arc<Volume>, address: SocketAddr, instance: u64) -> Self {
        let options = ServeOptions::new(address, [7; 16], instance * 1_000_003);
        Self::with(volume, &options)
    }

    /// Serves a volume by a server that keeps in a file who has locks, with a time of grace.
    pub(crate) fn keeping_locks(
        volume: Arc<Volume>,
        address: SocketAddr,
        instance: u64,
        (state, grace): (&Path, Duration),
    ) -> Self {
        let mut options = ServeOptions::new(address, [7; 16], instance * 1_000_003);
        let state = LockState::open(state, grace).expect("the state");
        options.locks = Some(Arc::new(state));
        Self::with(volume, &options)
    }

    fn with(volume: Arc<Volume>, options: &ServeOptions) -> Self {
        let export = ExportOptions {
            squash: Squash::None,
            ..ExportOptions::new(NAME)
        };
        let server = serve(vec![(Arc::clone(&volume), export)], options).expect("a server");
        Self { server, volume }
    }

    pub(crate) fn mem() -> Self {
        let mem = Mem::attach(MemOptions::sized(1 << 30), clock());
        Self::of(mem.expect("memory"))
    }

    pub(crate) fn host(dir: &Path) -> Self {
        Self::of(volary_host::attach(dir, &HostOptions::default()).expect("the directory"))
    }

    /// Stops, with everything on the device.
    pub(crate) fn stop(self) {
        let volume = Arc::clone(&self.volume);
        drop(self);
        volume.detach().expect("detach");
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.server.addresses()[0]
    }

    pub(crate) fn location(&self) -> Location {
        let text = format!("{}/{NAME}", self.address());
        Location::parse(text.as_bytes()).expect("a location")
    }

    /// Returns the volume through the server.
    pub(crate) fn attach(&self, options: &NfsOptions) -> Result<Fs> {
        volary_nfs_client::attach(&self.location(), options)
    }
}

/// Returns an image whose volume keeps its handles.
pub(crate) fn fat() -> Arc<dyn BlockDevice> {
    let dev = Arc::new(MemDevice::new(64 << 20));
    let make = Make {
        now: clock(),
        options: Options::parse("unix"),
        ..Make::default()
    };
    FAT.make(dev.clone(), "fat32", &make).expect("a volume");
    dev
}

pub(crate) fn attach_fat(image: &Arc<dyn BlockDevice>) -> Fs {
    let attached = FAT.attach(Arc::clone(image), &Attach::default());
    attached.expect("the volume")
}

#[expect(clippy::disallowed_methods, reason = "tests run by the host's clock")]
pub(crate) fn clock() -> Time {
    SystemTime::now().into()
}
