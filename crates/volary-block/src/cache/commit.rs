//! Writing back: stages, flushes, and gathered requests.

use super::page::STAGES;
use super::shard::GROUP;
use super::write::flush_failed;
use super::{Cache, PAGE, Stage, page};
use parking_lot::MutexGuard;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use volary_core::Result;

/// Dirty sectors of a page, all of one stage, that are being written to the device.
struct Piece {
    stage: usize,
    page: u64,
    sectors: page::Sectors,
    data: Arc<[u8]>,
}

impl Cache {
    /// Makes durable all that was written before the call, stage by stage with flushes between: see
    /// the [module](super). Sends nothing to the device if nothing was written since the last
    /// flush.
    ///
    /// # Errors
    /// `Io`: what was not written stays dirty. After a failed flush, this error is permanent.
    pub fn commit(&self) -> Result<()> {
        let result = {
            let _writing = self.writing.lock();
            self.check_failed()?;
            let pieces = self.picture(0..STAGES, usize::MAX);
            self.write_pieces(&pieces, true)
                .and_then(|()| self.flush_device())
        };
        self.trim();
        result
    }

    /// Writes the dirty sectors of `stage`, without a flush. The caller must ensure that earlier
    /// stages are durable.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub fn write_stage(&self, stage: Stage) -> Result<()> {
        let result = {
            let _writing = self.writing.lock();
            self.check_failed()?;
            let stage = stage.index();
            let pieces = self.picture(stage..stage + 1, usize::MAX);
            self.write_pieces(&pieces, false)
        };
        self.trim();
        result
    }

    /// Makes durable what has reached the device. Dirty sectors in the cache have not.
    ///
    /// # Errors
    /// `Io`, and permanently so.
    pub fn flush(&self) -> Result<()> {
        let _writing = self.writing.lock();
        self.check_failed()?;
        self.unflushed.store(true, Ordering::Release);
        self.flush_device()
    }

    /// Flushes as [`flush`](Self::flush) does, but only if something was written to the device
    /// since the last flush.
    ///
    /// # Errors
    /// As [`flush`](Self::flush).
    pub fn flush_written(&self) -> Result<()> {
        let _writing = self.writing.lock();
        self.check_failed()?;
        self.flush_device()
    }

    /// Writes back about `most` pages of stage 0. Returns how many.
    ///
    /// # Errors
    /// As [`commit`](Self::commit).
    pub(super) fn write_back(&self, most: usize) -> Result<usize> {
        let writing = self.writing.lock();
        self.write_back_under(&writing, most)
    }

    pub(super) fn write_back_under(
        &self,
        _writing: &MutexGuard<'_, ()>,
        most: usize,
    ) -> Result<usize> {
        self.check_failed()?;
        let pieces = self.picture(0..1, most);
        self.write_pieces(&pieces, false)?;
        Ok(pieces.len())
    }

    pub(super) fn check_failed(&self) -> Result<()> {
        self.failed
            .get()
            .map_or(Ok(()), |cause| Err(flush_failed(cause)))
    }

    /// Flushes the device if it has taken writes since the last time. The caller holds `writing`,
    /// because otherwise a second flush could return before the first one.
    fn flush_device(&self) -> Result<()> {
        if !self.unflushed.swap(false, Ordering::AcqRel) {
            return Ok(());
        }
        self.dev.flush().inspect_err(|e| {
            let cause = e
                .as_io()
                .map_or_else(|| e.to_string(), |io| io.cause.clone());
            let _ = self.failed.set(cause);
        })
    }

    /// Takes a snapshot of the dirty sectors of these stages, ordered by stage and offset, and
    /// marks them as in flight. All shards are locked, so the snapshot is of one moment: it
    /// contains a write only with all earlier writes. It ends after about `most` pages, and the
    /// next one continues there.
    fn picture(&self, stages: std::ops::Range<usize>, most: usize) -> Vec<Piece> {
        let _gate = self.gate.write();
        let mut shards: Vec<_> = self.shards.iter().map(|p| p.shard.lock()).collect();
        let lists = shards.iter_mut().enumerate();
        let mut groups: Vec<(u64, usize)> = lists
            .flat_map(|(i, s)| s.dirty_groups().into_iter().map(move |g| (g, i)))
            .collect();
        groups.sort_unstable();
        if most < usize::MAX {
            let sweep = self.sweep.load(Ordering::Relaxed);
            let at = groups.partition_point(|g| g.0 < sweep);
            groups.rotate_left(at);
        }
        let mut pieces = Vec::new();
        for (group, at) in groups {
            if pieces.len() >= most {
                self.sweep.store(group, Ordering::Relaxed);
                break;
            }
            let shard = &mut shards[at];
            let places = shard.group(group).map(|g| g.dirty_places());
            for page in places.into_iter().flatten().map(|p| group * GROUP + p) {
                shard.change(&self.totals, page, |p| {
                    pieces.extend(stages.clone().filter_map(|stage| {
                        let sectors = p.launch(stage);
                        let data = || Arc::clone(p.data());
                        (sectors != 0).then(|| Piece {
                            stage,
                            page,
                            sectors,
                            data: data(),
                        })
                    }));
                });
            }
        }
        pieces.sort_unstable_by_key(|p| (p.stage, p.page));
        pieces
    }

    /// Writes pieces, stage by stage. If `ordered`, flushes before each stage after 0. After an
    /// error, unwritten pieces are as dirty as before.
    fn write_pieces(&self, pieces: &[Piece], ordered: bool) -> Result<()> {
        let mut rest = pieces;
        while let Some(stage) = rest.first().map(|p| p.stage) {
            let (now, later) = rest.split_at(rest.partition_point(|p| p.stage == stage));
            let before = match ordered && stage > 0 {
                true => self.flush_device(),
                false => Ok(()),
            };
            let (written, result) = match before {
                Ok(()) => self.write_runs(now),
                Err(e) => (0, Err(e)),
            };
            self.disk_after(&now[..written], true);
            if result.is_err() {
                self.disk_after(&now[written..], false);
                self.disk_after(later, false);
                return result;
            }
            rest = later;
        }
        Ok(())
    }

    /// Writes pieces of one stage, with adjacent sectors in one request. Returns how many pieces,
    /// from the first on, have been written completely.
    fn write_runs(&self, pieces: &[Piece]) -> (usize, Result<()>) {
        let mut run = Run::default();
        for (i, piece) in pieces.iter().enumerate() {
            for (at, len) in page::stretches(piece.sectors) {
                let offset = piece.page * PAGE as u64 + at as u64;
                let len = (self.size - offset).min(len as u64) as usize;
                if !run.takes(offset, len, self.io_size()) {
                    if let Err(e) = self.write_run(&run) {
                        return (run.first, Err(e));
                    }
                    run = Run {
                        offset,
                        first: i,
                        ..Run::default()
                    };
                }
                run.parts.push(&piece.data[at..at + len]);
                run.len += len;
            }
        }
        match self.write_run(&run) {
            Ok(()) => (pieces.len(), Ok(())),
            Err(e) => (run.first, Err(e)),
        }
    }

    fn write_run(&self, run: &Run<'_>) -> Result<()> {
        let result = match run.parts[..] {
            [] => return Ok(()),
            [part] => self.dev.write_at(run.offset, part),
            _ => self.dev.write_gather(run.offset, &run.parts),
        };
        self.unflushed.store(true, Ordering::Release);
        result
    }

    /// Notes whether pieces in flight have arrived on the device.
    fn disk_after(&self, pieces: &[Piece], arrived: bool) {
        for piece in pieces {
            let part = self.part(piece.page);
            part.shard
                .lock()
                .change(&self.totals, piece.page, |p| match arrived {
                    true => p.arrived(piece.sectors),
                    false => p.failed(piece.sectors, piece.stage),
                });
            part.moved.notify_all();
        }
    }
}

/// Adjacent sectors, gathered for one request.
#[derive(Default)]
struct Run<'a> {
    offset: u64,
    len: usize,
    parts: Vec<&'a [u8]>,
    /// The index of its first piece.
    first: usize,
}

impl Run<'_> {
    /// Returns whether these sectors can join it.
    fn takes(&self, offset: u64, len: usize, most: usize) -> bool {
        self.offset + self.len as u64 == offset && self.len + len <= most && self.len > 0
    }
}
