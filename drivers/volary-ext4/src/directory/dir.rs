//! Directories (directory.rst). Hash trees are read as the lists of entries that they are as
//! well: their inner nodes look like entries of no file.

use crate::content::file::Content;
use crate::directory::htree;
use crate::disk::blocks::Blocks;
use crate::disk::csum;
use crate::disk::ondisk::{
    DIR_ENTRY, DIR_TAIL, DIR_TAIL_TYPE, DirEntry2, I_BLOCK_LEN, iflag, incompat,
};
use crate::disk::run::Spot;
use crate::disk::volume::Volume;
use crate::fast::Fast;
use crate::inodes::inode::Inode;
use volary_core::{Error, FileKind, Name, Result};
use zerocopy::FromBytes;

/// An entry of a directory.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) ino: u32,
    /// As the entry says, if it does.
    pub(crate) kind: Option<FileKind>,
    pub(crate) name: Vec<u8>,
    /// The place in the directory after it.
    pub(crate) end: u64,
}

impl Entry {
    /// Returns whether it is the directory's entry of itself or of the one that holds it.
    pub(crate) fn is_dot(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// A part of a directory: entries do not go past its end.
pub(crate) struct Chunk {
    /// Where it begins in the directory.
    pub(crate) start: u64,
    /// Where it stands, in bytes.
    pub(crate) at: u64,
    pub(crate) bytes: Vec<u8>,
}

impl Chunk {
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }
}

/// Bytes at the start of an inode's data that name the directory's parent.
const INLINE_PARENT: usize = 4;
/// Bytes of entries that follow them there.
const INLINE_FIRST: u64 = (I_BLOCK_LEN - INLINE_PARENT) as u64;

/// A directory, as it is stored.
#[derive(Clone, Copy)]
pub(crate) struct Directory<'a> {
    content: Content<'a>,
    fast: &'a Fast,
}

impl<'a> Directory<'a> {
    pub(crate) fn new(content: Content<'a>, fast: &'a Fast) -> Self {
        Self { content, fast }
    }

    /// Returns the directory's inode.
    pub(crate) fn inode(&self) -> &'a Inode {
        self.content.map().inode()
    }

    fn blocks(&self) -> &'a Blocks {
        self.content.map().blocks()
    }

    fn volume(&self) -> &'a Volume {
        self.blocks().volume()
    }

    /// Returns where the entries end. A directory in its inode is shorter by the parent's number.
    pub(crate) fn end(&self) -> u64 {
        let inode = self.inode();
        match inode.has(iflag::INLINE_DATA) {
            true => inode.size.saturating_sub(INLINE_PARENT as u64),
            false => inode.size,
        }
    }

    /// Returns where the chunk that holds this place begins.
    pub(crate) fn chunk_start(&self, at: u64) -> u64 {
        match self.inode().has(iflag::INLINE_DATA) {
            true if at < INLINE_FIRST => 0,
            true => INLINE_FIRST,
            false => at - at % self.volume().block,
        }
    }

    /// Returns the chunk that begins there; `None` at the end of the directory, and where a fast commit
    /// made it, which has no blocks.
    ///
    /// # Errors
    /// `Corrupt`, also for a hole or a wrong checksum; `Io`.
    pub(crate) fn chunk(&self, start: u64) -> Result<Option<Chunk>> {
        let inode = self.inode();
        if start >= self.end() || self.fast.is_new_dir(inode.ino) {
            return Ok(None);
        }
        if inode.has(iflag::INLINE_DATA) {
            return self.inline_chunk(start).map(Some);
        }
        let block = self.volume().block;
        let run = self.content.map().run(start / block)?;
        let Spot::Data(number) = run.spot else {
            let found = format!("a hole at {start} (inode {})", inode.ino);
            return Err(Error::corrupt("directory", inode.at, found, "a block"));
        };
        let bytes = self
            .blocks()
            .block("block of a directory", inode.at, number)?;
        let at = number * block;
        if self.volume().verifies() {
            self.verify_chunk(at, start, &bytes)?;
        }
        Ok(Some(Chunk { start, at, bytes }))
    }

    fn inline_chunk(&self, start: u64) -> Result<Chunk> {
        let all = self.content.inline()?;
        let from = INLINE_PARENT + usize::try_from(start).unwrap_or(usize::MAX - INLINE_PARENT);
        let to = match start {
            0 => all.len().min(I_BLOCK_LEN),
            _ => all.len(),
        };
        Ok(Chunk {
            start,
            at: self.inode().at,
            bytes: all.get(from..to).unwrap_or_default().to_vec(),
        })
    }

    /// Compares a block's checksum. That of a block of entries is in an entry at its end; that of a node of a hash tree
    /// behind the room for its entries (directory.rst, checksums.rst).
    fn verify_chunk(&self, at: u64, start: u64, bytes: &[u8]) -> Result<()> {
        let inode = self.inode();
        if inode.has(iflag::INDEX) && (start == 0 || self.is_node(bytes)) {
            let node = htree::Node::of(bytes, start == 0);
            let sums = node.and_then(|node| node.sums(inode.seed, bytes));
            return match sums {
                Some((stored, sum)) => self.blocks().verify("dt_checksum", at, stored, sum),
                None => self.has_no_sum(at),
            };
        }
        let (body, tail) = bytes
            .split_at_checked(bytes.len().saturating_sub(DIR_TAIL))
            .unwrap_or_default();
        match tail {
            &[0, 0, 0, 0, 12, 0, 0, DIR_TAIL_TYPE, a, b, c, d] => {
                let stored = u32::from_le_bytes([a, b, c, d]);
                let sum = csum::crc32c(inode.seed, body);
                self.blocks().verify("det_checksum", at, stored, sum)
            }
            _ => self.has_no_sum(at),
        }
    }

    /// Returns whether a block that is not a directory's first is a node of a hash tree: an entry of no file
    /// is as long as the block, and leaves no room for the checksum of a block of entries.
    fn is_node(&self, bytes: &[u8]) -> bool {
        match bytes {
            &[0, 0, 0, 0, low, high, ..] => {
                self.rec_len(u16::from_le_bytes([low, high])) == self.volume().block
            }
            _ => false,
        }
    }

    fn has_no_sum(&self, at: u64) -> Result<()> {
        let found = format!("none (inode {})", self.inode().ino);
        let expected = "a checksum at the end of the block";
        Err(Error::corrupt("det_checksum", at, found, expected))
    }

    /// Returns the entry at or after a place in a chunk, and where the next begins; entries of no file are
    /// passed over.
    ///
    /// # Errors
    /// `Corrupt` for an entry that makes no sense.
    pub(crate) fn entry(&self, chunk: &Chunk, from: u64) -> Result<Option<Entry>> {
        let mut place = from;
        while let Some((raw, name, end)) = self.raw_entry(chunk, place)? {
            let ino = raw.inode.get();
            if ino != 0 {
                let has_kinds = self.volume().has_incompat(incompat::FILETYPE);
                return Ok(Some(Entry {
                    ino,
                    kind: kind_of(raw.file_type).filter(|_| has_kinds),
                    name: name.to_vec(),
                    end,
                }));
            }
            place = end;
        }
        Ok(None)
    }

    /// Returns the entry that begins there, used or not, its name and where it ends.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn raw_entry<'c>(
        &self,
        chunk: &'c Chunk,
        place: u64,
    ) -> Result<Option<(DirEntry2, &'c [u8], u64)>> {
        let inode = self.inode();
        let within = usize::try_from(place.saturating_sub(chunk.start)).unwrap_or(usize::MAX);
        let rest = chunk.bytes.get(within..).unwrap_or_default();
        if rest.is_empty() {
            return Ok(None);
        }
        let at = chunk.at.saturating_add(within as u64);
        let bad = |what, found: u64, expected: &str| {
            let found = format!("{found} (inode {} at {place})", inode.ino);
            Error::corrupt(what, at, found, expected)
        };
        let (raw, after) = DirEntry2::read_from_prefix(rest)
            .map_err(|_| bad("rec_len", rest.len() as u64, "an entry of 8 bytes or more"))?;
        let len = self.rec_len(raw.rec_len.get());
        let least = (DIR_ENTRY + usize::from(raw.name_len)).next_multiple_of(4);
        let is_inside = usize::try_from(len).is_ok_and(|len| len >= least && len <= rest.len());
        if !is_inside || !len.is_multiple_of(4) || len < DIR_TAIL as u64 {
            return Err(bad(
                "rec_len",
                len,
                "room for the name, inside of the block",
            ));
        }
        let ino = raw.inode.get();
        if ino > self.volume().inodes {
            return Err(bad("inode", ino.into(), "one that the volume has"));
        }
        let name = after.get(..raw.name_len.into()).unwrap_or_default();
        if ino != 0 && name.is_empty() {
            return Err(bad("name_len", 0, "at least 1"));
        }
        Ok(Some((raw, name, place.saturating_add(len))))
    }

    /// Returns the length of an entry. Lengths of blocks of 64 KiB do not fit: two low bits go above, and 65535 is all of it.
    fn rec_len(&self, stored: u16) -> u64 {
        let len = u64::from(stored);
        match (self.volume().block, len) {
            (0x1_0000, 0 | 0xffff) => 0x1_0000,
            (0x1_0000, len) => len & 0xfffc | (len & 3) << 16,
            (_, len) => len,
        }
    }

    /// Returns the directory that holds this one.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn parent(&self) -> Result<u32> {
        let inode = self.inode();
        if let Some(parent) = self.fast.parent(inode.ino) {
            return Ok(parent);
        }
        if inode.has(iflag::INLINE_DATA) {
            let [a, b, c, d, ..] = inode.head.i_block;
            return Ok(u32::from_le_bytes([a, b, c, d]));
        }
        let chunk = self.chunk(0)?;
        let second = match &chunk {
            None => None,
            Some(chunk) => match self.entry(chunk, 0)? {
                Some(first) if first.name == b"." => self.entry(chunk, first.end)?,
                other => other,
            },
        };
        let second = second.filter(|entry| entry.name == b"..");
        second.map(|entry| entry.ino).ok_or_else(|| {
            let found = format!("no entry '..' (inode {})", inode.ino);
            Error::corrupt("directory", inode.at, found, "'.' and '..' first")
        })
    }
}

/// Returns whether anybody can ask for an entry by this name.
pub(crate) fn can_be_asked_for(name: &[u8]) -> bool {
    Name::new(name).is_ok()
}

fn kind_of(file_type: u8) -> Option<FileKind> {
    Some(match file_type {
        1 => FileKind::File,
        2 => FileKind::Dir,
        3 => FileKind::CharDevice,
        4 => FileKind::BlockDevice,
        5 => FileKind::Fifo,
        6 => FileKind::Socket,
        7 => FileKind::Symlink,
        _ => return None,
    })
}
