//! File systems in user space: any volume, any layer, any server.
//!
//! This crate is the front door: it opens what holds a volume, recognises the
//! format, attaches it, and gives sessions on it. The crates behind it are
//! re-exported, so that it is the only dependency that a program needs.
//!
//! A small volume in memory, and a file out of it:
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
//! | [`Place`], [`Source`] | how people name volumes and places in them |
//! | [`ExtentPlace`] | where bytes of a file are |
//! | [`open_volume`] | from a name to a file system |
//! | [`open_source`], [`attach`] | from a name to a device, from a device to a file system |
//! | [`identify()`] | what a device holds, foreign formats too |
//! | [`find`] | the volume on a device, by a replica of its superblock or boot sector if need be |
//! | [`demo`] | a small volume in memory |
//! | [`torture`] | what a power cut leaves of volumes, and whether that is what they promised |
//! | [`block`], [`layers`], [`fuse`], [`nfs`], [`smb`] | devices, layers, the FUSE, NFS and SMB servers |
//! | [`bulk`] | all files of a tree, in the order in which they lie |
//! | [`host`], [`mem`], [`nfs_client`] | the drivers without a format on disk |
//! | [`plugin`] | drivers that are loaded at run time |
//!
//! # Features
//!
//! All are on unless `default-features = false`; a program that reads FAT images asks for `fat` alone. Each format is one
//! (`cedar`, `ext4`, `fat`, `ffs`, `iso9660`, `ntfs`, `v7`), each driver without a format (`host`, `nfs-client`), drivers loaded at run time (`plugin`), each server
//! (`fuse`, `nfs`, `smb`), and `bulk`, `layers`, `qcow2` and `torture`. What was not built in is not found by [`find`], and opening it fails
//! with `Unsupported`, which names the feature.
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

#[cfg(feature = "fat")]
pub mod demo;
mod find;
mod identify;
mod kinds;
mod open;
mod opened;
mod place;
#[cfg(feature = "torture")]
pub mod torture;

pub use find::{Found, TYPE_OPTION, find};
pub use identify::{Identity, LOOK, identify};
pub use kinds::{default_kind, format_of, kind_of};
#[cfg(feature = "host")]
pub use open::{HOST_OPTIONS, Raw};
pub use open::{attach, open_on, open_source, open_volume};
pub use opened::Opened;
pub use place::{Place, Source};

pub use volary_block as block;
#[cfg(feature = "bulk")]
pub use volary_bulk as bulk;
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
#[cfg(feature = "plugin")]
pub use volary_plugin as plugin;
pub use volary_session::{
    ClientId, Commit, Event, EventQueue, EventSink, Follow, HeldLock, Lease, LeaseBits, LeaseBreak,
    LeaseKey, LeaseSink, Limits, LockKind, LockOwner, News, OpenHow, PATH_MAX, Range, Rights,
    SYMLINKS_MAX, Session, SetXattr, Share, Subscription, User, Users, Volume, VolumeOptions, Wait,
    network_of,
};
#[cfg(feature = "smb")]
pub use volary_smb as smb;

/// Returns the formats that volary has: those that were built in.
pub fn formats() -> &'static [&'static dyn Format] {
    static FORMATS: &[&dyn Format] = &[
        #[cfg(feature = "fat")]
        &volary_fat::FAT,
        #[cfg(feature = "iso9660")]
        &volary_iso9660::ISO9660,
        #[cfg(feature = "cedar")]
        &volary_cedar::CEDAR,
        #[cfg(feature = "ffs")]
        &volary_ffs::FFS,
        #[cfg(feature = "ext4")]
        &volary_ext4::EXT4,
        #[cfg(feature = "ntfs")]
        &volary_ntfs::NTFS,
        // Told by what is plausible: after those that have a sign.
        #[cfg(feature = "v7")]
        &volary_v7::V7,
    ];
    FORMATS
}

/// Returns the error for opening something that needs a feature which this library was built
/// without.
#[cfg(not(all(
    feature = "fat",
    feature = "host",
    feature = "nfs-client",
    feature = "plugin"
)))]
fn absent(what: &str, feature: &str) -> Error {
    Error::note(
        Kind::Unsupported,
        format!("{what} needs volary's feature {feature}, which this program was built without"),
    )
}
