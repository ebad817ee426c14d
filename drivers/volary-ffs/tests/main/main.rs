//! Images made by NetBSD, FreeBSD and makefs, read by us and by others; what we write;
//! damaged ones.

mod conformance;
mod damage;
mod differential;
mod freebsd;
mod hostile;
mod lists;
mod make;
mod makefs;
mod mend;
mod oracle;
mod shared;
mod volumes;

use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{
    Answer, Attach, Attr, BlockDevice, Cancel, Check, CheckMode, Cred, Ctx, Format, Fs, Mode,
    Options, Quiet, Result, Time,
};
use volary_ffs::FFS;

static NEVER: Cancel = Cancel::new();

pub(crate) fn with_cx<T>(act: impl FnOnce(&Ctx<'_>) -> T) -> T {
    act(&Ctx {
        cred: &Cred::root(),
        now: Time::from_secs(1_700_000_000),
        cancel: &NEVER,
    })
}

pub(crate) fn device(bytes: &[u8]) -> Arc<dyn BlockDevice> {
    let dev = MemDevice::new(bytes.len() as u64);
    dev.write_at(0, bytes).expect("an image in memory");
    Arc::new(dev)
}

pub(crate) fn attach_as(bytes: &[u8], options: &str) -> Result<Fs> {
    let how = Attach {
        options: Options::parse(options),
        ..Attach::default()
    };
    FFS.attach(device(bytes), &how)
}

pub(crate) fn attach(bytes: &[u8]) -> Fs {
    attach_as(bytes, "").expect("attach")
}

/// Codes of what the check finds.
pub(crate) fn check(bytes: &[u8]) -> Result<Vec<String>> {
    check_device(device(bytes))
}

pub(crate) fn check_device(dev: Arc<dyn BlockDevice>) -> Result<Vec<String>> {
    let how = Check {
        mode: CheckMode::Look,
        now: Time::EPOCH,
        options: Options::new(),
    };
    let mut found = Vec::new();
    let mut report = |finding: &volary_core::Finding| {
        found.push(format!("{}: {}", finding.code, finding.message));
        Answer::No
    };
    FFS.check(dev, &how, &mut report, &Quiet)?;
    Ok(found)
}

pub(crate) fn content(fs: &Fs, attr: &Attr) -> Vec<u8> {
    with_cx(|cx| {
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
