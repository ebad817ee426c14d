//! The places of the bytes of files.

use crate::files::stream::{Content, Stream};
use crate::mft::records::Mft;
use std::ops::Range;
use volary_core::{Ctx, Extent, Kind, Place, Result};

/// The most runs that one call reports.
const RUNS_MAX: u32 = 1 << 18;

impl Stream {
    /// Adds the places of the bytes. Bytes in the record, and compressed ones, get
    /// [`Place::Encoded`], because only a read can return them.
    ///
    /// # Errors
    /// `Interrupted`; `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        mft: &Mft,
        cx: &Ctx<'_>,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let (offset, end) = (bytes.start, bytes.end.min(self.size));
        if offset >= end {
            return Ok(());
        }
        let is_here = matches!(self.content, Content::Here(_));
        if is_here || self.is_compressed() {
            out.push(Extent {
                offset,
                len: end - offset,
                place: Place::Encoded,
            });
            return Ok(());
        }
        let written = end.min(self.initialized);
        let known = self.extents_of_runs(mft, cx, offset..written, out)?;
        if let Some(known) = known {
            // To learn the rest, the caller asks again from `known` on.
            Extent::append(out, known..end, Place::Encoded);
        } else if written.max(offset) < end {
            Extent::append(out, written.max(offset)..end, Place::Hole);
        }
        Ok(())
    }

    /// Adds the runs of a range. If there are too many for one call, returns where it stopped.
    fn extents_of_runs(
        &self,
        mft: &Mft,
        cx: &Ctx<'_>,
        bytes: Range<u64>,
        out: &mut Vec<Extent>,
    ) -> Result<Option<u64>> {
        let cluster = mft.volume().cluster;
        let (offset, end) = (bytes.start, bytes.end);
        let (mut left, mut at) = (RUNS_MAX, offset);
        if offset >= end {
            return Ok(None);
        }
        let clusters = offset / cluster..end.div_ceil(cluster);
        let walked = self.each_run(mft, Some(cx), clusters, |run| {
            left = left.checked_sub(1).ok_or(Kind::Interrupted)?;
            let start = run.first.saturating_mul(cluster).max(offset);
            let stop = run.end().saturating_mul(cluster).min(end);
            let place = run.place.map_or(Place::Hole, |place| {
                let within = start - run.first.saturating_mul(cluster);
                Place::Device(place.saturating_mul(cluster).saturating_add(within))
            });
            Extent::append(out, start..stop, place);
            at = stop;
            Ok(())
        });
        match walked {
            Err(e) if left == 0 && at < end && e == Kind::Interrupted => {
                cx.check_cancel()?;
                Ok(Some(at))
            }
            walked => walked.map(|()| None),
        }
    }
}
