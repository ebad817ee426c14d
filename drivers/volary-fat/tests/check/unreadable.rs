//! Sectors that cannot be read, on a device that takes another for them when
//! they are written.

use crate::check::base::{KINDS, base};
use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{assert_clean, assert_kept_in, show};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use volary_core::{
    Answer, BlockDevice, Check, CheckMode, CheckReport, Error, Finding, Format, Geometry, Kind,
    Options, Quiet, Result, Time,
};
use volary_fat::FAT;

pub(crate) struct Worn {
    bytes: Mutex<Vec<u8>>,
    /// Numbers of sectors that cannot be read.
    bad: Mutex<BTreeSet<usize>>,
}

impl Worn {
    pub(crate) fn new(bytes: &[u8], bad: &[usize]) -> Arc<Self> {
        Arc::new(Self {
            bytes: Mutex::new(bytes.to_vec()),
            bad: Mutex::new(bad.iter().map(|at| at / 512).collect()),
        })
    }

    fn left(&self) -> usize {
        self.bad.lock().unwrap().len()
    }
}

impl BlockDevice for Worn {
    fn geometry(&self) -> Geometry {
        Geometry {
            size: self.bytes.lock().unwrap().len() as u64,
            sector: 512,
            read_only: false,
        }
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let at = usize::try_from(offset).unwrap();
        let sectors = at / 512..(at + buf.len()).div_ceil(512);
        if let Some(bad) = self.bad.lock().unwrap().range(sectors).next() {
            return Err(Error::io("read", *bad as u64 * 512, 512, "worn out"));
        }
        buf.copy_from_slice(&self.bytes.lock().unwrap()[at..at + buf.len()]);
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let at = usize::try_from(offset).unwrap();
        self.bytes.lock().unwrap()[at..at + data.len()].copy_from_slice(data);
        let whole = at.div_ceil(512)..(at + data.len()) / 512;
        self.bad.lock().unwrap().retain(|s| !whole.contains(s));
        Ok(())
    }

    fn flush(&self) -> Result<()> {
        Ok(())
    }
}

fn check(dev: &Arc<Worn>, mode: CheckMode) -> (Result<CheckReport>, Vec<Finding>) {
    let how = Check {
        mode,
        now: Time::from_secs(1_700_000_000),
        options: Options::new(),
    };
    let mut findings = Vec::new();
    let mut tell = |f: &Finding| {
        findings.push(f.clone());
        Answer::Yes
    };
    let report = FAT.check(dev.clone(), &how, &mut tell, &Quiet);
    (report, findings)
}

/// Looks, preens and mends: what is found each time is `code`, once a sector.
pub(crate) fn mends(image: &Image, bad: &[usize], code: &str, preens: bool, about: &str) {
    let dev = Worn::new(&image.bytes, bad);
    let (report, found) = check(&dev, CheckMode::Look);
    let report = report.unwrap_or_else(|e| panic!("{about}: {e}"));
    let of = |found: &[Finding]| found.iter().filter(|f| f.code == code).count();
    assert!(of(&found) > 0, "{about}: {}", show(&found));
    assert!(report.left() > 0, "{about}");
    assert_eq!(dev.left(), bad.len(), "{about}: looking wrote");
    let (report, found) = check(&dev, CheckMode::Preen);
    assert_eq!(
        report.unwrap().left() == 0,
        preens,
        "{about}: {}",
        show(&found)
    );
    assert_eq!(dev.left() == 0, preens, "{about}");
    let dev = Worn::new(&image.bytes, bad);
    let (report, found) = check(&dev, CheckMode::Mend);
    let left = report.unwrap_or_else(|e| panic!("{about}: {e}")).left();
    assert_eq!((left, dev.left()), (0, 0), "{about}: {}", show(&found));
    let (report, again) = check(&dev, CheckMode::Look);
    assert_eq!(report.unwrap().found, 0, "{about}: {}", show(&again));
    let bytes = dev.bytes.lock().unwrap().clone();
    assert_clean(&bytes, about, &found);
    // Every content is there still, if under another name.
    let after = files(&Image::new(bytes).unwrap());
    let mut before = files(image);
    before.retain(|_, content| content.len() >= 512);
    let silent: Vec<Finding> = Vec::new();
    let same = |a: &[u8]| after.values().any(|b| b.starts_with(a));
    before.retain(|_, content| !same(content));
    assert_kept_in(&before, &after, &silent, about);
}

#[test]
fn another_fat_has_what_cannot_be_read_of_one() {
    for kind in KINDS {
        let image = base(kind);
        let (first, second) = (image.reserved, image.reserved + image.fat_len);
        mends(&image, &[first], "fat-unreadable", false, kind);
        mends(
            &image,
            &[first, first + 512, second + 1024],
            "fat-unreadable",
            false,
            kind,
        );
        mends(&image, &[second], "fats-differ", true, kind);
    }
}

#[test]
fn what_no_fat_has_ends_the_check() {
    for kind in KINDS {
        let image = base(kind);
        let dev = Worn::new(
            &image.bytes,
            &[image.reserved, image.reserved + image.fat_len],
        );
        for mode in [CheckMode::Look, CheckMode::Mend] {
            assert_eq!(check(&dev, mode).0.unwrap_err(), Kind::Io, "{kind}");
            assert!(
                *dev.bytes.lock().unwrap() == image.bytes,
                "{kind}: it wrote"
            );
        }
    }
}

#[test]
fn directories_that_cannot_be_read_are_told_of_and_mended() {
    for kind in KINDS {
        let image = base(kind);
        let slots = |path| image.slots(image.start(image.find(path).at));
        let (many, one, root) = (slots("MANY"), slots("DIR1/SUB"), image.slots(0));
        for (bad, about) in [
            (vec![many[0]], "the first sector"),
            (vec![many[40]], "a sector in the middle"),
            (vec![many[40], many[60], one[0]], "several"),
            (
                vec![*root.get(16).unwrap_or(&root[0])],
                "the root directory",
            ),
        ] {
            mends(
                &image,
                &bad,
                "dir-unreadable",
                false,
                &format!("{kind}: {about}"),
            );
        }
        let dev = Worn::new(&image.bytes, &[many[40]]);
        let (_, found) = check(&dev, CheckMode::Look);
        let told = found.iter().find(|f| f.code == "dir-unreadable").unwrap();
        let sector = many[40] as u64 / 512 * 512;
        assert_eq!(told.offset, Some(sector), "{kind}");
        assert_eq!(told.path.as_deref(), Some(&b"/MANY"[..]), "{kind}");
    }
}
