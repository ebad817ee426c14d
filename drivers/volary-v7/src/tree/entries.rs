//! Entries of directories, to be changed. None moves, and no directory gets shorter: an entry's
//! place is a cookie that somebody may have.

use crate::change::edit::Step;
use crate::change::epoch::ADDITIONS;
use crate::change::file::File;
use crate::change::node::Node;
use crate::disk::blocks::Walker;
use crate::disk::dir;
use crate::disk::ondisk::ENTRY_LEN;
use crate::disk::volume::{DIR_MAX, Volume};
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

/// The entries of a directory.
pub(crate) struct Entries<'e, 'a> {
    pub(crate) file: File<'e, 'a>,
}

impl<'a> Entries<'_, 'a> {
    fn volume(&self) -> &'a Volume {
        self.file.map.volume()
    }

    /// Returns the directory's inode number.
    fn dir(&self) -> u32 {
        self.file.map.ino
    }

    /// Returns where an entry of a directory is on the device.
    ///
    /// # Errors
    /// `Corrupt` in a hole; `Io`.
    pub(crate) fn spot(&self, at: u64) -> Result<Spot> {
        let (inode, bsize) = (self.file.map.inode()?, self.volume().bsize);
        let (block, _) = Walker::new(self.file.map.reader(), &inode).next(at / bsize)?;
        if block == 0 || at >= inode.size {
            let found = format!("a hole (directory {})", self.dir());
            return Err(Error::corrupt("di_addr", inode.at, found, "a block"));
        }
        Ok(Spot {
            place: u64::from(block) * bsize + at % bsize,
            stage: self.stage(block),
        })
    }

    /// Returns the stage of an entry in a block: any if the disk does not lead there.
    fn stage(&self, block: u32) -> Stage {
        let map = &self.file.map;
        let is_new = map.edit.nodes().get(map.ino).is_some_and(Node::is_new);
        match is_new || map.room.is_fresh(block) {
            true => Stage::DATA,
            false => ADDITIONS,
        }
    }

    /// Writes bytes of an entry; later than usual with `stage`, if the disk leads there.
    fn put_entry(&mut self, spot: Spot, bytes: &[u8], stage: Option<Stage>) -> Result<()> {
        let stage = match spot.stage {
            Stage::DATA => Stage::DATA,
            usual => stage.unwrap_or(usual),
        };
        self.file.map.edit.write(spot.place, bytes, stage)
    }

    /// Adds an entry, in the first room there is. The directory grows if there is none.
    ///
    /// # Errors
    /// `NoSpace`; `TooBig` for a directory that cannot grow; `Corrupt`; `Io`.
    pub(crate) fn add(&mut self, name: &[u8], ino: u32) -> Step<Spot> {
        let inode = self.file.map.inode()?;
        let at = dir::room(&self.file.map.reader(), &inode)?;
        let end = at + ENTRY_LEN as u64;
        if end > DIR_MAX.min(self.volume().size_max()) {
            return Err(Kind::TooBig.into());
        }
        let (block, is_new) = self.file.map.block_for(at / self.volume().bsize)?;
        if is_new {
            let zeros = vec![0; self.volume().block_len()];
            let place = u64::from(block) * self.volume().bsize;
            self.file
                .map
                .reader()
                .cache
                .write(place, &zeros, Stage::DATA)?;
        }
        let mem = self.file.map.mem()?;
        mem.size = mem.size.max(end);
        let spot = self.spot(at)?;
        self.put_entry(spot, &dir::bytes(self.volume(), ino, name), None)?;
        self.file.map.edit.touch_content(self.dir())?;
        Ok(spot)
    }

    /// Makes an entry lead to another inode.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn redirect(&mut self, at: u64, ino: u32, stage: Option<Stage>) -> Step<Spot> {
        let spot = self.spot(at)?;
        let mut bytes = [0; 2];
        let number = u16::try_from(ino).unwrap_or(0);
        self.volume().order.put16(&mut bytes, 0, number);
        self.put_entry(spot, &bytes, stage)?;
        Ok(spot)
    }

    /// Takes an entry out. Its name stays, as the Seventh Edition leaves it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn remove(&mut self, at: u64, stage: Option<Stage>) -> Step<()> {
        self.redirect(at, 0, stage)?;
        Ok(self.file.map.edit.touch_content(self.dir())?)
    }

    /// The content of a new directory.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn make_dots(&mut self, parent: u32) -> Step<()> {
        let mut all = dir::bytes(self.volume(), self.dir(), b".").to_vec();
        all.extend(dir::bytes(self.volume(), parent, b".."));
        self.file.write(0, &all)
    }
}
