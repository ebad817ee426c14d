//! Fresh volumes for tests.

use std::sync::Arc;
use volary_core::{BlockDevice, CheckMode, CheckReport, Fs};
use volary_ffs::FFS;
use volary_testkit::volumes::{self, Shape};

/// Returns a volume of this kind and many bytes.
pub(crate) const fn shape(kind: &'static str, len: u64) -> Shape {
    Shape::new(&FFS, kind, len)
}

/// Returns whether blocks have more than one fragment.
pub(crate) fn has_fragments(shape: &Shape) -> bool {
    let whole = ["block=8192,fragment=8192", "block=65536,fragment=65536"];
    !whole.iter().any(|sizes| shape.make.contains(sizes))
}

pub(crate) fn attach(dev: Arc<dyn BlockDevice>, options: &str) -> Fs {
    volumes::attach(&FFS, dev, options).expect("attach")
}

/// Checks a volume; the report, and all findings as lines.
pub(crate) fn check(dev: Arc<dyn BlockDevice>, mode: CheckMode) -> (CheckReport, Vec<String>) {
    volumes::check(&FFS, dev, mode, "").expect("check")
}

/// Holds if our check finds nothing.
pub(crate) fn clean(dev: Arc<dyn BlockDevice>) -> Result<(), String> {
    volumes::clean(&FFS, dev, "")
}
