//! Entries of directories, to be changed. None moves: its place is a cookie that somebody may
//! have. Room is made by letting an entry take in the one behind it, and taken from the slack
//! behind a name.

use crate::dir::{self, Dir, needed, slack};
use crate::edit::{Edit, Step, Stop};
use crate::index;
use crate::inode::Inode;
use crate::ondisk::{DIRBLKSIZ, DIRECT_HEAD, Stored};
use std::ops::Range;
use volary_block::Stage;
use volary_core::{Error, FileKind, Kind, Result};

/// A chunk of a directory, to be changed as a whole: it is a sector.
struct Chunk {
    bytes: [u8; DIRBLKSIZ],
    /// Where it is in the directory, and on the device.
    start: u64,
    place: u64,
    stage: Stage,
}

impl Edit<'_> {
    /// Looks for a name: its inode, and where its entry is.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn search(&self, dir: &Inode, name: &[u8]) -> Result<Option<(u32, u64)>> {
        let mut entries = Dir::new(self.reader(), dir)?;
        match index::find(self.indexes, &mut entries, name, &|| Ok(())) {
            Err(e) if e == Kind::NotFound => Ok(None),
            found => found.map(Some),
        }
    }

    /// Returns the first chunk with room for an entry of `need` bytes.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    fn room(&self, dir: &Inode, need: u64) -> Result<Option<u64>> {
        let indexed = self.indexes.lock().room(dir.ino, dir.size, need);
        if let Some(room) = indexed {
            return Ok(room);
        }
        let mut entries = Dir::new(self.reader(), dir)?;
        let mut at = 0;
        while let Some(entry) = entries.entry(at)? {
            if slack(&entry).is_some_and(|(start, end)| end - start >= need) {
                return Ok(Some(entry.at - entry.at % DIRBLKSIZ as u64));
            }
            at = entry.end;
        }
        Ok(None)
    }

    /// Returns whether a directory holds nothing but itself and its parent.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt`; `Io`.
    pub(crate) fn is_empty(&self, dir: &Inode) -> Result<bool> {
        let mut entries = Dir::new(self.reader(), dir)?;
        let mut at = 0;
        while let Some(entry) = entries.entry(at)? {
            if entry.is_used() && !entry.is_dots() {
                return Ok(false);
            }
            at = entry.end;
        }
        Ok(true)
    }

    /// Adds an entry, in the first room there is. The directory grows if there is none. Gives
    /// the sector.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn add_entry(
        &mut self,
        dir: u32,
        name: &[u8],
        (ino, kind): (u32, FileKind),
    ) -> Step<u64> {
        let need = needed(name.len());
        let start = match self.room(&self.inode(dir)?, need)? {
            Some(start) => start,
            None => self.grow_directory(dir)?,
        };
        let mut chunk = self.chunk(dir, start)?;
        let (at, start, end) = self.room_in(&chunk, need)?;
        if start > at {
            self.set_length(&mut chunk.bytes, at, start - at);
        }
        self.set_length(&mut chunk.bytes, start, end - start);
        if let Some(bytes) = chunk.bytes.get_mut(start + DIRECT_HEAD..end) {
            bytes.fill(0);
            if let Some(bytes) = bytes.get_mut(..name.len()) {
                bytes.copy_from_slice(name);
            }
        }
        self.set_leads(&mut chunk.bytes, start, (ino, kind));
        self.set_name_length(&mut chunk.bytes, start, name.len());
        self.put_chunk(&chunk)?;
        let mut indexes = self.indexes.lock();
        indexes.add(dir, name, chunk.start + start as u64);
        indexes.set_room(dir, chunk.start, self.longest(&chunk));
        drop(indexes);
        self.touch_content(dir)?;
        Ok(chunk.place)
    }

    /// Returns the first room for an entry of `need` bytes in a chunk: the entry that has it, and where it
    /// begins and ends.
    ///
    /// # Errors
    /// `Corrupt` if there is none: the chunk is not what it was a moment ago.
    fn room_in(&self, chunk: &Chunk, need: u64) -> Result<(usize, usize, usize)> {
        let within = |at: u64| usize::try_from(at).unwrap_or(0);
        let mut rooms = dir::entries(self.volume, &chunk.bytes)
            .filter_map(|entry| slack(&entry).map(|(start, end)| (entry.at, start, end)));
        let room = rooms.find(|(_, start, end)| end - start >= need);
        let (at, start, end) = room.ok_or_else(|| {
            let expected = format!("room for {need} bytes");
            Error::corrupt("d_reclen", chunk.place, "none", expected)
        })?;
        Ok((within(at), within(start), within(end)))
    }

    /// Returns the longest room of a chunk.
    fn longest(&self, chunk: &Chunk) -> usize {
        let rooms = dir::entries(self.volume, &chunk.bytes).filter_map(|entry| slack(&entry));
        let longest = rooms.map(|(start, end)| end - start).max();
        longest.map_or(0, |len| usize::try_from(len).unwrap_or(0))
    }

    /// Makes an entry lead to another inode. Gives the sector.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn redirect(
        &mut self,
        dir: u32,
        at: u64,
        leads: (u32, FileKind),
        stage: Option<Stage>,
    ) -> Step<u64> {
        let mut chunk = self.chunk(dir, at)?;
        let within = usize::try_from(at - chunk.start).unwrap_or(0);
        self.set_leads(&mut chunk.bytes, within, leads);
        if chunk.stage != Stage::DATA {
            chunk.stage = stage.unwrap_or(chunk.stage);
        }
        self.put_chunk(&chunk)?;
        Ok(chunk.place)
    }

    /// Takes an entry out: the one before takes its room, where there is one in the chunk.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn remove_entry(&mut self, dir: u32, at: u64, stage: Option<Stage>) -> Step<()> {
        let mut chunk = self.chunk(dir, at)?;
        let place = at - chunk.start;
        let within = usize::try_from(place).unwrap_or(0);
        let (mut before, mut name, mut end) = (None, Vec::new(), within);
        for entry in dir::entries(self.volume, &chunk.bytes).take_while(|e| e.at <= place) {
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
            Some(before) => self.set_length(&mut chunk.bytes, before, end - before),
            None => 0_u32.put(self.volume.order, &mut chunk.bytes, within),
        }
        if chunk.stage != Stage::DATA {
            chunk.stage = stage.unwrap_or(chunk.stage);
        }
        self.put_chunk(&chunk)?;
        let mut indexes = self.indexes.lock();
        indexes.remove(dir, &name, at);
        indexes.set_room(dir, chunk.start, self.longest(&chunk));
        drop(indexes);
        self.touch_content(dir)?;
        Ok(())
    }

    /// Returns the sector of an entry.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn sector(&mut self, dir: u32, at: u64) -> Step<u64> {
        Ok(self.chunk(dir, at)?.place)
    }

    /// Returns the sector of an entry, if the disk leads there.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn shown_sector(&mut self, dir: u32, at: u64) -> Step<Option<u64>> {
        let chunk = self.chunk(dir, at)?;
        Ok(Some(chunk.place).filter(|_| chunk.stage != Stage::DATA))
    }

    /// Returns the sector of an entry that is taken out by a rename. One that the disk has elsewhere
    /// as yet would go with the directory's inode, before the new name is there.
    ///
    /// # Errors
    /// [`Stop::Commit`]; `Corrupt`; `Io`.
    pub(crate) fn source_sector(&mut self, dir: u32, at: u64) -> Step<Option<u64>> {
        let shown = self.shown_sector(dir, at)?;
        let node = self.node(dir)?;
        if shown.is_none() && !node.is_new() && at < node.disk.size {
            return Err(Stop::Commit);
        }
        Ok(shown)
    }

    /// The content of a new directory.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn make_dots(&mut self, dir: u32, parent: u32) -> Step<()> {
        let bytes = dir::dots(self.volume, dir, parent);
        self.write(dir, 0, &bytes)
    }

    /// Puts chunks, free, into a hole.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn fill_hole(&mut self, dir: u32, hole: Range<u64>) -> Step<()> {
        let bytes = self.free_chunk();
        for at in hole.step_by(DIRBLKSIZ) {
            self.write(dir, at, &bytes)?;
        }
        Ok(())
    }

    fn free_chunk(&self) -> [u8; DIRBLKSIZ] {
        let mut bytes = [0; DIRBLKSIZ];
        self.set_length(&mut bytes, 0, DIRBLKSIZ);
        bytes
    }

    /// Another chunk, free, at the end: where it begins.
    fn grow_directory(&mut self, dir: u32) -> Step<u64> {
        let at = self.inode(dir)?.size;
        if !at.is_multiple_of(DIRBLKSIZ as u64) {
            let found = format!("{at} (directory {dir})");
            let expected = "a multiple of 512";
            return Err(Error::corrupt("di_size", self.inode(dir)?.at, found, expected).into());
        }
        self.write(dir, at, &self.free_chunk())?;
        Ok(at)
    }

    /// Returns the chunk that holds byte `at` of a directory.
    fn chunk(&mut self, dir: u32, at: u64) -> Step<Chunk> {
        let start = at - at % DIRBLKSIZ as u64;
        let inode = self.inode(dir)?;
        let first = self.pointer(dir, start / self.volume.bsize)?;
        if first == 0 || start >= inode.size {
            let found = format!("a hole (directory {dir})");
            return Err(Error::corrupt("di_db", inode.at, found, "a block").into());
        }
        let block = self.reader().checked(&inode, "di_db", first, 1, true)?;
        let place = block.first * self.volume.fsize + start % self.volume.bsize;
        let mut bytes = [0; DIRBLKSIZ];
        self.cache.read(place, &mut bytes)?;
        let stage = match self.nodes.get(dir) {
            Some(node) => self.entry_stage(node, start, first),
            None => crate::commit::ADDITIONS,
        };
        Ok(Chunk {
            bytes,
            start,
            place,
            stage,
        })
    }

    fn put_chunk(&mut self, chunk: &Chunk) -> Result<()> {
        self.put(chunk.place, &chunk.bytes, chunk.stage)
    }

    /// Notes that the content of a node has changed.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn touch_content(&mut self, ino: u32) -> Result<()> {
        let now = self.now;
        let [_, mtime, ctime] = &mut self.node(ino)?.mem.times;
        (*mtime, *ctime) = (now, now);
        Ok(())
    }

    fn set_length(&self, bytes: &mut [u8], at: usize, len: usize) {
        let len = u16::try_from(len).unwrap_or(0);
        len.put(self.volume.order, bytes, at + 4);
    }

    fn set_leads(&self, bytes: &mut [u8], at: usize, (ino, kind): (u32, FileKind)) {
        ino.put(self.volume.order, bytes, at);
        if self.volume.has_types {
            dir::d_type(kind).put(self.volume.order, bytes, at + 6);
        }
    }

    fn set_name_length(&self, bytes: &mut [u8], at: usize, len: usize) {
        let len = u8::try_from(len).unwrap_or(u8::MAX);
        match self.volume.has_types {
            true => len.put(self.volume.order, bytes, at + 7),
            false => u16::from(len).put(self.volume.order, bytes, at + 6),
        }
    }

    /// Returns the kind that an entry has to tell.
    ///
    /// # Errors
    /// `NotFound` if there is no such inode any more.
    pub(crate) fn kind_of(&self, ino: u32) -> Result<FileKind> {
        let inode = self.inode(ino)?;
        inode.kind().ok_or_else(|| Kind::NotFound.into())
    }
}
