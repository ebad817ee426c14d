//! Fresh volumes for tests: in memory, and as files that other programs open.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;
use volary_block::MemDevice;
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, Cred, Ctx, Finding, Format, Fs, Make,
    Options, Quiet, Time,
};
use volary_fat::FAT;
use volary_testkit::Fresh;
use volary_testkit::oracle::dosfstools;

/// An even second in 2023: when volumes are made, and the time of calls.
pub(crate) const NOW: Time = Time::from_secs(1_700_000_000);

/// What volume to make.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// `fat12`, `fat16` or `fat32`.
    pub(crate) kind: &'static str,
    /// Bytes.
    pub(crate) len: u64,
    /// Options of mkfs.
    pub(crate) make: &'static str,
    /// Options of the mount.
    pub(crate) attach: &'static str,
}

impl Shape {
    pub(crate) const fn new(kind: &'static str, len: u64) -> Self {
        Self {
            kind,
            len,
            make: "",
            attach: "",
        }
    }

    pub(crate) const fn made(self, make: &'static str) -> Self {
        Self { make, ..self }
    }

    pub(crate) const fn attached(self, attach: &'static str) -> Self {
        Self { attach, ..self }
    }

    pub(crate) fn name(&self) -> String {
        let parts = [self.kind, self.make, self.attach];
        let parts: Vec<_> = parts.into_iter().filter(|p| !p.is_empty()).collect();
        parts.join(" ")
    }

    /// Makes an empty one in memory.
    pub(crate) fn device(&self) -> Arc<MemDevice> {
        let dev = Arc::new(MemDevice::new(self.len));
        let make = Make {
            now: NOW,
            options: Options::parse(self.make),
            ..Make::default()
        };
        FAT.make(dev.clone(), self.kind, &make)
            .unwrap_or_else(|e| panic!("{}: {e}", self.name()));
        dev
    }

    /// A fresh volume that fsck.fat looks at when all is done.
    pub(crate) fn fresh(&self) -> Fresh {
        let dev = self.device();
        let image = dev.clone();
        self.fresh_on(dev).checked_by(move || fsck_fat(&*image))
    }

    /// A fresh volume in the paper's layout, that our own check looks at when
    /// all is done.
    pub(crate) fn fresh_paper(&self) -> Fresh {
        let dev = self.device();
        let image = dev.clone();
        self.fresh_on(dev).checked_by(move || own_check(&image))
    }

    fn fresh_on(&self, dev: Arc<MemDevice>) -> Fresh {
        let (again, read_only) = (dev.clone(), dev.clone());
        let options = self.attach;
        Fresh::new(attach(dev, options))
            .reattach(move || attach(again.clone(), options))
            .read_only(move || attach_read_only(read_only.clone(), options))
    }
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    let how = Attach {
        options: Options::parse(options),
        ..Attach::default()
    };
    FAT.attach(dev, &how).expect("attach")
}

fn attach_read_only(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    let how = Attach {
        read_only: true,
        options: Options::parse(options),
        ..Attach::default()
    };
    FAT.attach(dev, &how).expect("attach for reading")
}

/// Does something as root at [`NOW`].
pub(crate) fn as_root<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    act(&Ctx {
        cred: &cred,
        now: NOW,
        cancel: &cancel,
    })
}

/// An image file in memory that goes with its directory.
pub(crate) struct Image {
    dir: TempDir,
}

impl Image {
    /// An empty file of this size.
    pub(crate) fn new(len: u64) -> Self {
        let shm = Path::new("/dev/shm");
        let dir = if shm.is_dir() {
            tempfile::tempdir_in(shm)
        } else {
            tempfile::tempdir()
        };
        let image = Self {
            dir: dir.expect("a temporary directory"),
        };
        let file = std::fs::File::create(image.path()).expect("an image");
        file.set_len(len).expect("its length");
        image
    }

    /// A copy of a device; what is zero takes no room.
    pub(crate) fn of(dev: &dyn BlockDevice) -> Self {
        static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
        let len = dev.geometry().size;
        let image = Self::new(len);
        let file = std::fs::OpenOptions::new()
            .write(true)
            .open(image.path())
            .expect("the image");
        let mut buf = vec![0; ZEROS.len()];
        for at in (0..len).step_by(ZEROS.len()) {
            let part = &mut buf[..ZEROS.len().min((len - at) as usize)];
            dev.read_at(at, part).expect("read");
            if *part != ZEROS[..part.len()] {
                file.write_all_at(part, at).expect("write");
            }
        }
        image
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.dir.path().join("fat.img")
    }

    /// A directory beside the image, for what is copied in or out.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The image as it now is, as a device.
    pub(crate) fn device(&self) -> Arc<MemDevice> {
        let bytes = std::fs::read(self.path()).expect("the image");
        Arc::new(MemDevice::from_vec(bytes))
    }
}

/// Holds if our check of a volume in the paper's layout finds nothing.
fn own_check(dev: &Arc<MemDevice>) -> Result<(), String> {
    let how = Check {
        mode: CheckMode::Look,
        now: NOW,
        options: Options::parse("unix=dosfs"),
    };
    let mut found = Vec::new();
    let mut tell = |f: &Finding| {
        found.push(format!("{}: {}", f.code, f.message));
        Answer::No
    };
    let report = FAT.check(dev.clone(), &how, &mut tell, &Quiet);
    match report {
        Ok(report) if report.found == 0 => Ok(()),
        Ok(_) => Err(found.join("\n")),
        Err(e) => Err(e.to_string()),
    }
}

/// Holds if fsck.fat has nothing to say, or is not there.
pub(crate) fn fsck_fat(dev: &dyn BlockDevice) -> Result<(), String> {
    if dosfstools::FSCK.find().is_none() {
        return Ok(());
    }
    dosfstools::check(&Image::of(dev).path())
}
