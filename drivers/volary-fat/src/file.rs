//! Files: reading, writing, cutting and growing.
//!
//! A write takes the clusters inside of the epoch, puts the data into the
//! cache outside of it, and sets the size inside again: a commit in between
//! finds a chain that is longer than the size, and no more.

use crate::attached::{Attached, runs_of_mut};
use crate::commit::Stop;
use crate::node::{Body, Node};
use crate::ondisk::{DirEntry, attr};
use crate::reserve::Grower;
use crate::runs::Runs;
use crate::twofold::Of;
use std::sync::Arc;
use volary_block::{SECTOR, Stage};
use volary_core::{Ctx, Error, Extent, FileKind, Kind, Place, Result};

/// Largest file: its length is kept in 32 bits.
pub(crate) const SIZE_MAX: u64 = u32::MAX as u64;

/// Zeros that are written at a time.
const ZEROS: usize = 64 << 10;

impl Attached {
    /// How many clusters a length takes.
    pub(crate) fn clusters_for(&self, len: u64) -> u32 {
        // At most 2^32 / 512.
        len.div_ceil(u64::from(self.layout.cluster_len)) as u32
    }

    /// Reads from a file that may have changed its size meanwhile.
    ///
    /// # Errors
    /// `IsDir`, `Io`, `Corrupt`.
    pub(crate) fn read_node(&self, node: &Node, offset: u64, buf: &mut [u8]) -> Result<usize> {
        loop {
            let body = node.body.read();
            let Body::File(runs) = &*body else {
                return Err(Kind::IsDir.into());
            };
            let size = u64::from(node.meta.lock().size);
            let len = (buf.len() as u64).min(size.saturating_sub(offset));
            if len == 0 {
                return Ok(0);
            }
            let need = self.clusters_for(offset + len);
            if runs.clusters() < need {
                if runs.is_whole() {
                    return Err(short_chain(size));
                }
                drop(body);
                runs_of_mut(&mut node.body.write())?.load(&self.table, need)?;
                continue;
            }
            let part = buf.get_mut(..len as usize).unwrap_or_default();
            self.read_runs(runs, offset, part)?;
            return Ok(len as usize);
        }
    }

    fn read_runs(&self, runs: &Runs, offset: u64, buf: &mut [u8]) -> Result<()> {
        let mut done = 0;
        while done < buf.len() {
            let (place, len) = self.stretch(runs, offset + done as u64)?;
            let len = (buf.len() - done).min(usize::try_from(len).unwrap_or(usize::MAX));
            let part = buf.get_mut(done..done + len).unwrap_or_default();
            self.cache.read_once(place, part)?;
            done += len;
        }
        Ok(())
    }

    /// Where a byte of a file lies on the device, and how many follow there.
    fn stretch(&self, runs: &Runs, offset: u64) -> Result<(u64, u64)> {
        let cluster_len = u64::from(self.layout.cluster_len);
        let index = (offset / cluster_len) as u32;
        let (first, count) = runs.find(index).ok_or(Kind::Corrupt)?;
        let skip = offset % cluster_len;
        let place = self.layout.cluster_offset(first) + skip;
        Ok((place, u64::from(count) * cluster_len - skip))
    }

    /// Writes to a file, at its end without an offset, and gives the offset
    /// after the data.
    ///
    /// # Errors
    /// `IsDir`, `TooBig`, `NoSpace`, `Io`, `Corrupt`.
    pub(crate) fn write_node(
        &self,
        cx: &Ctx<'_>,
        node: &Arc<Node>,
        offset: Option<u64>,
        data: &[u8],
    ) -> Result<u64> {
        self.writable()?;
        let mut body = node.body.write();
        let runs = runs_of_mut(&mut body)?;
        let size = u64::from(node.meta.lock().size);
        let offset = offset.unwrap_or(size);
        let end = offset.checked_add(data.len() as u64);
        let end = end.filter(|&e| e <= SIZE_MAX).ok_or(Kind::TooBig)?;
        if data.is_empty() {
            return Ok(end);
        }
        let fresh = self.reserve(cx, node, runs, size, end)?;
        let written = self
            .fill(cx, runs, size, offset, fresh)
            .and_then(|()| self.write_runs(runs, offset, data, fresh));
        if let Err(e) = written {
            self.drop_spare(node, runs, size)?;
            return Err(e);
        }
        self.change(|_| {
            let mut meta = node.meta.lock();
            meta.size = meta.size.max(end as u32);
            meta.mtime = cx.now;
            meta.entry.DIR_Attr |= attr::ARCHIVE;
            self.changed(node, &mut meta, cx.now);
            Ok(())
        })?;
        Ok(end)
    }

    /// Sees to it that a file of `size` bytes has clusters up to `end`. Gives
    /// the offset from which on the clusters are new, so that nothing of what
    /// is on the device there counts.
    fn reserve(
        &self,
        cx: &Ctx<'_>,
        node: &Arc<Node>,
        runs: &mut Runs,
        size: u64,
        end: u64,
    ) -> Result<u64> {
        let need = self.clusters_for(end);
        let have = self.clusters_for(size);
        if need > have {
            runs.load_all(&self.table)?;
        } else {
            runs.load(&self.table, need)?;
        }
        if runs.clusters() < have.min(need) {
            return Err(short_chain(size));
        }
        let fresh = u64::from(have) * u64::from(self.layout.cluster_len);
        let Some(more) = need.checked_sub(runs.clusters()).filter(|&m| m > 0) else {
            return Ok(fresh);
        };
        let last = runs.last();
        let grower = node.is_open().then(|| Grower {
            owner: node.id.ino.get(),
            clusters: runs.clusters(),
            now: cx.now.secs,
        });
        let new = self.change(|_| {
            if last.is_some_and(|l| self.order.is_cut(l)) {
                // Behind it, the chain on the disk still leads to clusters
                // that were cut off.
                return Err(Stop::Commit);
            }
            let new = self.or_commit(self.table.allocate_for(grower, more, last))?;
            match last {
                Some(last) => {
                    if let Err(e) = self.table.set_next(last, new.first()) {
                        self.order.give_back(new.as_slice(), None);
                        return Err(e.into());
                    }
                }
                None => {
                    let mut meta = node.meta.lock();
                    let first = new.first().unwrap_or(0);
                    let fat32 = self.layout.is_fat32();
                    meta.entry.set_first_cluster(first, fat32);
                    let now = meta.ctime;
                    self.changed(node, &mut meta, now);
                }
            }
            Ok(new)
        })?;
        runs.append(new);
        if !node.is_open() {
            self.table.give_up(node.id.ino.get());
        }
        Ok(fresh)
    }

    /// Writes zeros from the end of a file to `offset`: FAT has no holes.
    fn fill(&self, cx: &Ctx<'_>, runs: &Runs, size: u64, offset: u64, fresh: u64) -> Result<()> {
        let mut at = size;
        let zeros = vec![0; ZEROS.min(usize::try_from(offset.saturating_sub(at)).unwrap_or(ZEROS))];
        while at < offset {
            cx.check_cancel()?;
            let len = (offset - at).min(ZEROS as u64);
            let part = zeros.get(..len as usize).unwrap_or_default();
            self.write_runs(runs, at, part, fresh)?;
            at += len;
        }
        Ok(())
    }

    /// Writes data. From `fresh` on, whole sectors are written, so that the
    /// cache need not read what has no meaning.
    fn write_runs(&self, runs: &Runs, offset: u64, data: &[u8], fresh: u64) -> Result<()> {
        let mut done = 0;
        while done < data.len() {
            let at = offset + done as u64;
            let (place, len) = self.stretch(runs, at)?;
            let len = (data.len() - done).min(usize::try_from(len).unwrap_or(usize::MAX));
            let part = data.get(done..done + len).unwrap_or_default();
            done += len;
            let tail = part.len() % SECTOR;
            let whole = part.len() - tail;
            let pads = tail > 0
                && done == data.len()
                && at + whole as u64 >= fresh
                && (place + whole as u64).is_multiple_of(SECTOR as u64);
            if !pads {
                self.write_part(place, part)?;
                continue;
            }
            self.write_part(place, part.get(..whole).unwrap_or_default())?;
            let mut sector = [0; SECTOR];
            for (to, from) in sector.iter_mut().zip(part.iter().skip(whole)) {
                *to = *from;
            }
            self.write_part(place + whole as u64, &sector)?;
        }
        Ok(())
    }

    fn write_part(&self, place: u64, part: &[u8]) -> Result<()> {
        if part.is_empty() {
            return Ok(());
        }
        if part.len() >= self.cache.direct_from() {
            self.order.wrote();
            return self.cache.write_direct(place, part);
        }
        self.cache.write(place, part, Stage::DATA)
    }

    /// Gives back the clusters past the end of a file, after a write that
    /// failed.
    fn drop_spare(&self, node: &Arc<Node>, runs: &mut Runs, size: u64) -> Result<()> {
        if !runs.is_whole() || runs.clusters() <= self.clusters_for(size) {
            return Ok(());
        }
        self.cut(node, runs, size)
    }

    /// Cuts the chain of a file to what `size` bytes need.
    fn cut(&self, node: &Arc<Node>, runs: &mut Runs, size: u64) -> Result<()> {
        let keep = self.clusters_for(size);
        self.table.give_up(node.id.ino.get());
        self.change(|_| {
            let mut meta = node.meta.lock();
            let cut = runs.cut(keep);
            if keep == 0 {
                meta.entry.set_first_cluster(0, self.layout.is_fat32());
            }
            self.give_back(&cut, runs.last().filter(|_| !cut.is_empty()));
            let now = meta.ctime;
            self.changed(node, &mut meta, now);
            Ok(())
        })
    }

    /// Sets the length of a file: what is past it is cut off, what is new
    /// reads as zeros.
    ///
    /// # Errors
    /// `IsDir`; `Invalid` for what is neither file nor directory; `TooBig`,
    /// `NoSpace`, `Io`, `Corrupt`.
    pub(crate) fn set_size(&self, cx: &Ctx<'_>, node: &Arc<Node>, size: u64) -> Result<()> {
        match node.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if size > SIZE_MAX {
            return Err(Kind::TooBig.into());
        }
        let mut body = node.body.write();
        let runs = runs_of_mut(&mut body)?;
        let old = u64::from(node.meta.lock().size);
        if size > old {
            let fresh = self.reserve(cx, node, runs, old, size)?;
            if let Err(e) = self.fill(cx, runs, old, size, fresh) {
                self.drop_spare(node, runs, old)?;
                return Err(e);
            }
        } else if size < old {
            runs.load_all(&self.table)?;
        }
        self.change(|_| {
            let mut meta = node.meta.lock();
            meta.size = size as u32;
            meta.mtime = cx.now;
            meta.entry.DIR_Attr |= attr::ARCHIVE;
            self.changed(node, &mut meta, cx.now);
            Ok(())
        })?;
        if size < old {
            self.cut(node, runs, size)?;
        }
        Ok(())
    }

    /// Where the bytes of a range lie. What was written is on the device when
    /// this returns.
    ///
    /// # Errors
    /// `IsDir`, `Io`, `Corrupt`.
    pub(crate) fn extents_of(
        &self,
        node: &Node,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let mut body = node.body.write();
        let runs = runs_of_mut(&mut body)?;
        self.cache.write_stage(Stage::DATA)?;
        let size = u64::from(node.meta.lock().size);
        self.extents_of_runs(runs, size, (offset, len), out)
    }

    /// The same of a file that is not in use, by its entry: of a volume that takes no changes.
    ///
    /// # Errors
    /// As [`extents_of`](Self::extents_of).
    pub(crate) fn extents_of_entry(
        &self,
        entry: &DirEntry,
        size: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let first = entry.first_cluster(self.layout.is_fat32());
        let mut runs = Runs::from_first(first, Of::File(self.clusters_for(size)));
        self.extents_of_runs(&mut runs, size, (0, size), out)
    }

    fn extents_of_runs(
        &self,
        runs: &mut Runs,
        size: u64,
        (offset, len): (u64, u64),
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let end = offset.saturating_add(len).min(size);
        if offset >= end {
            return Ok(());
        }
        let need = self.clusters_for(end);
        runs.load(&self.table, need)?;
        if runs.clusters() < need {
            return Err(short_chain(size));
        }
        let mut at = offset;
        while at < end {
            let (place, len) = self.stretch(runs, at)?;
            let len = len.min(end - at);
            out.push(Extent {
                offset: at,
                len,
                place: Place::Device(place),
            });
            at += len;
        }
        Ok(())
    }

    /// Gives the clusters of a file without a name back.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn free_content(&self, body: &mut Body) -> Result<()> {
        let runs = match body {
            Body::File(runs) => runs,
            Body::Dir(dir) => &mut dir.runs,
        };
        runs.load_all(&self.table)?;
        self.change(|_| {
            self.give_back(runs.as_slice(), None);
            Ok(())
        })?;
        *runs = Runs::default();
        Ok(())
    }
}

fn short_chain(size: u64) -> Error {
    Error::corrupt(
        "DIR_FileSize",
        0,
        format!("{size} bytes"),
        "no more than the file's clusters hold",
    )
}
