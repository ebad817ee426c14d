//! Images made by NetBSD, FreeBSD and makefs, read by us and by others; what we write;
//! damaged ones.

mod claiming;
mod clusters;
mod conformance;
mod damage;
mod differential;
mod freebsd;
mod hashes;
mod hostile;
mod indexed;
mod laid;
mod lists;
mod make;
mod makefs;
mod mend;
mod opens;
mod oracle;
mod policy;
mod quota;
mod quotas_of_4_3bsd;
mod readers;
mod rotation;
mod shared;
mod tune;
mod turns;
mod volumes;

use std::sync::Arc;
use volary_core::{Attr, BlockDevice, CheckMode, Format, Fs, Mode, Result};
use volary_ffs::FFS;
pub(crate) use volary_testkit::volumes::{as_root, device};

pub(crate) fn attach_as(bytes: &[u8], options: &str) -> Result<Fs> {
    volary_testkit::volumes::attach(&FFS, device(bytes), options)
}

pub(crate) fn attach(bytes: &[u8]) -> Fs {
    attach_as(bytes, "").expect("attach")
}

/// Returns what the check finds, as lines.
pub(crate) fn check(bytes: &[u8]) -> Result<Vec<String>> {
    check_device(device(bytes))
}

pub(crate) fn check_device(dev: Arc<dyn BlockDevice>) -> Result<Vec<String>> {
    volary_testkit::volumes::check(&FFS, dev, CheckMode::Look, "").map(|(_, found)| found)
}

pub(crate) fn content(fs: &Fs, attr: &Attr) -> Vec<u8> {
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).expect("open");
        let mut bytes = vec![0; attr.size as usize];
        assert_eq!(fs.read(cx, open, 0, &mut bytes).expect("read"), bytes.len());
        fs.close(cx, open).expect("close");
        bytes
    })
}

pub(crate) fn dump(bytes: &[u8], words: &str) -> Result<String> {
    let what: Vec<String> = words.split(' ').map(str::to_owned).collect();
    let mut out = String::new();
    FFS.dump(device(bytes), &what, &mut out)?;
    Ok(out)
}
