//! A plug-in of a Rust driver: a volume in memory. Its configuration is its size.

use volary_core::{Caps, Error, Fs, Kind, Options, Result};
use volary_mem::{Mem, MemOptions};
use volary_plugin::{Driver, Opening};

fn open(with: &Opening<'_>) -> Result<Fs> {
    let size = match with.config {
        "" => Some(64 << 20),
        text => Options::parse_size(text),
    };
    let words = || format!("'{}' is no size", with.config);
    let size = size.ok_or_else(|| Error::note(Kind::Invalid, words()))?;
    let mut options = MemOptions {
        uid: with.attach.uid,
        gid: with.attach.gid,
        ..MemOptions::sized(size)
    };
    if with.attach.read_only {
        options.caps = options.caps.without(Caps::WRITE);
    }
    Mem::attach(options, with.now)
}

volary_plugin::export!(Driver {
    name: "memory",
    open
});
