//! Files: reading, writing, cutting and growing.
//!
//! A write takes the clusters inside of the epoch, puts the data into the
//! cache outside of it, and sets the size inside again: a commit in between
//! finds a chain that is longer than the size, and no more.

use crate::attached::commit::Commits;
use crate::attached::node::{Body, Node};
use crate::base::epoch::Stop;
use crate::base::store::{Store, short_chain};
use crate::table::reserve::Grower;
use crate::table::runs::Runs;
use crate::volume::ondisk::attr;
use std::sync::Arc;
use volary_block::{SECTOR, Stage};
use volary_core::{Ctx, Extent, FileKind, Kind, Result};

/// Largest file: its length is kept in 32 bits.
pub(crate) const SIZE_MAX: u64 = u32::MAX as u64;

/// Zeros that are written at a time.
const ZEROS: usize = 64 << 10;

/// A file, or anything but a directory, that is worked on.
pub(crate) struct File<'a> {
    commits: &'a Commits,
    store: &'a Store,
    node: &'a Arc<Node>,
}

impl<'a> File<'a> {
    /// Returns the file of a node.
    pub(crate) fn new(commits: &'a Commits, node: &'a Arc<Node>) -> Self {
        Self {
            commits,
            store: commits.store(),
            node,
        }
    }

    /// Reads from a file that may have changed its size meanwhile.
    ///
    /// # Errors
    /// `IsDir`, `Io`, `Corrupt`.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) -> Result<usize> {
        loop {
            let body = self.node.body.read();
            let Body::File(runs) = &*body else {
                return Err(Kind::IsDir.into());
            };
            let size = u64::from(self.node.meta.lock().size);
            let len = (buf.len() as u64).min(size.saturating_sub(offset));
            if len == 0 {
                return Ok(0);
            }
            let need = self.store.clusters_for(offset + len);
            if runs.clusters() < need {
                if runs.is_whole() {
                    return Err(short_chain(size));
                }
                drop(body);
                self.node
                    .body
                    .write()
                    .file_mut()?
                    .load(&self.store.table, need)?;
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
            let (place, len) = self.store.stretch(runs, offset + done as u64)?;
            let len = (buf.len() - done).min(usize::try_from(len).unwrap_or(usize::MAX));
            let part = buf.get_mut(done..done + len).unwrap_or_default();
            self.store.cache.read_once(place, part)?;
            done += len;
        }
        Ok(())
    }

    /// Writes to a file, at its end without an offset, and gives the offset
    /// after the data.
    ///
    /// # Errors
    /// `IsDir`, `TooBig`, `NoSpace`, `Io`, `Corrupt`.
    pub(crate) fn write(&self, cx: &Ctx<'_>, offset: Option<u64>, data: &[u8]) -> Result<u64> {
        let node = self.node;
        self.store.writable()?;
        let mut body = node.body.write();
        let runs = body.file_mut()?;
        let size = u64::from(node.meta.lock().size);
        let offset = offset.unwrap_or(size);
        let end = offset.checked_add(data.len() as u64);
        let end = end.filter(|&e| e <= SIZE_MAX).ok_or(Kind::TooBig)?;
        if data.is_empty() {
            return Ok(end);
        }
        let fresh = self.reserve(cx, runs, size, end)?;
        let written = self
            .fill(cx, runs, size, offset, fresh)
            .and_then(|()| self.write_runs(runs, offset, data, fresh));
        if let Err(e) = written {
            self.drop_spare(runs, size)?;
            return Err(e);
        }
        self.commits.change(|_| {
            let mut meta = node.meta.lock();
            meta.size = meta.size.max(end as u32);
            meta.mtime = cx.now;
            meta.entry.DIR_Attr |= attr::ARCHIVE;
            self.commits.changed(node, &mut meta, cx.now);
            Ok(())
        })?;
        Ok(end)
    }

    /// Sees to it that a file of `size` bytes has clusters up to `end`. Gives
    /// the offset from which on the clusters are new, so that nothing of what
    /// is on the device there counts.
    fn reserve(&self, cx: &Ctx<'_>, runs: &mut Runs, size: u64, end: u64) -> Result<u64> {
        let node = self.node;
        let need = self.store.clusters_for(end);
        let have = self.store.clusters_for(size);
        if need > have {
            runs.load_all(&self.store.table)?;
        } else {
            runs.load(&self.store.table, need)?;
        }
        if runs.clusters() < have.min(need) {
            return Err(short_chain(size));
        }
        let fresh = u64::from(have) * u64::from(self.store.layout.cluster_len);
        let Some(more) = need.checked_sub(runs.clusters()).filter(|&m| m > 0) else {
            return Ok(fresh);
        };
        let last = runs.last();
        let grower = node.is_open().then(|| Grower {
            owner: node.id.ino.get(),
            clusters: runs.clusters(),
            now: cx.now.secs,
        });
        let new = self.commits.change(|_| {
            if last.is_some_and(|l| self.store.is_cut(l)) {
                // Behind it, the chain on the disk still leads to clusters
                // that were cut off.
                return Err(Stop::Commit);
            }
            let new = self
                .store
                .or_commit(self.store.table.allocate_for(grower, more, last))?;
            match last {
                Some(last) => {
                    if let Err(e) = self.store.table.set_next(last, new.first()) {
                        self.store.free_later(new.as_slice(), None);
                        return Err(e.into());
                    }
                }
                None => {
                    let mut meta = node.meta.lock();
                    let first = new.first().unwrap_or(0);
                    let fat32 = self.store.layout.is_fat32();
                    meta.entry.set_first_cluster(first, fat32);
                    let now = meta.ctime;
                    self.commits.changed(node, &mut meta, now);
                }
            }
            Ok(new)
        })?;
        runs.append(new);
        if !node.is_open() {
            self.store.table.give_up(node.id.ino.get());
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
            let (place, len) = self.store.stretch(runs, at)?;
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
                self.store.write_data(place, part)?;
                continue;
            }
            self.store
                .write_data(place, part.get(..whole).unwrap_or_default())?;
            let mut sector = [0; SECTOR];
            for (to, from) in sector.iter_mut().zip(part.iter().skip(whole)) {
                *to = *from;
            }
            self.store.write_data(place + whole as u64, &sector)?;
        }
        Ok(())
    }

    /// Gives back the clusters past the end of a file, after a write that
    /// failed.
    fn drop_spare(&self, runs: &mut Runs, size: u64) -> Result<()> {
        if !runs.is_whole() || runs.clusters() <= self.store.clusters_for(size) {
            return Ok(());
        }
        self.cut(runs, size)
    }

    /// Cuts the chain of a file to what `size` bytes need.
    fn cut(&self, runs: &mut Runs, size: u64) -> Result<()> {
        let node = self.node;
        let keep = self.store.clusters_for(size);
        self.store.table.give_up(node.id.ino.get());
        self.commits.change(|_| {
            let mut meta = node.meta.lock();
            let cut = runs.cut(keep);
            if keep == 0 {
                meta.entry
                    .set_first_cluster(0, self.store.layout.is_fat32());
            }
            self.store
                .give_back(&cut, runs.last().filter(|_| !cut.is_empty()));
            let now = meta.ctime;
            self.commits.changed(node, &mut meta, now);
            Ok(())
        })
    }

    /// Sets the length of a file: what is past it is cut off, what is new
    /// reads as zeros.
    ///
    /// # Errors
    /// `IsDir`; `Invalid` for what is neither file nor directory; `TooBig`,
    /// `NoSpace`, `Io`, `Corrupt`.
    pub(crate) fn set_size(&self, cx: &Ctx<'_>, size: u64) -> Result<()> {
        let node = self.node;
        match node.kind {
            FileKind::File => {}
            FileKind::Dir => return Err(Kind::IsDir.into()),
            _ => return Err(Kind::Invalid.into()),
        }
        if size > SIZE_MAX {
            return Err(Kind::TooBig.into());
        }
        let mut body = node.body.write();
        let runs = body.file_mut()?;
        let old = u64::from(node.meta.lock().size);
        if size > old {
            let fresh = self.reserve(cx, runs, old, size)?;
            if let Err(e) = self.fill(cx, runs, old, size, fresh) {
                self.drop_spare(runs, old)?;
                return Err(e);
            }
        } else if size < old {
            runs.load_all(&self.store.table)?;
        }
        self.commits.change(|_| {
            let mut meta = node.meta.lock();
            meta.size = size as u32;
            meta.mtime = cx.now;
            meta.entry.DIR_Attr |= attr::ARCHIVE;
            self.commits.changed(node, &mut meta, cx.now);
            Ok(())
        })?;
        if size < old {
            self.cut(runs, size)?;
        }
        Ok(())
    }

    /// Returns what a symlink holds.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn read_target(&self) -> Result<Vec<u8>> {
        let size = self.node.meta.lock().size as usize;
        if size > 1 << 16 {
            return Err(Kind::Corrupt.into());
        }
        let mut target = vec![0; size];
        let got = self.read(0, &mut target)?;
        target.truncate(got);
        Ok(target)
    }

    /// Where the bytes of a range lie. What was written is on the device when
    /// this returns.
    ///
    /// # Errors
    /// `IsDir`, `Io`, `Corrupt`.
    pub(crate) fn extents(&self, offset: u64, len: u64, out: &mut Vec<Extent>) -> Result<()> {
        let node = self.node;
        let mut body = node.body.write();
        let runs = body.file_mut()?;
        self.store.cache.write_stage(Stage::DATA)?;
        let size = u64::from(node.meta.lock().size);
        let bytes = offset..offset.saturating_add(len);
        self.store.extents(runs, size, bytes, out)
    }

    /// Gives the clusters of a file or directory without a name back. `body` is its own, locked.
    ///
    /// # Errors
    /// `Io`, `Corrupt`.
    pub(crate) fn free(&self, body: &mut Body) -> Result<()> {
        let runs = body.runs_mut();
        runs.load_all(&self.store.table)?;
        self.commits.change(|_| {
            self.store.give_back(runs.as_slice(), None);
            Ok(())
        })?;
        *runs = Runs::default();
        Ok(())
    }
}

/// Takes clusters for a content that nothing leads to yet, and writes it.
///
/// # Errors
/// `NoSpace`, `Io`; nothing is taken then.
pub(crate) fn put_new(commits: &Commits, content: &[u8]) -> Result<Runs> {
    if content.is_empty() {
        return Ok(Runs::default());
    }
    let store = commits.store();
    let cluster = store.layout.cluster_len as usize;
    let count = content.len().div_ceil(cluster);
    let runs = commits.change(|_| store.take_clusters(count as u32, None))?;
    let written = write_new(store, &runs, content);
    if let Err(e) = written {
        store.give_back(runs.as_slice(), None);
        return Err(e);
    }
    Ok(runs)
}

fn write_new(store: &Store, runs: &Runs, content: &[u8]) -> Result<()> {
    let cluster = store.layout.cluster_len as usize;
    for (i, part) in content.chunks(cluster).enumerate() {
        let (first, _) = runs.find(i as u32).ok_or(Kind::Corrupt)?;
        let mut whole = vec![0; cluster];
        for (to, from) in whole.iter_mut().zip(part) {
            *to = *from;
        }
        let place = store.layout.cluster_offset(first);
        store.cache.write(place, &whole, Stage::DATA)?;
    }
    Ok(())
}
