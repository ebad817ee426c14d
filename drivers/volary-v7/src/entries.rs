//! Entries of directories, to be changed. None moves, and no directory gets shorter: an entry's
//! place is a cookie that somebody may have.

use crate::dir;
use crate::edit::{Edit, Step};
use crate::inode::Inode;
use crate::ondisk::ENTRY_LEN;
use crate::volume::DIR_MAX;
use std::ops::ControlFlow;
use volary_block::{SECTOR, Stage};
use volary_core::{Error, Kind, Result};

/// Where an entry lies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spot {
    /// On the device, in bytes.
    place: u64,
    stage: Stage,
}

impl Spot {
    /// Returns the sector that it is in.
    pub(crate) fn sector(&self) -> u64 {
        self.place / SECTOR as u64
    }

    /// Returns the sector, if the disk leads there.
    pub(crate) fn shown(&self) -> Option<u64> {
        (self.stage != Stage::DATA).then(|| self.sector())
    }
}

impl Edit<'_> {
    /// Returns whether a directory holds nothing but itself and its parent.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn is_empty(&self, dir: &Inode) -> Result<bool> {
        let mut is_empty = true;
        dir::entries(&self.reader(), dir, 0, &mut |entry| {
            is_empty = entry.ino == 0 || entry.is_dots();
            Ok(match is_empty {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(is_empty)
    }

    /// Returns where the first free entry is, behind the end if there is none.
    fn room(&self, dir: &Inode) -> Result<u64> {
        let mut room = dir.size;
        dir::entries(&self.reader(), dir, 0, &mut |entry| {
            if entry.ino == 0 {
                room = entry.at;
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(room)
    }

    /// Returns where an entry of a directory is on the device.
    ///
    /// # Errors
    /// `Corrupt` in a hole; `Io`.
    pub(crate) fn spot(&self, dir: u32, at: u64) -> Result<Spot> {
        let (inode, bsize) = (self.inode(dir)?, self.volume.bsize);
        let (block, _) = crate::blocks::Walker::new(self.reader(), &inode).next(at / bsize)?;
        if block == 0 || at >= inode.size {
            let found = format!("a hole (directory {dir})");
            return Err(Error::corrupt("di_addr", inode.at, found, "a block"));
        }
        Ok(Spot {
            place: u64::from(block) * bsize + at % bsize,
            stage: self.entry_stage(dir, block),
        })
    }

    /// Writes bytes of an entry; later than usual with `stage`, if the disk leads there.
    fn put_entry(&mut self, spot: Spot, bytes: &[u8], stage: Option<Stage>) -> Result<()> {
        let stage = match spot.stage {
            Stage::DATA => Stage::DATA,
            usual => stage.unwrap_or(usual),
        };
        self.put(spot.place, bytes, stage)
    }

    /// Adds an entry, in the first room there is. The directory grows if there is none.
    ///
    /// # Errors
    /// `NoSpace`; `TooBig` for a directory that cannot grow; `Corrupt`; `Io`.
    pub(crate) fn add_entry(&mut self, dir: u32, name: &[u8], ino: u32) -> Step<Spot> {
        let inode = self.inode(dir)?;
        let at = self.room(&inode)?;
        let end = at + ENTRY_LEN as u64;
        if end > DIR_MAX.min(self.volume.size_max()) {
            return Err(Kind::TooBig.into());
        }
        let (block, is_new) = self.block_for(dir, at / self.volume.bsize)?;
        if is_new {
            let zeros = vec![0; self.volume.block_len()];
            let place = u64::from(block) * self.volume.bsize;
            self.cache.write(place, &zeros, Stage::DATA)?;
        }
        let mem = &mut self.node(dir)?.mem;
        mem.size = mem.size.max(end);
        let spot = self.spot(dir, at)?;
        self.put_entry(spot, &dir::bytes(self.volume, ino, name), None)?;
        self.touch_content(dir)?;
        Ok(spot)
    }

    /// Makes an entry lead to another inode.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn redirect(
        &mut self,
        dir: u32,
        at: u64,
        ino: u32,
        stage: Option<Stage>,
    ) -> Step<Spot> {
        let spot = self.spot(dir, at)?;
        let mut bytes = [0; 2];
        let number = u16::try_from(ino).unwrap_or(0);
        self.volume.order.put16(&mut bytes, 0, number);
        self.put_entry(spot, &bytes, stage)?;
        Ok(spot)
    }

    /// Takes an entry out. Its name stays, as the Seventh Edition leaves it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn remove_entry(&mut self, dir: u32, at: u64, stage: Option<Stage>) -> Step<()> {
        self.redirect(dir, at, 0, stage)?;
        Ok(self.touch_content(dir)?)
    }

    /// The content of a new directory.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn make_dots(&mut self, dir: u32, parent: u32) -> Step<()> {
        let mut all = dir::bytes(self.volume, dir, b".").to_vec();
        all.extend(dir::bytes(self.volume, parent, b".."));
        self.write(dir, 0, &all)
    }
}
