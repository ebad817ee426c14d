//! The bitmaps of the clusters in use and of the records in use.

use crate::disk::ondisk::{kind, number};
use crate::files::node::Node;
use crate::files::stream::{Content, Stream};
use crate::mft::records::Mft;
use volary_core::{Kind, Result};

/// Is called with the offset of a part in the stream, and with its bytes, or `None` for a hole.
type EachPart<'a> = &'a mut dyn FnMut(u64, Option<&[u8]>) -> Result<()>;

/// A stream that is a bitmap.
pub(crate) struct Bitmap<'a> {
    mft: &'a Mft,
    stream: Stream,
}

/// Returns the numbers of free clusters and free records, which are counted in the bitmaps. The
/// number is 0 if a bitmap cannot be read.
pub(crate) fn free(mft: &Mft) -> (u64, u64) {
    let zeros = |bits: Result<Option<Bitmap<'_>>>, count| {
        let zeros = bits.and_then(|bits| bits.map_or(Ok(0), |bits| bits.zeros(count)));
        zeros.unwrap_or(0)
    };
    let clusters = zeros(Bitmap::of_clusters(mft), mft.volume().clusters);
    (clusters, zeros(Bitmap::of_records(mft), mft.count()))
}

impl<'a> Bitmap<'a> {
    /// Returns the bitmap of clusters.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn of_clusters(mft: &'a Mft) -> Result<Option<Self>> {
        Self::of(mft, number::BITMAP, kind::DATA)
    }

    /// Returns the bitmap of records.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn of_records(mft: &'a Mft) -> Result<Option<Self>> {
        Self::of(mft, number::MFT, kind::BITMAP)
    }

    fn of(mft: &'a Mft, number: u64, kind: u32) -> Result<Option<Self>> {
        let stream = Node::of(mft, number)?.stream(mft, kind, &[])?;
        Ok(stream.map(|stream| Self { mft, stream }))
    }

    /// Returns whether a bit is set.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn has(&self, index: u64) -> Result<bool> {
        let mut byte = [0];
        self.stream.read(self.mft, index / 8, &mut byte)?;
        let [byte] = byte;
        Ok(byte >> (index % 8) & 1 == 1)
    }

    /// Counts the zero bits among the first `count`. Bits in holes are zero.
    pub(crate) fn zeros(&self, count: u64) -> Result<u64> {
        let count = count.min(self.stream.size.saturating_mul(8));
        let mut zeros = 0u64;
        self.each_part(count.div_ceil(8), &mut |at, part| {
            let Some(bytes) = part else {
                return Ok(());
            };
            for (byte, index) in bytes.iter().zip(at..) {
                let left = count.saturating_sub(index.saturating_mul(8)).min(8);
                let mask = (1u16 << left).wrapping_sub(1) as u8;
                zeros = zeros.saturating_add((!byte & mask).count_ones().into());
            }
            Ok(())
        })?;
        Ok(zeros.saturating_add(self.bits_in_holes(count)?))
    }

    /// Counts how many of the first `count` bits are in holes.
    fn bits_in_holes(&self, count: u64) -> Result<u64> {
        let Content::Mapped(_) = &self.stream.content else {
            return Ok(0);
        };
        let cluster = self.mft.volume().cluster;
        let end = count.div_ceil(8).div_ceil(cluster);
        let mut bits = 0u64;
        self.stream.each_run(self.mft, None, 0..end, |run| {
            let scale = |clusters: u64| clusters.saturating_mul(cluster).saturating_mul(8);
            if run.place.is_none() {
                let own = scale(run.end()).min(count).saturating_sub(scale(run.first));
                bits = bits.saturating_add(own);
            }
            Ok(())
        })?;
        Ok(bits)
    }

    /// Calls `each` for the stretches of set bits among the first `clusters` bits. A damaged bitmap
    /// ends at the first part that cannot be read.
    ///
    /// # Errors
    /// `Io`; `Interrupted`, from `each`.
    fn each_set(&self, clusters: u64, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let len = self.stream.size.min(clusters.div_ceil(8));
        let mut run: Option<(u64, u64)> = None;
        let read = self.each_part(len, &mut |at, part| {
            for (byte, index) in part.unwrap_or_default().iter().zip(at..) {
                let first = index.saturating_mul(8);
                for cluster in (first..first.saturating_add(8)).filter(|one| *one < clusters) {
                    if byte >> (cluster % 8) & 1 == 0 {
                        continue;
                    }
                    match &mut run {
                        Some((start, count)) if *start + *count == cluster => *count += 1,
                        _ => {
                            if let Some((start, count)) = run.replace((cluster, 1)) {
                                each(start, count)?;
                            }
                        }
                    }
                }
            }
            Ok(())
        });
        if let Err(e) = read
            && matches!(e.kind(), Kind::Io | Kind::Interrupted)
        {
            return Err(e);
        }
        run.map_or(Ok(()), |(start, count)| each(start, count))
    }

    /// Calls `each` for the first `len` bytes, part by part, with each part's offset in the stream.
    fn each_part(&self, len: u64, each: EachPart<'_>) -> Result<()> {
        const PART: u64 = 64 << 10;
        let cluster = self.mft.volume().cluster;
        let (mut at, mut buf) = (0u64, Vec::new());
        while at < len {
            let there = match &self.stream.content {
                Content::Here(_) => len,
                Content::Mapped(_) => {
                    let run = self.stream.run(self.mft, at / cluster)?;
                    let end = run.end().saturating_mul(cluster);
                    if run.place.is_none() {
                        each(at, None)?;
                        at = end;
                        continue;
                    }
                    end
                }
            };
            let count = (there.min(len) - at).min(PART);
            buf.resize(usize::try_from(count).unwrap_or(0), 0);
            self.stream.read(self.mft, at, &mut buf)?;
            each(at, Some(&buf))?;
            at = at.saturating_add(count);
        }
        Ok(())
    }
}

/// Calls `each` for the stretches of clusters that are in use by the bitmap, up to the end of the
/// device. If the bitmap cannot be found, there are none. If it is damaged, it ends there.
///
/// # Errors
/// `Io`; `Interrupted`, from `each`.
pub(crate) fn each_used(mft: &Mft, each: &mut dyn FnMut(u64, u64) -> Result<()>) -> Result<()> {
    match Bitmap::of_clusters(mft) {
        Ok(Some(bits)) => bits.each_set(mft.volume().there(), each),
        _ => Ok(()),
    }
}
