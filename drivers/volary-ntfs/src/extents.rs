//! Where the bytes of files lie.

use crate::store::Store;
use crate::stream::{Content, Stream};
use volary_core::{Ctx, Extent, Kind, Place, Result};

/// Runs of a file that one call tells of.
const RUNS_MAX: u32 = 1 << 18;

impl Store {
    /// Where the bytes of a stream lie. Those in its record, and compressed ones, only a read has.
    ///
    /// # Errors
    /// `Interrupted`; `Corrupt`; `Io`.
    pub(crate) fn extents(
        &self,
        cx: &Ctx<'_>,
        stream: &Stream,
        (offset, len): (u64, u64),
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let end = offset.saturating_add(len).min(stream.size);
        if offset >= end {
            return Ok(());
        }
        let is_here = matches!(stream.content, Content::Here(_));
        if is_here || stream.is_compressed() {
            out.push(Extent {
                offset,
                len: end - offset,
                place: Place::Encoded,
            });
            return Ok(());
        }
        let written = end.min(stream.initialized);
        let known = self.of_runs(cx, stream, (offset, written), out)?;
        if let Some(known) = known {
            // Who wants to know more asks from there on.
            Extent::append(out, (known, end), Place::Encoded);
        } else if written.max(offset) < end {
            Extent::append(out, (written.max(offset), end), Place::Hole);
        }
        Ok(())
    }

    /// Adds the runs of a range. Returns where it ends if there are too many for one call.
    fn of_runs(
        &self,
        cx: &Ctx<'_>,
        stream: &Stream,
        (offset, end): (u64, u64),
        out: &mut Vec<Extent>,
    ) -> Result<Option<u64>> {
        let cluster = self.volume.cluster;
        let (mut left, mut at) = (RUNS_MAX, offset);
        if offset >= end {
            return Ok(None);
        }
        let range = (offset / cluster, end.div_ceil(cluster));
        let walked = stream.each_run(self, Some(cx), range, |run| {
            left = left.checked_sub(1).ok_or(Kind::Interrupted)?;
            let start = run.first.saturating_mul(cluster).max(offset);
            let stop = run.end().saturating_mul(cluster).min(end);
            let place = run.place.map_or(Place::Hole, |place| {
                let within = start - run.first.saturating_mul(cluster);
                Place::Device(place.saturating_mul(cluster).saturating_add(within))
            });
            Extent::append(out, (start, stop), place);
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
