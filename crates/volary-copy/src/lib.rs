//! Copies of trees: from the host into volumes, out of them, and between volumes.
//!
//! [`Copies::copy`] takes what to copy ([`Origin`]), where to ([`Target`]) and how
//! ([`CopyOptions`]). It tells an [`Observer`] what could not be copied or kept, and goes on; its
//! result sums that up. It accesses files of the host by descriptors of directories and single
//! names. So nothing is written outside of the target, whatever names a volume has.
//!
//! | module | what |
//! |---|---|
//! | `failure`, `observer`, `losses` | failures; who is told of them; what a target cannot keep |
//! | `stream` | the stream of nodes from a thread that reads to one that writes |
//! | `from_host`, `from_volume` | sources |
//! | `to_host`, `to_volume`, `to_output` | sinks |
//! | `folder` | a directory of the host, and the nodes made in it |
//! | `helper` | a second thread that writes files of the host |
//! | `content` | a file's data, holes and unreadable stretches |
//! | `host_range` | stretches of a volume's file that the host copies from the image |
//! | `how` | options of a copy |
//! | `links` | nodes with several names |
//! | `place` | places in volumes |
//! | `xattrs` | extended attributes, and DOS attributes in one |
//! | `target`, `copies` | where the nodes go; a copy as a whole |
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

mod content;
mod copies;
mod failure;
mod folder;
mod from_host;
mod from_volume;
mod helper;
mod host_range;
mod how;
mod links;
mod losses;
mod observer;
mod place;
mod stream;
mod target;
mod to_host;
mod to_output;
mod to_volume;
mod xattrs;

pub use copies::{Copies, Origin, Summary, Target};
pub use failure::{And, Failure, Why, words};
pub use how::CopyOptions;
pub use losses::{Loss, Lost, Told};
pub use observer::{Damage, Observer, Unobserved};
pub use place::{VolumePlace, image_id};
pub use xattrs::is_virtual;
