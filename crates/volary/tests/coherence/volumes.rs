//! The volumes that clients meet on.

use crate::servers::clock;
use std::sync::Arc;
use tempfile::TempDir;
use volary::block::{Faulty, MemDevice};
use volary::host::HostOptions;
use volary::mem::{Mem, MemOptions};
use volary::{Attach, BlockDevice, Caps, Cred, Fs, Make, Options, SetAttr, Volume};

/// A kind of volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Mem,
    Fat,
    Host,
}

/// A volume with a directory `d`, and what it stands on.
pub(crate) struct Ground {
    pub(crate) volume: Arc<Volume>,
    /// The device of a FAT volume.
    pub(crate) device: Option<Arc<Faulty>>,
    _dir: Option<TempDir>,
}

impl Ground {
    pub(crate) fn new(kind: Kind) -> Self {
        let (mut device, mut dir) = (None, None);
        let fs = match kind {
            Kind::Mem => Mem::attach(MemOptions::sized(256 << 20), clock()).unwrap(),
            Kind::Fat => {
                let faulty = Arc::new(Faulty::new(Arc::new(MemDevice::new(64 << 20))));
                device = Some(Arc::clone(&faulty));
                fat(faulty)
            }
            Kind::Host => {
                let below = TempDir::new_in("/dev/shm").unwrap();
                let fs = volary::host::attach(below.path(), &HostOptions::default()).unwrap();
                dir = Some(below);
                fs
            }
        };
        let volume = Volume::new(fs, volary::VolumeOptions::new("test", clock));
        let root = volume.session(Cred::root());
        root.mkdir(root.root(), b"d", &SetAttr::default()).unwrap();
        Self {
            volume,
            device,
            _dir: dir,
        }
    }

    /// Attaches the file system once more, to users who know nothing of those of the volume.
    pub(crate) fn another_volume(&self) -> Arc<Volume> {
        let options = volary::VolumeOptions::new("apart", clock);
        Volume::new(self.volume.fs().clone(), options)
    }

    /// Returns the most that a lease can be: where others change nodes, nothing, or what
    /// the driver tells of.
    pub(crate) fn lease_most(&self) -> u8 {
        let caps = self.volume.caps();
        let shared = caps.has(Caps::SHARED_LOCKS) || caps.has(Caps::CHECKS_ACCESS);
        match (caps.has(Caps::WATCH), shared) {
            (true, _) => 3,
            (false, true) => 0,
            (false, false) => 7,
        }
    }
}

fn fat(device: Arc<dyn BlockDevice>) -> Fs {
    let make = Make {
        now: clock(),
        options: Options::parse("unix"),
        ..Make::default()
    };
    let formats = volary::formats();
    let format = formats
        .iter()
        .find(|format| format.name() == "fat")
        .unwrap();
    format.make(Arc::clone(&device), "fat32", &make).unwrap();
    format.attach(device, &Attach::default()).unwrap()
}
