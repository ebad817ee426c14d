//! Layers: file systems over a file system, each a few lines on
//! [`volary_core::Layer`].
//!
//! | layer | what |
//! |---|---|
//! | [`ReadOnly`] | refuses changes |
//! | [`Count`] | counts calls, failures and bytes |
//! | [`Trace`] | tells of each call in a line |
//! | [`Fault`] | makes chosen calls fail |
//! | [`Subtree`] | shows a directory as if it were the whole volume |
//! | [`IdMap`] | shows users and groups as others |
//! | [`Squash`] | makes callers one user |
//! | [`Audit`] | writes a line for each change, or read |
//! | [`Throttle`] | holds calls back to a rate |
//! | [`Quota`] | limits what the volume or each owner may take |
//! | [`CaseFold`] | finds names in any case |
//! | [`Munge`] | shows names in a form that clients can hold |
//! | [`Symlinks`] | follows symlinks for clients that cannot |
//! | [`Crypt`] | keeps names, symlinks and content encrypted |
//! | [`DirCache`] | caches entries and attributes |
//! | [`Alarm`] | reports that a volume fails; has no name for users |
//!
//! [`layer_by_name`] makes a layer from a text such as `subtree=/home`.
#![forbid(unsafe_code)]

mod alarm;
mod audit;
mod bounded;
mod by_name;
mod casefold;
mod count;
mod crypt;
mod dircache;
mod fault;
mod idmap;
mod munge;
mod outside;
mod quota;
mod readonly;
mod squash;
mod subtree;
mod symlinks;
mod throttle;
mod trace;

pub use alarm::{Alarm, Alert, AlertSink};
pub use audit::{Audit, AuditReads, AuditSink};
pub use by_name::{LAYERS, Stacked, argument_of, layer_by_name};
pub use casefold::{CaseFold, NAMES_MAX};
pub use count::{Count, CountRow};
pub use crypt::{Crypt, CryptCost};
pub use dircache::{CACHE_MEMORY, DirCache};
pub use fault::{Fault, FaultRule, When};
pub use idmap::{IdMap, IdRule, IdRules};
pub use munge::{Munge, Side, munge, unmunge};
pub use outside::{Nothing, Outside};
pub use quota::{Quota, QuotaBounds};
pub use readonly::ReadOnly;
pub use squash::{Squash, Whom};
pub use subtree::Subtree;
pub use symlinks::{LINKS_MAX, Symlinks};
pub use throttle::{Pace, Throttle};
pub use trace::{Trace, TraceSink};
