//! File systems in user space: any volume, any layer, any server.
//!
//! This crate is the front door: it opens a source, recognises the format, attaches the volume, and
//! returns sessions on it. It re-exports the crates behind it, so that a program needs no other
//! dependency.
//!
//! Most programs use [`Vol`], which accesses a volume by paths.
//!
//! ```
//! use volary::Vol;
//!
//! # fn main() -> volary::VolResult<()> {
//! let vol = Vol::open("mem:")?;
//! assert!(vol.read("/docs/words.txt")?.starts_with(b"node"));
//! # Ok(())
//! # }
//! ```
//!
//! Below it are devices, file systems and sessions, for programs that serve many users or work on
//! parts of a volume:
//!
//! ```
//! use volary::{Attach, Cred, Follow, Mode, Source, Time, Volume, VolumeOptions};
//!
//! # fn main() -> volary::Result<()> {
//! let source = Source::parse(b"mem:")?;
//! let device = volary::open_source(&source, false, Time::EPOCH)?;
//! let fs = volary::attach(device, &Attach::default())?.fs;
//! let options = VolumeOptions::new("demo", || Time::EPOCH);
//! let volume = Volume::new(fs, options);
//!
//! let session = volume.session(Cred::root());
//! let entry = session.walk(b"/docs/words.txt", Follow::Yes)?;
//! let open = session.open(entry.node, Mode::Read)?;
//! let mut text = vec![0; entry.attr.size as usize];
//! session.read(open, 0, &mut text)?;
//! session.close(open)?;
//! assert!(text.starts_with(b"node"));
//!
//! volume.detach()?;
//! # Ok(())
//! # }
//! ```
//!
//! | module | what |
//! |---|---|
//! | [`Vol`], [`VolFile`], [`VolOptions`] | a volume by paths |
//! | [`Place`], [`Source`] | how people name volumes and places in them |
//! | [`ExtentPlace`] | where the bytes of a file lie |
//! | [`Registry`] | the formats, schemes and layers of a program: built-in ones and its own |
//! | [`open_volume`] | from a name to a file system |
//! | [`open_source`], [`attach`] | from a name to a device, from a device to a file system |
//! | [`identify()`] | what a device holds; foreign formats too |
//! | [`find`] | finds the volume on a device, if need be by a replica of its superblock |
//! | [`demo`] | a small volume in memory |
//! | [`torture`] | tests that volumes keep their promises after a power cut |
//! | [`block`], [`layers`], [`fuse`], [`nfs`], [`smb`] | devices, layers, the FUSE, NFS and SMB servers |
//! | [`bulk`] | reads all files of a tree, in device order |
//! | [`copy`] | copies trees into volumes, out of them, and between them |
//! | [`host`], [`mem`], [`nfs_client`] | the drivers without a format on disk |
//! | [`plugin`] | drivers that are loaded at run time |
//!
//! # Features
//!
//! All are on by default. A program that reads only FAT images sets `default-features = false` and
//! enables `fat`. There is a feature for each format (`cedar`, `ext4`, `fat`, `ffs`, `iso9660`,
//! `ntfs`, `v7`) and for each driver without a format (`host`, `nfs-client`). The others are
//! `plugin` (drivers loaded at run time), the servers (`fuse`, `nfs`, `smb`), and `bulk`, `copy`,
//! `layers`, `qcow2` and `torture`. [`find`] does not find volumes of a format that was not built
//! in. Other missing features make opening fail with `Unsupported`, which names the feature.
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

mod built_in;
#[cfg(feature = "fat")]
pub mod demo;
mod find;
mod formats;
mod identify;
mod kinds;
#[cfg(feature = "layers")]
mod layer;
mod names;
mod open;
mod opened;
mod place;
#[cfg(feature = "plugin")]
pub mod plugin;
mod registry;
mod root_owner;
mod scheme;
#[cfg(feature = "torture")]
pub mod torture;
mod vol;

pub use built_in::{attach, find, format_of, formats, identify, kind_of, open_on, open_volume};
pub use find::{Found, TYPE_OPTION};
pub use identify::{Identity, LOOK};
pub use kinds::default_kind;
#[cfg(feature = "layers")]
pub use layer::LayerKind;
pub use open::open_source;
#[cfg(feature = "host")]
pub use open::{HOST_OPTIONS, Raw};
pub use opened::Opened;
pub use place::{Place, Source};
pub use registry::{Registered, Registry};
pub use root_owner::RootOwner;
pub use scheme::{Needs, Scheme};
#[cfg(feature = "layers")]
pub use vol::passphrase_in;
#[cfg(feature = "bulk")]
pub use vol::{BulkFiles, BulkRead};
pub use vol::{
    Checked, FileHow, ImageFormat, Vol, VolEntry, VolError, VolFile, VolOptions, VolResult, Walk,
    Walked, Xattrs,
};
#[cfg(any(feature = "fuse", feature = "nfs", feature = "smb"))]
pub use vol::{Serve, Served};

pub use volary_block as block;
#[cfg(feature = "bulk")]
pub use volary_bulk as bulk;
#[cfg(feature = "copy")]
pub use volary_copy as copy;
pub use volary_core::Place as ExtentPlace;
pub use volary_core::*;
#[cfg(feature = "fuse")]
pub use volary_fuse as fuse;
#[cfg(feature = "host")]
pub use volary_host as host;
#[cfg(feature = "layers")]
pub use volary_layers as layers;
pub use volary_mem as mem;
#[cfg(feature = "nfs")]
pub use volary_nfs as nfs;
#[cfg(feature = "nfs-client")]
pub use volary_nfs_client as nfs_client;
pub use volary_session::{
    Ahead, ClientId, Commit, Event, EventQueue, EventSink, Follow, HeldLock, Lease, LeaseBits,
    LeaseBreak, LeaseKey, LeaseSink, Limits, Listing, LockKind, LockOwner, News, OpenHow, PATH_MAX,
    Range, Rights, Row, SYMLINKS_MAX, Session, SetXattr, Share, Subscription, User, Users, Volume,
    VolumeOptions, Wait, network_of,
};
#[cfg(feature = "smb")]
pub use volary_smb as smb;

/// Returns the error for opening something whose feature was not built in.
#[cfg(not(all(
    feature = "fat",
    feature = "host",
    feature = "layers",
    feature = "nfs-client"
)))]
fn absent(what: &str, feature: &str) -> Error {
    Error::note(
        Kind::Unsupported,
        format!("{what} needs volary's feature {feature}, which this program was built without"),
    )
}
