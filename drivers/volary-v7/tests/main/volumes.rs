//! Fresh volumes for tests.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode, CheckReport, Fs, Name};
use volary_testkit::volumes::{self, Shape};
use volary_v7::V7;

pub(crate) const MIB: u64 = 1 << 20;

/// One of each layout.
pub(crate) const SHAPES: &[Shape] = &[
    shape("v7", 8 * MIB),
    shape("v7", 8 * MIB).made("order=little,interleave=3/100"),
    shape("sysv", 8 * MIB),
    shape("sysv", 8 * MIB).made("order=big,block=512"),
    shape("sysv", 8 * MIB).made("block=2048"),
];

/// Returns a volume of this kind and many bytes.
pub(crate) const fn shape(kind: &'static str, len: u64) -> Shape {
    Shape::new(&V7, kind, len)
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    volumes::attach(&V7, dev, options).expect("attach")
}

/// Checks a volume; the report, and all findings as lines.
pub(crate) fn check(dev: Arc<dyn BlockDevice>, mode: CheckMode) -> (CheckReport, Vec<String>) {
    volumes::check(&V7, dev, mode, "").expect("check")
}

/// Holds if our check finds nothing.
pub(crate) fn clean(dev: Arc<dyn BlockDevice>) -> Result<(), String> {
    volumes::clean(&V7, dev, "")
}

pub(crate) fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}
