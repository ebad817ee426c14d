//! An opened volume: its parts, each with what it holds.

use crate::content::file::Content;
use crate::content::map::BlockMap;
use crate::content::xattr::Xattrs;
use crate::directory::dir::Directory;
use crate::directory::listing::Listing;
use crate::disk::blocks::Blocks;
use crate::disk::volume::Volume;
use crate::fast::Fast;
use crate::inodes::groups::Groups;
use crate::inodes::inode::Inode;
use crate::inodes::tables::InodeTables;
use std::sync::Arc;
use volary_core::BlockDevice;

/// An opened volume.
pub(crate) struct Store {
    groups: Groups,
    /// What fast commits changed after what is on the blocks.
    fast: Fast,
}

impl Store {
    /// Returns a volume whose journal is not looked at.
    pub(crate) fn plain(dev: Arc<dyn BlockDevice>, volume: Volume, memory: u64) -> Self {
        let groups = Groups::new(Blocks::new(dev, volume, memory));
        Self::new(groups, Fast::default())
    }

    /// Returns the volume of these groups, with what fast commits changed.
    pub(crate) fn new(groups: Groups, fast: Fast) -> Self {
        Self { groups, fast }
    }

    /// Returns the checked superblock.
    pub(crate) fn volume(&self) -> &Volume {
        self.blocks().volume()
    }

    pub(crate) fn blocks(&self) -> &Blocks {
        self.groups.blocks()
    }

    pub(crate) fn groups(&self) -> &Groups {
        &self.groups
    }

    pub(crate) fn fast(&self) -> &Fast {
        &self.fast
    }

    pub(crate) fn inodes(&self) -> InodeTables<'_> {
        InodeTables::new(&self.groups, &self.fast)
    }

    /// Returns the map of an inode's blocks.
    pub(crate) fn map<'a>(&'a self, inode: &'a Inode) -> BlockMap<'a> {
        BlockMap::new(self.blocks(), &self.fast, inode)
    }

    /// Returns what an inode holds.
    pub(crate) fn content<'a>(&'a self, inode: &'a Inode) -> Content<'a> {
        Content::new(self.map(inode))
    }

    /// Returns an inode's extended attributes.
    pub(crate) fn xattrs<'a>(&'a self, inode: &'a Inode) -> Xattrs<'a> {
        Xattrs::new(self.inodes(), &self.fast, inode)
    }

    /// Returns a directory, as it is stored.
    pub(crate) fn directory<'a>(&'a self, inode: &'a Inode) -> Directory<'a> {
        Directory::new(self.content(inode), &self.fast)
    }

    /// Returns a directory, with what fast commits changed.
    pub(crate) fn listing<'a>(&'a self, inode: &'a Inode) -> Listing<'a> {
        Listing::new(self.directory(inode), &self.fast)
    }
}
