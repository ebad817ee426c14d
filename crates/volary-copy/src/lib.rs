//! Copies of trees: from the host into volumes, out of them, and between volumes.
//!
//! [`Copies::copy`] takes what to copy ([`Origin`]), where to ([`Target`]) and how
//! ([`CopyOptions`]). It tells an [`Observer`] what could not be copied or kept, and goes on; its
//! result sums that up. It accesses files of the host by descriptors of directories and single
//! names. So nothing is written outside of the target, whatever names a volume has.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `told` | failures; what a target cannot keep; who is told of them |
//! | `nodes` | places in volumes, nodes with several names, extended attributes, stretches that the host copies |
//! | `stream` | the stream of nodes from a thread that reads to one that writes |
//! | `how` | options of a copy |
//! | `sources` | reading trees of the host and of volumes |
//! | `sinks` | writing to the host, into volumes and to an output |
//! | `copies` | a copy as a whole |
//!
//! Each room uses only those above it in this table. Its `mod.rs` says which, and what is in it.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod copies;
mod how;
mod nodes;
mod sinks;
mod sources;
mod stream;
mod told;

pub use copies::{Copies, Origin, Summary, Target};
pub use how::CopyOptions;
pub use nodes::ids::{HostId, host_id, image_id};
pub use nodes::place::VolumePlace;
pub use nodes::xattrs::is_virtual;
pub use told::failure::{And, Failure, Why, words};
pub use told::losses::{Loss, Lost, Told};
pub use told::observer::{Damage, Observer, Unobserved};
