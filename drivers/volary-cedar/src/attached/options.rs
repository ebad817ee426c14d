//! Options of attaching.

use crate::commit::core::COMMIT_TIME;
use std::time::Duration;
use volary_core::{Attach, Error, Kind, OptionSpec, Result};

/// What attaching knows.
pub(crate) const MOUNT_OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "commit",
        value: "SECONDS",
        help: "Longest time from a change to its commit (0.5); 0 commits with each change",
    },
    OptionSpec {
        name: "data",
        value: "gather|through",
        help: "Gather data until the commit, or write it as it comes, as in the paper (gather)",
    },
    OptionSpec {
        name: "checksums",
        value: "verify|ignore",
        help: "Refuse data that its checksum says is wrong, or give it as it is (verify)",
    },
    OptionSpec {
        name: "remote",
        value: "VOLUME",
        help: "Connection, for reading, the volume that this one keeps files of (only what is here)",
    },
    OptionSpec {
        name: "iosize",
        value: "SIZE",
        help: "Longest request to the device (256k)",
    },
];

/// Options of attaching, checked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MountOptions {
    pub(crate) commit: Duration,
    pub(crate) through: bool,
    pub(crate) looks_at_sums: bool,
    pub(crate) io_size: u32,
}

/// Least and greatest request, in bytes.
const IO_SIZES: std::ops::RangeInclusive<u64> = 4096..=16 << 20;

impl MountOptions {
    /// # Errors
    /// `Invalid`.
    pub(crate) fn new(how: &Attach) -> Result<Self> {
        let options = &how.options;
        options.check_known(MOUNT_OPTIONS)?;
        if options.get("remote").is_some() {
            let words = "option 'remote': nobody here knows how to open it";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let io_size = options.number("iosize")?.unwrap_or(256 << 10);
        if !IO_SIZES.contains(&io_size) || !io_size.is_power_of_two() {
            let words =
                format!("option 'iosize' is {io_size}, expected a power of two from 4k to 16M");
            return Err(Error::note(Kind::Invalid, words));
        }
        Ok(Self {
            commit: options.seconds("commit")?.unwrap_or(COMMIT_TIME),
            through: options
                .choice("data", &[("gather", false), ("through", true)])?
                .unwrap_or(false),
            looks_at_sums: options
                .choice("checksums", &[("verify", true), ("ignore", false)])?
                .unwrap_or(true),
            io_size: io_size as u32,
        })
    }
}
