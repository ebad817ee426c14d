//! The traits and vocabulary of volary: what a driver, a layer, a device and
//! a format are. No I/O, no clock, no threads: time, credentials and
//! cancellation come in with each call ([`Ctx`]).
//!
//! | module | what |
//! |---|---|
//! | [`fs`](FileSystem) | the operations that a driver provides, and a session uses |
//! | [`layer`](Layer) | a file system over a file system |
//! | [`device`](BlockDevice) | bytes that can be read, written and flushed |
//! | [`format`](Format) | a kind of volume: probe, attach, make, check, dump, tune |
//! | [`acl`](Acl) | POSIX access lists, and the access that they grant |
//! | [`case`](fold) | case folding: names that are the same in upper and lower case |
//! | the rest | ids, names, attributes, extents, time, errors, findings, options |
#![forbid(unsafe_code)]

mod abilities;
mod acl;
mod attr;
mod caps;
mod case;
mod ctx;
mod device;
mod dirbuf;
mod error;
mod escape;
mod extent;
mod finding;
mod format;
mod fs;
mod id;
mod layer;
mod listing;
mod name;
mod options;
mod quota;
mod time;
mod unkept;
mod untold;

pub use abilities::{Abilities, Others};
pub use acl::{ACL_ACCESS, ACL_DEFAULT, Acl, AclEntry, acl_of, default_acl_of, permits};
pub use attr::{Access, Attr, FileKind, SetAttr, SetTime};
pub use caps::Caps;
pub use case::{fold, fold_char, fold_into, same_name};
pub use ctx::{Cancel, Cred, Ctx};
pub use device::{BlockDevice, Geometry, HostFile, Read, host_file, is_zero, zero_by_writing};
pub use dirbuf::{DirBuf, DirEntry};
pub use error::{Corrupt, Error, IoDetail, Kind, Result};
pub use escape::{Escaped, escape, escape_short};
pub use extent::{Extent, Place};
pub use finding::{Finding, Severity};
pub use format::{
    Answer, Attach, Check, CheckMode, CheckReport, Fact, Format, Make, MapCell, Probe, Progress,
    Quiet, Remote, Replica, Tune, VolumeMap, unknown_kind,
};
pub use fs::{
    COMMIT_TIME, Change, ChangeSink, Create, Entry, FileSystem, Fs, Lock, Mode, Prefetch,
    RenameFlags, StatFs, Watch, Whole,
};
pub use id::{Cookie, NodeId, OpenId};
pub use layer::{Call, Layer, NameUse, Op};
pub use listing::{Shown, map_listing};
pub use name::{BadName, Name};
pub use options::{OptionSpec, Options};
pub use quota::{Quota, QuotaGrace, QuotaLimits, QuotaOf, QuotaReport, QuotaShare, SetQuota};
pub use time::Time;
pub use unkept::unkept;
pub use untold::Untold;
