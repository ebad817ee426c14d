//! A volume whose first superblock or boot sector cannot be read: it is found by its replica, all
//! its files are there, and a repair that writes the sector anew, as a disk wants it, mends it.

use crate::damage::{Made, shapes};

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use volary::block::MemDevice;
use volary::{BlockDevice, CheckMode, Kind, Options};
use volary_core::{Geometry, Result};
use volary_testkit::readable::Readable;
use volary_testkit::volumes::{as_root, attach, attach_read_only, check};

const SECTOR: u64 = 512;

/// A disk that has lost sectors, until they are written.
struct Worn {
    dev: MemDevice,
    lost: Mutex<BTreeSet<u64>>,
}

impl Worn {
    fn new(image: &[u8], lost: impl Iterator<Item = u64>) -> Arc<Self> {
        Arc::new(Self {
            dev: MemDevice::from_vec(image.to_vec()),
            lost: Mutex::new(lost.collect()),
        })
    }
}

impl BlockDevice for Worn {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let end = offset + buf.len() as u64;
        let lost = self.lost.lock().expect("no panic");
        match lost.range(offset / SECTOR..end.div_ceil(SECTOR)).next() {
            Some(_) => Err(Kind::Io.into()),
            None => self.dev.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        self.dev.write_at(offset, data)?;
        let end = offset + data.len() as u64;
        let mut lost = self.lost.lock().expect("no panic");
        lost.retain(|sector| !(offset..end).contains(&(sector * SECTOR)));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        self.dev.flush()
    }
}

/// Returns where a volume of this kind has its first superblock; `None` where it has no replica of it.
fn home(kind: &str) -> Option<u64> {
    match kind {
        "fat32" | "cedar" => Some(0),
        "ffs1" => Some(8192),
        "ffs2" => Some(65_536),
        _ => None,
    }
}

#[test]
fn a_first_superblock_that_cannot_be_read_is_found_elsewhere_and_written_anew() {
    for shape in shapes() {
        let made = Made::new(shape);
        let what = shape.name();
        let kind = what.split(' ').next().unwrap_or_default();
        let lost = home(kind).unwrap_or(0) / SECTOR;
        let worn = || Worn::new(&made.image, std::iter::once(lost));
        let found = volary::find(worn(), &Options::new());
        if home(kind).is_none() {
            assert_eq!(found.expect_err("no replica"), Kind::Io, "{what}");
            continue;
        }
        let found = found.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert!(found.replica.is_some(), "{what}");
        let fs = attach_read_only(found.format, found.device, "").expect("attach");
        let all = as_root(|cx| made.content.readable(&fs, cx));
        assert_eq!(all, whole(&made), "{what}");
        mends(&made, worn(), &what);
    }
}

/// Returns what is read of the volume as it was made.
fn whole(made: &Made) -> Readable {
    made.readable(&Arc::new(MemDevice::from_vec(made.image.clone())))
}

fn mends(made: &Made, dev: Arc<Worn>, what: &str) {
    let format = made.shape.format();
    let (looked, found) = check(format, dev.clone(), CheckMode::Look, "").expect("a look");
    assert!(looked.found > 0, "{what}");
    let (mended, _) =
        check(format, dev.clone(), CheckMode::Mend, "").unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_eq!(mended.left(), 0, "{what}: {found:#?}");
    assert!(dev.lost.lock().expect("no panic").is_empty(), "{what}");
    let (again, found) = check(format, dev.clone(), CheckMode::Look, "").expect("a look");
    assert_eq!(again.found, 0, "{what}: {found:#?}");
    let fs = attach(format, dev, "").expect("attach");
    let all = as_root(|cx| made.content.readable(&fs, cx));
    assert_eq!(all, whole(made), "{what}");
}

#[test]
fn a_device_that_reads_nothing_answers_so() {
    let worn = Worn::new(&[0; 1 << 20], 0..2048);
    let found = volary::find(worn.clone(), &Options::new());
    assert_eq!(found.expect_err("nothing is read"), Kind::Io);
    assert!(volary::identify(&*worn).is_err_and(|e| e == Kind::Io));
}
