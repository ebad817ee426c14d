//! Fresh volumes for tests.

use std::sync::Arc;
use volary_cedar::CEDAR;
use volary_core::{BlockDevice, CheckMode, CheckReport, Fs, Result};
use volary_testkit::volumes::{self, Shape};

/// Returns a volume of this many bytes.
pub(crate) const fn shape(len: u64) -> Shape {
    Shape::new(&CEDAR, "cedar", len)
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    volumes::attach(&CEDAR, dev, options).expect("attach")
}

pub(crate) fn attach_read_only(dev: Arc<dyn BlockDevice>, options: &str) -> Result<Fs> {
    volumes::attach_read_only(&CEDAR, dev, options)
}

/// Checks a volume; the report, and all findings as lines.
pub(crate) fn check(dev: Arc<dyn BlockDevice>, mode: CheckMode) -> (CheckReport, Vec<String>) {
    volumes::check(&CEDAR, dev, mode, "").expect("check")
}

/// Holds if our check finds nothing.
pub(crate) fn clean(dev: Arc<dyn BlockDevice>) -> std::result::Result<(), String> {
    volumes::clean(&CEDAR, dev, "")
}
