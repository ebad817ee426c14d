//! What files and symlinks hold.

use crate::inode::Inode;
use crate::ondisk::{I_BLOCK_LEN, iflag};
use crate::run::{Run, Spot};
use crate::store::Store;
use volary_core::{Error, Extent, FileKind, Kind, Place, Result};

/// Longest target of a symlink, as Linux has it, in bytes.
const TARGET_MAX: u64 = 4096;

/// Runs of a file that one call tells of; a tree can lead to the same blocks over and over.
const RUNS_MAX: u32 = 1 << 18;

impl Store {
    /// Returns all that stands in an inode in place of blocks.
    ///
    /// # Errors
    /// `Corrupt` for a size that is more than there is.
    pub(crate) fn inline(&self, inode: &Inode) -> Result<Vec<u8>> {
        let mut bytes = inode.head.i_block.to_vec();
        bytes.extend(self.inline_rest(inode)?);
        let len = usize::try_from(inode.size).unwrap_or(usize::MAX);
        if bytes.len().max(I_BLOCK_LEN) < len {
            let found = format!("{len} (inode {})", inode.ino);
            let expected = format!("at most {}, which is in the inode", bytes.len());
            return Err(Error::corrupt("i_size", inode.at, found, expected));
        }
        bytes.truncate(len);
        Ok(bytes)
    }

    /// Reads bytes of a file up to its end.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn read(&self, inode: &Inode, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let left = inode.size.saturating_sub(offset);
        let len = usize::try_from(left).unwrap_or(usize::MAX).min(buf.len());
        let buf = buf.get_mut(..len).unwrap_or_default();
        if len == 0 {
            return Ok(0);
        }
        if inode.has(iflag::INLINE_DATA) {
            let bytes = self.inline(inode)?;
            let from = usize::try_from(offset).unwrap_or(usize::MAX);
            let part = bytes.get(from..).unwrap_or_default();
            for (to, from) in buf.iter_mut().zip(part) {
                *to = *from;
            }
        } else {
            self.read_blocks(inode, offset, buf)?;
        }
        Ok(len)
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Invalid` if it is none; `Unsupported` if it is encrypted; `Corrupt`; `Io`.
    pub(crate) fn target(&self, inode: &Inode) -> Result<Vec<u8>> {
        if inode.kind() != Some(FileKind::Symlink) {
            return Err(Kind::Invalid.into());
        }
        check_clear(inode)?;
        if inode.size > TARGET_MAX {
            let found = format!("{} (inode {})", inode.size, inode.ino);
            let expected = format!("a target of at most {TARGET_MAX}");
            return Err(Error::corrupt("i_size", inode.at, found, expected));
        }
        let len = usize::try_from(inode.size).unwrap_or(0);
        if inode.is_short_link(&self.volume) {
            return Ok(inode.head.i_block.iter().copied().take(len).collect());
        }
        let mut target = vec![0; len];
        self.read(inode, 0, &mut target)?;
        // A target that Linux wrote has a NUL after it, which is not counted.
        if let Some(end) = target.iter().position(|byte| *byte == 0) {
            target.truncate(end);
        }
        Ok(target)
    }

    /// Where a file's bytes lie.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub(crate) fn extents(
        &self,
        inode: &Inode,
        (offset, len): (u64, u64),
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let end = offset.saturating_add(len).min(inode.size);
        if offset >= end {
            return Ok(());
        }
        if inode.has(iflag::INLINE_DATA) {
            out.push(Extent {
                offset,
                len: end - offset,
                place: Place::Encoded,
            });
            return Ok(());
        }
        let block = self.volume.block;
        let mut left = RUNS_MAX;
        let walked = self.each_run(inode, offset / block, end.div_ceil(block), |run| {
            if left == 0 {
                return Err(Kind::Interrupted.into());
            }
            left -= 1;
            self.push_extents(run, (offset, end), out);
            Ok(())
        });
        if left > 0 {
            return walked;
        }
        // Who wants to know more asks from there on.
        let known = out.last().map_or(offset, |last| last.offset + last.len);
        if known < end {
            Extent::append(out, (known, end), Place::Encoded);
        }
        Ok(())
    }

    /// The extents of a run; a block that is in the journal is one of its own.
    fn push_extents(&self, run: Run, (offset, end): (u64, u64), out: &mut Vec<Extent>) {
        let block = self.volume.block;
        let start = (run.first * block).max(offset);
        let stop = run.end().saturating_mul(block).min(end);
        let Spot::Data(first) = run.spot else {
            return Extent::append(out, (start, stop), Place::Hole);
        };
        let mut at = start;
        while at < stop {
            let number = first + (at / block - run.first);
            let (until, place) = match &self.replayed {
                None => (stop, Some(number * block)),
                Some(replayed) => {
                    let (count, place) = replayed.place(number, stop.div_ceil(block) - at / block);
                    (((at / block + count) * block).min(stop), place)
                }
            };
            let place = place.map_or(Place::Encoded, |place| Place::Device(place + at % block));
            Extent::append(out, (at, until), place);
            at = until;
        }
    }
}

/// # Errors
/// `Unsupported` for what is encrypted: its key is not on the volume.
pub(crate) fn check_clear(inode: &Inode) -> Result<()> {
    if !inode.has(iflag::ENCRYPT) {
        return Ok(());
    }
    let words = "it is encrypted, and what it holds cannot be read without its key";
    Err(Error::note(Kind::Unsupported, words))
}
