//! The functions of an exported driver.
//!
//! | module | what |
//! |---|---|
//! | `volume` | the volume as a whole: attaching, abilities, detaching |
//! | `names` | names: finding, making, moving and removing nodes by them |
//! | `nodes` | nodes: attributes, symlinks, extended attributes |
//! | `opens` | opens: listing, reading, writing, locks |
//! | `pointers` | reading arguments and writing results by pointers |

#![expect(unsafe_code, reason = "each is called by a host of C, with pointers")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: the host gives each function what the table says"
)]

mod names;
mod nodes;
mod opens;
mod pointers;
mod volume;

use crate::abi::{VOLARY_PLUGIN_VERSION, VolaryTable};

pub(super) const TABLE: VolaryTable = VolaryTable {
    version: VOLARY_PLUGIN_VERSION,
    size: size_of::<VolaryTable>() as u32,
    fs: std::ptr::null_mut(),
    lookup: Some(names::lookup),
    getattr: Some(nodes::getattr),
    readdir: Some(opens::readdir),
    read: Some(opens::read),
    attach: Some(volume::attach),
    release: Some(volume::release),
    caps: Some(volume::caps),
    connect: None,
    disconnect: None,
    statfs: Some(volume::statfs),
    sync: Some(volume::sync),
    detach: Some(volume::detach),
    parent: Some(names::parent),
    create: Some(names::create),
    mkdir: Some(names::mkdir),
    mknod: Some(names::mknod),
    symlink: Some(names::symlink),
    link: Some(names::link),
    unlink: Some(names::unlink),
    rmdir: Some(names::rmdir),
    rename: Some(names::rename),
    setattr: Some(nodes::setattr),
    access: Some(nodes::access),
    readlink: Some(nodes::readlink),
    getxattr: Some(nodes::getxattr),
    setxattr: Some(nodes::setxattr),
    listxattr: Some(nodes::listxattr),
    removexattr: Some(nodes::removexattr),
    forget: Some(nodes::forget),
    open: Some(opens::open),
    write: Some(opens::write),
    fsync: Some(opens::fsync),
    allocate: Some(opens::allocate),
    lock: Some(opens::lock),
    ioctl: Some(opens::ioctl),
    close: Some(opens::close),
};

/// A table without functions.
#[cfg(feature = "fuzzing")]
pub(crate) const EMPTY: VolaryTable = VolaryTable {
    version: VOLARY_PLUGIN_VERSION,
    size: size_of::<VolaryTable>() as u32,
    fs: std::ptr::null_mut(),
    lookup: None,
    getattr: None,
    readdir: None,
    read: None,
    attach: None,
    release: None,
    caps: None,
    connect: None,
    disconnect: None,
    statfs: None,
    sync: None,
    detach: None,
    parent: None,
    create: None,
    mkdir: None,
    mknod: None,
    symlink: None,
    link: None,
    unlink: None,
    rmdir: None,
    rename: None,
    setattr: None,
    access: None,
    readlink: None,
    getxattr: None,
    setxattr: None,
    listxattr: None,
    removexattr: None,
    forget: None,
    open: None,
    write: None,
    fsync: None,
    allocate: None,
    lock: None,
    ioctl: None,
    close: None,
};
