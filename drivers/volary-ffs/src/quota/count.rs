//! Counts the usage of users and groups (`quotacheck`).

use super::{QuotaFile, owner, weight};
use crate::disk::volume::Volume;
use crate::groups::cg::Group;
use crate::groups::scan::{Visitor, scan};
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use std::collections::BTreeMap;
use volary_core::{QuotaOf, Result};

/// By owner: blocks and inodes as in the quota file, and as counted.
pub(crate) type Differing = BTreeMap<u32, ([u64; 2], [u64; 2])>;

/// Blocks and inodes that each owner uses.
pub(crate) struct Counts<'a> {
    volume: &'a Volume,
    of: QuotaOf,
    pub(crate) all: BTreeMap<u32, [u64; 2]>,
}

impl<'a> Counts<'a> {
    /// Counts all inodes.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn read(reader: &Reader<'a>, of: QuotaOf) -> Result<Self> {
        let mut counts = Self {
            volume: reader.volume,
            of,
            all: BTreeMap::new(),
        };
        scan(reader, &mut counts)?;
        Ok(counts)
    }

    /// Returns the owners whose usage in the quota file is wrong.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn differing(mut self, reader: &Reader<'_>, file: &QuotaFile) -> Result<Differing> {
        let [blocks, inodes] = file.form.most();
        // A record cannot hold more than this.
        let limited = |[b, i]: [u64; 2]| [b.min(blocks), i.min(inodes)];
        let mut found = Differing::new();
        let inode = reader.inode(file.ino.into())?;
        file.stored(reader, &inode, 0, &mut |id, record| {
            let said = record.map(|share| share.used);
            let counted = limited(self.all.remove(&id).unwrap_or_default());
            if said != counted {
                found.insert(id, (said, counted));
            }
            true
        })?;
        // The file has no records of the rest.
        let rest = self.all.into_iter();
        found.extend(rest.map(|(id, counted)| (id, ([0, 0], limited(counted)))));
        Ok(found)
    }
}

impl Visitor for Counts<'_> {
    fn group(&mut self, _: u64, _: &Result<Group>) -> Result<()> {
        Ok(())
    }

    fn inode(&mut self, inode: Inode, _: Option<bool>) -> Result<()> {
        if inode.kind().is_some() && !inode.is_snapshot(self.volume) {
            let all = self.all.entry(owner(&inode, self.of)).or_default();
            for (sum, n) in all.iter_mut().zip(weight(&inode)) {
                *sum = sum.saturating_add(n);
            }
        }
        Ok(())
    }
}
