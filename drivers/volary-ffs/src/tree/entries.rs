//! Changes entries of directories. No entry ever moves, because its place is a cookie that a reader
//! may hold. An entry is removed by extending the one before it, and a new one uses the slack
//! behind a name.

use crate::change::edit::{Step, Stop};
use crate::change::epoch::ADDITIONS;
use crate::change::file::File;
use crate::directory::dir::{self, needed, slack};
use crate::directory::lookup::Lookup;
use crate::disk::ondisk::{DIRBLKSIZ, DIRECT_HEAD, Stored};
use crate::disk::volume::Volume;
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Error, FileKind, Result};

/// A chunk of a directory, which is a sector, and is changed as a whole.
struct Chunk {
    bytes: [u8; DIRBLKSIZ],
    /// Its place in the directory, and on the device.
    start: u64,
    place: u64,
    stage: Stage,
}

impl Chunk {
    /// Returns the first room for an entry of `need` bytes in a chunk: the entry that has it, and
    /// where the room begins and ends.
    ///
    /// # Errors
    /// `Corrupt` if there is no such room, although the index or a search has just found it.
    fn room_in(&self, volume: &Volume, need: u64) -> Result<(usize, usize, usize)> {
        let within = |at: u64| usize::try_from(at).unwrap_or(0);
        let mut rooms = dir::entries(volume, &self.bytes)
            .filter_map(|entry| slack(&entry).map(|(start, end)| (entry.at, start, end)));
        let room = rooms.find(|(_, start, end)| end - start >= need);
        let (at, start, end) = room.ok_or_else(|| {
            let expected = format!("room for {need} bytes");
            Error::corrupt("d_reclen", self.place, "none", expected)
        })?;
        Ok((within(at), within(start), within(end)))
    }

    /// Returns the longest room of a chunk.
    fn longest(&self, volume: &Volume) -> usize {
        let rooms = dir::entries(volume, &self.bytes).filter_map(|entry| slack(&entry));
        let longest = rooms.map(|(start, end)| end - start).max();
        longest.map_or(0, |len| usize::try_from(len).unwrap_or(0))
    }

    /// Sets the stage in which the chunk reaches the disk, unless the disk does not point to it
    /// yet.
    fn come_in(&mut self, stage: Option<Stage>) {
        if self.stage != Stage::DATA {
            self.stage = stage.unwrap_or(self.stage);
        }
    }
}

/// What an entry leads to.
#[derive(Clone, Copy)]
pub(crate) struct Leads {
    pub(crate) ino: u32,
    pub(crate) kind: FileKind,
}

/// The entries of a directory.
pub(crate) struct Entries<'e, 'a> {
    pub(crate) file: File<'e, 'a>,
    pub(crate) lookup: Lookup<'a>,
}

impl<'a> Entries<'_, 'a> {
    fn volume(&self) -> &'a Volume {
        self.lookup.reader.volume
    }

    /// Returns the directory's inode number.
    fn dir(&self) -> u32 {
        self.file.map.ino
    }

    /// Adds an entry in the first room that is long enough. The directory grows if there is none.
    /// Returns the sector.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn add(&mut self, name: &[u8], leads: Leads) -> Step<u64> {
        let need = needed(name.len());
        let start = match self.lookup.room(&self.file.map.inode()?, need)? {
            Some(start) => start,
            None => self.grow_directory()?,
        };
        let mut chunk = self.chunk(start)?;
        let (at, start, end) = chunk.room_in(self.volume(), need)?;
        if start > at {
            set_length(self.volume(), &mut chunk.bytes, at, start - at);
        }
        set_length(self.volume(), &mut chunk.bytes, start, end - start);
        if let Some(bytes) = chunk.bytes.get_mut(start + DIRECT_HEAD..end) {
            bytes.fill(0);
            if let Some(bytes) = bytes.get_mut(..name.len()) {
                bytes.copy_from_slice(name);
            }
        }
        set_leads(self.volume(), &mut chunk.bytes, start, leads);
        set_name_length(self.volume(), &mut chunk.bytes, start, name.len());
        self.put_chunk(&chunk)?;
        let mut indexes = self.lookup.indexes.lock();
        indexes.add(self.dir(), name, chunk.start + start as u64);
        indexes.set_room(self.dir(), chunk.start, chunk.longest(self.volume()));
        drop(indexes);
        self.file.map.edit.touch_content(self.dir())?;
        Ok(chunk.place)
    }

    /// Makes an entry lead to another inode. Returns the sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn redirect(&mut self, at: u64, leads: Leads, stage: Option<Stage>) -> Step<u64> {
        let mut chunk = self.chunk(at)?;
        let within = usize::try_from(at - chunk.start).unwrap_or(0);
        set_leads(self.volume(), &mut chunk.bytes, within, leads);
        chunk.come_in(stage);
        self.put_chunk(&chunk)?;
        Ok(chunk.place)
    }

    /// Removes an entry. The entry before it in the chunk, if there is one, takes its room.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn remove(&mut self, at: u64, stage: Option<Stage>) -> Step<()> {
        let mut chunk = self.chunk(at)?;
        let place = at - chunk.start;
        let within = usize::try_from(place).unwrap_or(0);
        let (mut before, mut name, mut end) = (None, Vec::new(), within);
        for entry in dir::entries(self.volume(), &chunk.bytes).take_while(|e| e.at <= place) {
            let here = usize::try_from(entry.at).unwrap_or(0);
            match here == within {
                true => {
                    name = entry.name.to_vec();
                    end = usize::try_from(entry.end).unwrap_or(0);
                }
                false => before = Some(here),
            }
        }
        match before {
            Some(before) => set_length(self.volume(), &mut chunk.bytes, before, end - before),
            None => 0_u32.put(self.volume().order, &mut chunk.bytes, within),
        }
        chunk.come_in(stage);
        self.put_chunk(&chunk)?;
        let mut indexes = self.lookup.indexes.lock();
        indexes.remove(self.dir(), &name, at);
        indexes.set_room(self.dir(), chunk.start, chunk.longest(self.volume()));
        drop(indexes);
        self.file.map.edit.touch_content(self.dir())?;
        Ok(())
    }

    /// Returns the sector of an entry.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn sector(&mut self, at: u64) -> Step<u64> {
        Ok(self.chunk(at)?.place)
    }

    /// Returns the sector of an entry, if the disk points to it.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn shown_sector(&mut self, at: u64) -> Step<Option<u64>> {
        let chunk = self.chunk(at)?;
        Ok(Some(chunk.place).filter(|_| chunk.stage != Stage::DATA))
    }

    /// Returns the sector of an entry that a rename removes. If the disk still has the entry in
    /// another block, it would vanish with the directory's inode, before the new name is there.
    /// This needs a commit first.
    ///
    /// # Errors
    /// [`Stop::Commit`]; `Corrupt`; `Io`.
    pub(crate) fn source_sector(&mut self, at: u64) -> Step<Option<u64>> {
        let shown = self.shown_sector(at)?;
        let node = self.file.map.edit.node(self.dir())?;
        if shown.is_none() && !node.is_new() && at < node.disk.size {
            return Err(Stop::Commit);
        }
        Ok(shown)
    }

    /// Writes the content of a new directory.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn make_dots(&mut self, parent: u32) -> Step<()> {
        let bytes = dir::dots(self.volume(), self.dir(), parent);
        self.file.write(0, &bytes)
    }

    /// Fills a hole with free chunks.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn fill_hole(&mut self, hole: Range<u64>) -> Step<()> {
        let bytes = free_chunk(self.volume());
        for at in hole.step_by(DIRBLKSIZ) {
            self.file.write(at, &bytes)?;
        }
        Ok(())
    }

    /// Adds a free chunk at the end. Returns where it begins.
    fn grow_directory(&mut self) -> Step<u64> {
        let at = self.file.map.inode()?.size;
        if !at.is_multiple_of(DIRBLKSIZ as u64) {
            let found = format!("{at} (directory {})", self.dir());
            let expected = "a multiple of 512";
            return Err(
                Error::corrupt("di_size", self.file.map.inode()?.at, found, expected).into(),
            );
        }
        self.file.write(at, &free_chunk(self.volume()))?;
        Ok(at)
    }

    /// Returns the chunk that holds byte `at` of a directory.
    fn chunk(&mut self, at: u64) -> Step<Chunk> {
        let start = at - at % DIRBLKSIZ as u64;
        let inode = self.file.map.inode()?;
        let first = self.file.map.pointer(start / self.volume().bsize)?;
        if first == 0 || start >= inode.size {
            let found = format!("a hole (directory {})", self.dir());
            return Err(Error::corrupt("di_db", inode.at, found, "a block").into());
        }
        let block = self
            .lookup
            .reader
            .checked(&inode, "di_db", first, 1, true)?;
        let place = block.first * self.volume().fsize + start % self.volume().bsize;
        let mut bytes = [0; DIRBLKSIZ];
        self.lookup.reader.cache.read(place, &mut bytes)?;
        let stage = self.stage(start, first);
        Ok(Chunk {
            bytes,
            start,
            place,
            stage,
        })
    }

    /// Returns the stage of the sector at `at`, in the piece that begins at `first`. It can be any
    /// stage if the disk does not point to the sector.
    fn stage(&self, at: u64, first: u64) -> Stage {
        let map = &self.file.map;
        let Some(dir) = map.edit.nodes().get(map.ino) else {
            return ADDITIONS;
        };
        match dir.is_new() || at >= dir.disk.size || map.room.is_fresh(first) {
            true => Stage::DATA,
            false => ADDITIONS,
        }
    }

    fn put_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        self.file
            .map
            .edit
            .write(chunk.place, &chunk.bytes, chunk.stage)
    }
}

/// Returns a chunk with no entry.
fn free_chunk(volume: &Volume) -> [u8; DIRBLKSIZ] {
    let mut bytes = [0; DIRBLKSIZ];
    set_length(volume, &mut bytes, 0, DIRBLKSIZ);
    bytes
}

fn set_length(volume: &Volume, bytes: &mut [u8], at: usize, len: usize) {
    let len = u16::try_from(len).unwrap_or(0);
    len.put(volume.order, bytes, at + 4);
}

fn set_leads(volume: &Volume, bytes: &mut [u8], at: usize, leads: Leads) {
    leads.ino.put(volume.order, bytes, at);
    if volume.has_types {
        dir::d_type(leads.kind).put(volume.order, bytes, at + 6);
    }
}

fn set_name_length(volume: &Volume, bytes: &mut [u8], at: usize, len: usize) {
    let len = u8::try_from(len).unwrap_or(u8::MAX);
    match volume.has_types {
        true => len.put(volume.order, bytes, at + 7),
        false => u16::from(len).put(volume.order, bytes, at + 6),
    }
}
