//! The common interface of both kinds of tree.

use std::sync::Arc;
use volary_core::{Attr, Caps, Ctx, FileKind, Finding, Result, StatFs};

/// An entry of a directory. Entries are sorted by their cookies.
#[derive(Clone, Debug)]
pub(super) struct Listed<K> {
    pub(super) cookie: u64,
    pub(super) name: Box<[u8]>,
    pub(super) ino: u64,
    pub(super) kind: FileKind,
    pub(super) known: K,
}

/// A node that is being opened.
pub(super) struct Handle<O> {
    pub(super) kind: FileKind,
    pub(super) size: u64,
    /// The file's data; `None` for other kinds.
    pub(super) file: Option<O>,
}

/// The nodes of a volume, by number. An unknown number is `Stale`.
pub(super) trait Nodes: Send + Sync + 'static {
    /// The data kept for an open file.
    type Open: Send + Sync;

    /// What a listing knows of an entry besides its kind.
    type Known: Send + Sync;

    /// Returns the abilities of the volume.
    fn bits(&self) -> u32;

    /// Returns the abilities that the format has, out of `most`.
    fn caps(&self, most: Caps) -> Caps;

    /// Returns the root's number, which is not 0.
    fn root(&self) -> u64;

    /// Returns the generation of all node ids. Ids of another generation are `Stale`.
    fn generation(&self) -> u32;

    fn attr(&self, ino: u64) -> Result<Attr>;

    fn kind(&self, ino: u64) -> Result<FileKind>;

    /// Returns the parent of a directory.
    fn parent(&self, dir: u64) -> Result<u64>;

    /// Returns the attributes of an entry of a directory.
    fn child(&self, dir: u64, name: &[u8]) -> Result<Attr>;

    fn list(&self, cx: &Ctx<'_>, dir: u64) -> Result<Arc<[Listed<Self::Known>]>>;

    /// Returns the attributes of a listed entry, if that costs nothing.
    fn known(&self, entry: &Listed<Self::Known>) -> Option<Attr>;

    /// Returns whether a cookie can never have been given out, as it is past all those of a
    /// listing.
    fn is_odd(&self, cookie: u64, listed: &[Listed<Self::Known>]) -> bool;

    /// Opens a node. It is kept until [`close`](Self::close) was called as often as this.
    fn open(&self, ino: u64) -> Result<Handle<Self::Open>>;

    fn close(&self, ino: u64);

    /// Fills `buf`, whose range lies within the file.
    fn read(&self, open: &Self::Open, offset: u64, buf: &mut [u8]) -> Result<()>;

    /// Returns the offset on the device at which a file's bytes begin.
    fn place(&self, open: &Self::Open) -> Option<u64> {
        let _ = open;
        None
    }

    /// Returns the offset on the device at which a listed file's bytes begin.
    fn place_of(&self, entry: &Listed<Self::Known>) -> Option<u64> {
        let _ = entry;
        None
    }

    fn readlink(&self, ino: u64) -> Result<Vec<u8>>;

    /// Calls `each` with every extended attribute.
    fn xattrs(&self, ino: u64, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<()>;

    fn statfs(&self) -> StatFs;

    fn findings(&self) -> Vec<Finding> {
        Vec::new()
    }
}

/// Returns how full a volume of `size` bytes is: as it is only read, nothing is free.
pub(super) fn full(size: u64) -> StatFs {
    StatFs {
        block_size: BLOCK as u32,
        size: whole_blocks(size),
        ..StatFs::default()
    }
}

/// The unit in which space is counted, in bytes.
const BLOCK: u64 = 512;

/// Returns the next whole number of blocks, at most the greatest size of a volume.
pub(super) fn whole_blocks(size: u64) -> u64 {
    size.min(i64::MAX as u64 - BLOCK).next_multiple_of(BLOCK)
}
