//! Images made by xorriso and genisoimage, read by us and by others; images made
//! by hand; damaged ones.

mod claiming;
mod hand;
mod hostile;
mod images;
mod oracle;
mod volume;

use volary_core::{Fs, Result};
use volary_iso9660::ISO9660;
use volary_testkit::volumes;
pub(crate) use volary_testkit::volumes::device;

pub(crate) fn attach_as(bytes: &[u8], options: &str) -> Result<Fs> {
    volumes::attach(&ISO9660, device(bytes), options)
}

pub(crate) fn attach(bytes: &[u8]) -> Fs {
    attach_as(bytes, "").expect("attach")
}
