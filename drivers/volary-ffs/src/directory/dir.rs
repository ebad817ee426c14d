//! Directories: chunks of 512 bytes, filled with entries to the last byte.

use crate::disk::ondisk::{DIRBLKSIZ, DIRECT_HEAD, Stored, UFS_WINO};
use crate::disk::volume::Volume;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use std::ops::Range;
use volary_core::{Error, FileKind, Kind, Result};

/// Bytes that a scan of a directory reads at a time.
const WINDOW: usize = 8192;

/// The longest directory, in bytes: the BSDs' offsets in directories have 31 bits.
const SIZE_MAX: u64 = 0x7fff_fe00;

/// Returns the longest directory that a volume can have, in bytes.
pub(crate) fn size_max(volume: &Volume) -> u64 {
    volume.size.saturating_mul(volume.fsize).min(SIZE_MAX)
}

/// The number of damaged chunks after which the rest of a directory is skipped.
pub(crate) const DAMAGE_MAX: u32 = 64;

/// An entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) ino: u32,
    /// The kind that the entry states, if it states one.
    pub(crate) kind: Option<FileKind>,
    pub(crate) name: &'a [u8],
    /// The places where it begins and ends in the directory, in bytes.
    pub(crate) at: u64,
    pub(crate) end: u64,
}

impl Entry<'_> {
    /// Returns whether the entry leads to a node. Free room does not, nor does a hole in a union
    /// mount.
    pub(crate) fn is_used(&self) -> bool {
        self.ino != 0 && self.ino != UFS_WINO
    }

    /// Returns whether the name is `.` or `..`.
    pub(crate) fn is_dots(&self) -> bool {
        self.name == b"." || self.name == b".."
    }
}

/// Damaged chunks that a scan of a directory has skipped.
#[derive(Default)]
pub(crate) struct Damage {
    chunks: u32,
    /// The error of the first one.
    pub(crate) first: Option<Error>,
}

impl Damage {
    /// Skips a damaged chunk.
    ///
    /// # Errors
    /// `e` itself, if it concerns more than the chunk, or there is too much damage.
    pub(crate) fn pass(&mut self, e: Error) -> Result<()> {
        let is_local = matches!(e.kind(), Kind::Corrupt | Kind::Io);
        if !is_local || self.chunks >= DAMAGE_MAX {
            return Err(e);
        }
        self.chunks += 1;
        self.first.get_or_insert(e);
        Ok(())
    }
}

/// Scans a directory, a window at a time.
pub(crate) struct Dir<'a> {
    reader: Reader<'a>,
    pub(crate) inode: &'a Inode,
    window: Vec<u8>,
    /// Bytes that are read at a time: whole chunks.
    step: usize,
    /// The window's place in the directory.
    start: Option<u64>,
}

impl<'a> Dir<'a> {
    /// Starts at an inode's directory.
    ///
    /// # Errors
    /// `NotDir`; `Corrupt` for one that is longer than the volume, or than a directory can be.
    pub(crate) fn new(reader: Reader<'a>, inode: &'a Inode) -> Result<Self> {
        if inode.kind() != Some(FileKind::Dir) {
            return Err(Kind::NotDir.into());
        }
        let max = size_max(reader.volume);
        if inode.size > max {
            let found = format!("{} (directory {})", inode.size, inode.ino);
            let expected = format!("at most {max}");
            return Err(Error::corrupt("di_size", inode.at, found, expected));
        }
        Ok(Self {
            reader,
            inode,
            window: Vec::new(),
            step: WINDOW,
            start: None,
        })
    }

    /// Reads a chunk at a time from now on, for callers that know where an entry is.
    pub(crate) fn read_by_chunks(&mut self) {
        (self.step, self.start) = (DIRBLKSIZ, None);
    }

    /// Returns the entry at `at`, whether it is free or not. Returns `None` at the end of the
    /// directory.
    ///
    /// # Errors
    /// `Corrupt` for an invalid entry; `Io`.
    pub(crate) fn entry(&mut self, at: u64) -> Result<Option<Entry<'_>>> {
        if at >= self.inode.size {
            return Ok(None);
        }
        self.fill(at)?;
        let within = usize::try_from(at % self.step as u64).unwrap_or(0);
        match parse(self.reader.volume, &self.window, within) {
            Ok((ino, kind, name, reclen)) => Ok(Some(Entry {
                ino,
                kind,
                name: self.window.get(name).unwrap_or_default(),
                at,
                end: at + reclen,
            })),
            Err((what, found, expected)) => {
                let place = self.place(at)?;
                Err(Error::corrupt(what, place, found, expected))
            }
        }
    }

    /// Returns the first place at or after `at` where an entry begins.
    ///
    /// # Errors
    /// As [`entry`](Self::entry).
    pub(crate) fn border(&mut self, at: u64) -> Result<u64> {
        let mut here = at - at % DIRBLKSIZ as u64;
        while here < at {
            match self.entry(here)? {
                Some(entry) => here = entry.end,
                None => break,
            }
        }
        Ok(here)
    }

    /// Returns the next chunk after `at`, where a scan goes on after damage.
    pub(crate) fn next_chunk(at: u64) -> u64 {
        (at / DIRBLKSIZ as u64 + 1) * DIRBLKSIZ as u64
    }

    fn fill(&mut self, at: u64) -> Result<()> {
        let start = at - at % self.step as u64;
        if self.start == Some(start) {
            return Ok(());
        }
        self.start = None;
        let left = usize::try_from(self.inode.size - start).unwrap_or(self.step);
        self.window.resize(left.min(self.step), 0);
        match self.reader.read(self.inode, start, &mut self.window) {
            // The chunks beside an unreadable block can still be read.
            Err(e) if self.step > DIRBLKSIZ && matches!(e.kind(), Kind::Corrupt | Kind::Io) => {
                self.read_by_chunks();
                self.fill(at)
            }
            read => {
                read?;
                self.start = Some(start);
                Ok(())
            }
        }
    }

    /// Returns where a place of the directory is on the device.
    pub(crate) fn place(&self, at: u64) -> Result<u64> {
        let mut found = None;
        self.reader.runs(self.inode, at, 1, &mut |run| {
            found = run.place;
            Ok(())
        })?;
        Ok(found.unwrap_or(self.inode.at))
    }

    /// Returns the inode and the place of the entry `name`. The search starts at the chunk of
    /// `from`, and goes on at the directory's start.
    ///
    /// # Errors
    /// `NotFound`; as [`entry`](Self::entry), if parts of the directory could not be read and the
    /// name is not in the rest; those of `go_on`, which is called at each window.
    pub(crate) fn find(
        &mut self,
        name: &[u8],
        from: u64,
        go_on: &dyn Fn() -> Result<()>,
    ) -> Result<(u32, u64)> {
        let from = from - from % DIRBLKSIZ as u64;
        let mut damage = Damage::default();
        for part in [from..self.inode.size, 0..from] {
            let mut at = part.start;
            while at < part.end {
                if at.is_multiple_of(WINDOW as u64) {
                    go_on()?;
                }
                let entry = match self.entry(at) {
                    Ok(Some(entry)) => entry,
                    Ok(None) => break,
                    Err(e) => {
                        damage.pass(e)?;
                        at = Self::next_chunk(at);
                        continue;
                    }
                };
                if entry.name == name && entry.is_used() {
                    return Ok((entry.ino, entry.at));
                }
                at = entry.end;
            }
        }
        // The name may be in the part that could not be read.
        Err(damage.first.unwrap_or_else(|| Kind::NotFound.into()))
    }
}

/// Parses the entry at `at` in whole chunks of a directory: inode, kind, name, length.
fn parse(volume: &Volume, bytes: &[u8], at: usize) -> std::result::Result<Parsed, Wrong> {
    let order = volume.order;
    let room = (DIRBLKSIZ - at % DIRBLKSIZ).min(bytes.len().saturating_sub(at));
    let ino = u32::get(order, bytes, at);
    let reclen = usize::from(u16::get(order, bytes, at + 4));
    if reclen < DIRECT_HEAD || reclen > room || !reclen.is_multiple_of(4) {
        let expected = format!("a multiple of 4, {DIRECT_HEAD} to {room}");
        return Err(("d_reclen", reclen.to_string(), expected));
    }
    let (kind, len) = match volume.has_types {
        true => (
            kind_of(u8::get(order, bytes, at + 6)),
            usize::from(u8::get(order, bytes, at + 7)),
        ),
        false => (None, usize::from(u16::get(order, bytes, at + 6))),
    };
    let most = (reclen - DIRECT_HEAD).min(255);
    if ino != 0 && (len == 0 || len > most) {
        return Err(("d_namlen", len.to_string(), format!("1 to {most}")));
    }
    let name = at + DIRECT_HEAD..at + DIRECT_HEAD + len.min(most);
    Ok((ino, kind, name, reclen as u64))
}

/// Returns the entry at `at` of a chunk, if it is whole: inode, name, end.
pub(crate) fn whole<'a>(
    volume: &Volume,
    chunk: &'a [u8],
    at: usize,
) -> Option<(u32, &'a [u8], usize)> {
    let (ino, _, name, reclen) = parse(volume, chunk, at).ok()?;
    let end = at + usize::try_from(reclen).ok()?;
    Some((ino, chunk.get(name)?, end))
}

/// Returns the first chunk of a directory, with `.` and `..`.
pub(crate) fn dots(volume: &Volume, dir: u32, parent: u32) -> [u8; DIRBLKSIZ] {
    let (order, mut bytes) = (volume.order, [0; DIRBLKSIZ]);
    let rest = DIRBLKSIZ as u16 - 12;
    for (at, len, ino, name) in [(0, 12, dir, &b"."[..]), (12, rest, parent, b"..")] {
        ino.put(order, &mut bytes, at);
        len.put(order, &mut bytes, at + 4);
        let count = name.len() as u8;
        match volume.has_types {
            true => [d_type(FileKind::Dir), count].put(order, &mut bytes, at + 6),
            false => u16::from(count).put(order, &mut bytes, at + 6),
        }
        let name_at = at + DIRECT_HEAD;
        if let Some(room) = bytes.get_mut(name_at..name_at + name.len()) {
            room.copy_from_slice(name);
        }
    }
    bytes
}

/// Returns the `d_type` of an entry for this kind.
pub(crate) fn d_type(kind: FileKind) -> u8 {
    u8::try_from(kind.mode_bits() >> 12).unwrap_or(0)
}

/// Returns the entries of a chunk, with places relative to it. The first damaged entry ends them.
pub(crate) fn entries<'a>(volume: &Volume, chunk: &'a [u8]) -> impl Iterator<Item = Entry<'a>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let whole = Some(at).filter(|&at| at < chunk.len())?;
        let (ino, kind, name, reclen) = parse(volume, chunk, whole).ok()?;
        at += usize::try_from(reclen).unwrap_or(usize::MAX);
        Some(Entry {
            ino,
            kind,
            name: chunk.get(name).unwrap_or_default(),
            at: whole as u64,
            end: at as u64,
        })
    })
}

/// Returns the bytes that an entry needs. Its name ends with a zero, and is padded to a multiple of
/// four.
pub(crate) fn needed(name: usize) -> u64 {
    (DIRECT_HEAD + name + 1).next_multiple_of(4) as u64
}

/// Returns the unused room of an entry: where it begins and ends in the directory.
pub(crate) fn slack(entry: &Entry<'_>) -> Option<(u64, u64)> {
    let start = match entry.ino {
        0 => entry.at,
        _ => entry.at + needed(entry.name.len()),
    };
    (start < entry.end).then_some((start, entry.end))
}

/// Inode, kind, name, length.
type Parsed = (u32, Option<FileKind>, Range<usize>, u64);
/// The field, its value, and the expected value.
type Wrong = (&'static str, String, String);

/// `d_type`: the upper bits of the mode.
fn kind_of(d_type: u8) -> Option<FileKind> {
    FileKind::from_mode(u32::from(d_type) << 12)
}
