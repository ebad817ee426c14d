//! Large files: read in chunks, from the device if possible.

use crate::delivering::ordinary::{self, DATA_MAX, Stretches, failed, tell};
use crate::interface::delivery::{File, Part as Told, Range, Way, Why};
use crate::listing::list::join;
use crate::listing::packed::Listed;
use crate::state::part::Part;
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Extent, Kind, Mode, OpenId, Place, Result};

/// How many bytes of a file's extents are asked for at once; more while there are only holes.
const WINDOW: u64 = 4 << 20;
const WINDOW_MAX: u64 = 1 << 30;

/// Delivers a file in chunks, or the error.
pub(crate) fn deliver(part: &Part<'_>, file: u32) -> ControlFlow<()> {
    let Some(listed) = part.list.files.get(file as usize) else {
        return ControlFlow::Continue(());
    };
    let Some(device) = part.source.device.clone().filter(|_| !part.source.is_live) else {
        return ordinary::deliver(part, file, Why::NoPlaces);
    };
    let session = &part.source.session;
    let open = match session.open(listed.attr.node, Mode::Read) {
        Ok(open) => open,
        Err(e) => return failed(part, &listed, Way::Chunks, &e),
    };
    let large = Large {
        part,
        listed: &listed,
        device,
        open,
    };
    let done = large.deliver();
    // It was opened for reading: nothing is lost.
    let _ = session.close(open);
    match done {
        Some(done) => done,
        None if part.run.check().is_break() => ControlFlow::Break(()),
        None => ordinary::deliver(part, file, Why::Unmapped),
    }
}

struct Large<'a> {
    part: &'a Part<'a>,
    listed: &'a Listed,
    device: Arc<dyn BlockDevice>,
    open: OpenId,
}

/// A contiguous stretch of a large file, with its extents.
struct Window {
    extents: Vec<Extent>,
    end: u64,
}

impl Large<'_> {
    /// Delivers the file in chunks. Returns `None`, and delivers nothing, if the driver does not
    /// tell where the file lies, or if the run was stopped.
    fn deliver(&self) -> Option<ControlFlow<()>> {
        let size = self.listed.attr.size;
        let data = self.data(size)?;
        let mut seen = Listed::new(&self.listed.path, self.listed.attr);
        seen.data = data;
        let view = seen.view(self.part.number, Way::Chunks);
        if tell(self.part, &view, Told::Begin).is_break() {
            return Some(ControlFlow::Break(()));
        }
        Some(match self.chunks(&view, size) {
            Ok(ControlFlow::Continue(())) => {
                self.part.run.tally.delivered(Way::Chunks, size);
                tell(self.part, &view, Told::End)
            }
            Ok(ControlFlow::Break(())) => ControlFlow::Break(()),
            Err(e) => failed(self.part, &seen, Way::Chunks, &e),
        })
    }

    /// Returns the extents of `len` bytes from `at` on.
    fn window(&self, at: u64, len: u64) -> Result<Window> {
        let mut extents = Vec::new();
        let session = &self.part.source.session;
        session.extents(self.open, at, len, &mut extents)?;
        let mut end = at;
        for extent in &extents {
            if extent.offset != end || extent.len == 0 {
                break;
            }
            end += extent.len;
        }
        match end >= at.saturating_add(len) {
            true => Ok(Window { extents, end }),
            false => Err(Error::note(Kind::Io, "its extents have gaps")),
        }
    }

    /// Returns the ranges that hold data, if the file has holes, but not too many of them.
    #[expect(
        clippy::option_option,
        reason = "the outer one is a driver that does not say"
    )]
    fn data(&self, size: u64) -> Option<Option<Box<[Range]>>> {
        let (mut at, mut data, mut len) = (0, Vec::new(), WINDOW);
        while at < size {
            if self.part.run.check().is_break() {
                return None;
            }
            let window = self.window(at, len.min(size - at)).ok()?;
            for extent in window.extents.iter().filter(|e| e.place != Place::Hole) {
                let (offset, len) = (extent.offset, extent.len.min(size - extent.offset));
                join(&mut data, Range { offset, len });
            }
            if data.len() > DATA_MAX {
                return Some(None);
            }
            at = window.end;
            len = next_len(&window, len);
        }
        let is_full = data.iter().map(|r| r.len).sum::<u64>() == size;
        Some((!is_full).then(|| data.into()))
    }

    fn chunks(&self, view: &File<'_>, size: u64) -> Result<ControlFlow<()>> {
        let run = self.part.run;
        let len = self.part.tuned.request.min(run.shares.reads / 4);
        let buf = run.reads.buffer(len);
        let mut buf = buf.ok_or_else(|| Error::from(Kind::Interrupted))?;
        let (mut at, mut window_len) = (0, WINDOW);
        while at < size {
            let window = self.window(at, window_len.min(size - at))?;
            for extent in &window.extents {
                let extent = Extent {
                    len: extent.len.min(size.saturating_sub(extent.offset)),
                    ..*extent
                };
                if self.extent(view, extent, &mut buf.bytes)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            at = window.end;
            window_len = next_len(&window, window_len);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn extent(&self, view: &File<'_>, extent: Extent, buf: &mut [u8]) -> Result<ControlFlow<()>> {
        let Extent { offset, len, place } = extent;
        if place == Place::Hole {
            let hole = Told::Hole(Range { offset, len });
            return Ok(tell(self.part, view, hole));
        }
        let mut stretches = Stretches::new(None, len);
        while let Some((range, _)) = stretches.next(buf.len() as u64) {
            if self.part.run.check().is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let into = buf.get_mut(..usize::try_from(range.len).unwrap_or(0));
            let into = into.unwrap_or_default();
            self.read(place, range.offset, offset + range.offset, into)?;
            let (offset, bytes) = (offset + range.offset, &*into);
            if tell(self.part, view, Told::Chunk { offset, bytes }).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Reads from the device. If that fails, or if the bytes are encoded, reads through the
    /// session.
    fn read(&self, place: Place, skip: u64, offset: u64, into: &mut [u8]) -> Result<()> {
        if let Place::Device(at) = place {
            self.part.run.tally.read(1, into.len() as u64);
            let at = at.checked_add(skip);
            if at.is_some_and(|at| self.device.read_at(at, into).is_ok()) {
                return Ok(());
            }
        }
        let mut done = 0;
        while done < into.len() {
            let rest = into.get_mut(done..).unwrap_or_default();
            let session = &self.part.source.session;
            match session.read(self.open, offset + done as u64, rest)? {
                0 => return Err(Error::note(Kind::Io, "it ends before its size")),
                n => done += n,
            }
        }
        Ok(())
    }
}

/// Returns how many bytes to ask for after a window: more if it was all holes.
fn next_len(window: &Window, len: u64) -> u64 {
    let is_hole = window.extents.iter().all(|e| e.place == Place::Hole);
    if is_hole {
        (len * 2).min(WINDOW_MAX)
    } else {
        WINDOW
    }
}
