//! Layers: file systems over a file system, each a few lines on
//! [`volary_core::Layer`].
//!
//! | layer | what |
//! |---|---|
//! | [`ReadOnly`] | refuses changes |
//! | [`Count`] | counts calls, failures and bytes |
//! | [`Trace`] | tells of each call in a line |
//! | [`Fault`] | makes chosen calls fail |
//! | [`Subtree`] | shows a directory as if it were the volume |
//! | [`IdMap`] | shows users and groups as others |
//!
//! [`layer_by_name`] makes one from a word such as `subtree=/home`.
#![forbid(unsafe_code)]

mod by_name;
mod count;
mod fault;
mod idmap;
mod readonly;
mod subtree;
mod trace;

pub use by_name::{LAYERS, Stacked, layer_by_name};
pub use count::{Count, CountRow};
pub use fault::{Fault, FaultRule, When};
pub use idmap::{IdMap, IdRule, IdRules};
pub use readonly::ReadOnly;
pub use subtree::Subtree;
pub use trace::{Trace, TraceSink};
