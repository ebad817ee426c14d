//! Images made by xorriso and genisoimage, read by us and by others; images made
//! by hand; damaged ones.

mod hand;
mod hostile;
mod images;
mod oracle;
mod volume;

use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{Attach, BlockDevice, Cancel, Cred, Ctx, Format, Fs, Options, Result, Time};
use volary_iso9660::ISO9660;

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
    ISO9660.attach(device(bytes), &how)
}

pub(crate) fn attach(bytes: &[u8]) -> Fs {
    attach_as(bytes, "").expect("attach")
}
