//! Options, as users give them.

use crate::disk::ondisk::Order;
use volary_core::{OptionSpec, Options, Result};

const fn spec(name: &'static str, value: &'static str, help: &'static str) -> OptionSpec {
    OptionSpec { name, value, help }
}

const ORDER: OptionSpec = spec(
    "order",
    "pdp|little",
    "believes that the device holds a volume of the Seventh Edition with numbers in this order \
     (default: what the superblock and the root make plausible)",
);

/// Options of an attachment.
pub(crate) const ATTACH: &[OptionSpec] = &[
    ORDER,
    spec(
        "sync",
        "",
        "each change of names and attributes is on the disk when it is done (default: together \
         with others, in the same order)",
    ),
];

/// Options of a check.
pub(crate) const CHECK: &[OptionSpec] = &[ORDER];

/// Options of mkfs.
pub(crate) const MAKE: &[OptionSpec] = &[
    spec(
        "order",
        "pdp|little|big",
        "order of the bytes of numbers: pdp or little for v7 (default pdp), little or big for sysv \
         (default little)",
    ),
    spec(
        "block",
        "SIZE",
        "bytes of a block: 512 for v7; 512, 1024 or 2048 for sysv (default 1024)",
    ),
    spec(
        "inodes",
        "NUMBER",
        "how many inodes there are at least (default: one for each 2048 bytes of the volume)",
    ),
    spec(
        "interleave",
        "M/N",
        "blocks that are given in turn are M apart, in cylinders of N blocks (default 1/500)",
    ),
    spec(
        "pack",
        "NAME",
        "name of the pack, of six bytes at most (s_fpack)",
    ),
];

/// Returns the order that the volume is believed to have.
///
/// # Errors
/// `Invalid`.
pub(crate) fn order(options: &Options) -> Result<Option<Order>> {
    options.choice("order", &[("pdp", Order::Pdp), ("little", Order::Little)])
}
