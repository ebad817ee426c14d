//! Fresh volumes for tests: in memory, and as files that other programs open.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use tempfile::TempDir;
use volary_block::MemDevice;
use volary_core::{BlockDevice, Fs};
use volary_fat::FAT;
use volary_testkit::Fresh;
use volary_testkit::oracle::dosfstools;
use volary_testkit::volumes::{self, Shape};

/// Returns a volume of this kind and many bytes.
pub(crate) const fn shape(kind: &'static str, len: u64) -> Shape {
    Shape::new(&FAT, kind, len)
}

/// Returns a fresh volume that fsck.fat looks at when all is done.
pub(crate) fn fresh(shape: &Shape) -> Fresh {
    let dev = shape.device();
    let image = dev.clone();
    shape.fresh_on(dev).checked_by(move || fsck_fat(&*image))
}

/// Returns a fresh volume in the paper's layout, that our own check looks at when
/// all is done.
pub(crate) fn fresh_paper(shape: &Shape) -> Fresh {
    let dev = shape.device();
    let image = dev.clone();
    let check = move || volumes::clean(&FAT, image.clone(), "unix=dosfs");
    shape.fresh_on(dev).checked_by(check)
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    volumes::attach(&FAT, dev, options).expect("attach")
}

/// An image file in memory that goes with its directory.
pub(crate) struct Image {
    dir: TempDir,
}

impl Image {
    /// Returns an empty file of this size.
    pub(crate) fn new(len: u64) -> Self {
        let image = Self {
            dir: volary_testkit::volumes::scratch(),
        };
        let file = std::fs::File::create(image.path()).expect("an image");
        file.set_len(len).expect("its length");
        image
    }

    /// Returns a copy of a device; what is zero takes no room.
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

    /// Returns a directory beside the image, for what is copied in or out.
    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns the image as it now is, as a device.
    pub(crate) fn device(&self) -> Arc<MemDevice> {
        let bytes = std::fs::read(self.path()).expect("the image");
        Arc::new(MemDevice::from_vec(bytes))
    }
}

/// Holds if fsck.fat has nothing to say, or is not there.
pub(crate) fn fsck_fat(dev: &dyn BlockDevice) -> Result<(), String> {
    if dosfstools::FSCK.find().is_none() {
        return Ok(());
    }
    dosfstools::check(&Image::of(dev).path())
}
