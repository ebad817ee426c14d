//! The content of files: room, reading, writing, cutting.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::sealing::Sealing;
use crate::change::versions::Versions;
use crate::disk::leader::Leader;
use crate::disk::runs::{Run, Runs};
use crate::name_table::entry::Head;
use crate::space::vam::Want;
use volary_block::Stage;
use volary_core::{Error, Extent, Finding, Kind, Place, Result, Severity};

/// Zeros that are written at a time, in bytes.
const ZEROS: usize = 64 << 10;

/// The content of files.
pub(crate) struct File<'a> {
    pub(crate) files: &'a mut Files,
}

impl<'a> File<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Gives a file room for `size` bytes at least. New pages are not written. If it
    /// `grows` while it is open, more is reserved behind them.
    ///
    /// # Errors
    /// `NoSpace`, for that past the end of its last page too.
    fn grow(&mut self, head: &mut Head, runs: &mut Runs, size: u64, grows: bool) -> Result<()> {
        let (total, have) = (self.files.core.layout.pages_for(size), runs.pages());
        if size > head.size
            && let Some(page) = self.page_past(runs, head.size)
        {
            self.files.core.batch.check_rest(page)?;
        }
        if total <= have {
            return Ok(());
        }
        let want = Want {
            len: total - have,
            near: runs.0.last().map(|r| r.start + r.len),
            total,
            grows: Some(head.uid).filter(|uid| grows && self.files.is_open(*uid)),
        };
        let old = runs.leader();
        for run in self.files.core.take(&want)? {
            runs.push(run);
        }
        Nodes::of(self.files).set_runs(head, old, runs)
    }

    /// Returns the page that a file's last bytes share with what is past its end.
    fn page_past(&self, runs: &Runs, size: u64) -> Option<u32> {
        let page = u64::from(self.files.core.layout.page);
        let at = u32::try_from(size / page + 1).ok()?;
        let run = runs.find(at).filter(|_| !size.is_multiple_of(page))?;
        Some(run.start)
    }

    /// Changes the size of a file: what is past it goes, what is new is zeros.
    /// The head is to be kept after.
    ///
    /// # Errors
    /// `IsDir`, `Invalid`; `TooBig`, `NoSpace`.
    pub(crate) fn resize(&mut self, head: &mut Head, size: u64) -> Result<()> {
        head.check_file()?;
        if size > self.files.core.layout.size_max() {
            return Err(Kind::TooBig.into());
        }
        let mut runs = Nodes::of(self.files).runs(head)?;
        if size == 0 && head.size > 0 && Versions::of(self.files).put_by(head)? {
            return Ok(());
        }
        if size != head.size {
            Sealing::of(self.files).note_size(head, size)?;
        }
        if size < head.size {
            let old = runs.leader();
            let gone = runs.cut(self.files.core.layout.pages_for(size));
            // What is kept for it is not behind its end any more.
            self.files.core.map.give_back_kept(head.uid);
            if !gone.is_empty() {
                self.files.core.txn.free(gone);
                Nodes::of(self.files).set_runs(head, old, &runs)?;
            }
            if let Some(page) = self.page_past(&runs, size) {
                self.files.core.txn.free_rest(page);
            }
        } else if size > head.size {
            self.grow(head, &mut runs, size, false)?;
            self.zero(&runs, head.size, self.room_end(&runs))?;
        }
        head.size = size;
        Ok(())
    }

    /// Returns bytes that the pages of a file can hold.
    fn room_end(&self, runs: &Runs) -> u64 {
        u64::from(runs.pages().saturating_sub(1)) * u64::from(self.files.core.layout.page)
    }

    fn zero(&mut self, runs: &Runs, from: u64, to: u64) -> Result<()> {
        let zeros = vec![0; ZEROS.min(usize::try_from(to.saturating_sub(from)).unwrap_or(ZEROS))];
        for (offset, len) in self
            .files
            .core
            .layout
            .stretches(runs, from, to.saturating_sub(from))
        {
            let mut done = 0;
            while done < len {
                let n = (len - done).min(ZEROS as u64);
                let part = zeros.get(..n as usize).unwrap_or_default();
                self.put_data(offset + done, part)?;
                done += n;
            }
        }
        Ok(())
    }

    /// Puts data where it belongs; on the device at once if it is long.
    fn put_data(&mut self, offset: u64, data: &[u8]) -> Result<()> {
        match data.len() >= self.files.core.cache.direct_from() {
            true => self.files.core.cache.write_direct(offset, data),
            false => self.files.core.cache.write(offset, data, Stage::DATA),
        }
    }

    /// Makes room for `len` bytes at `offset`, with zeros in front of them. Returns the
    /// runs. Changes no byte of the file. The caller stores the head afterwards.
    ///
    /// # Errors
    /// `TooBig`, `NoSpace`.
    pub(crate) fn make_room(&mut self, head: &mut Head, offset: u64, len: u64) -> Result<Runs> {
        let end = offset.checked_add(len).ok_or(Kind::TooBig)?;
        if end > self.files.core.layout.size_max() {
            return Err(Kind::TooBig.into());
        }
        let mut runs = Nodes::of(self.files).runs(head)?;
        let had = self.room_end(&runs);
        self.grow(head, &mut runs, end.max(head.size), true)?;
        if offset > head.size {
            self.zero(&runs, head.size, offset)?;
        }
        let room = self.room_end(&runs);
        if room > had && end < room {
            self.zero(&runs, end.max(had), room)?;
        }
        head.size = head.size.max(end);
        Ok(runs)
    }

    /// Writes at `offset`, where there is room. What can fail for want of room
    /// comes before: this changes bytes in place.
    ///
    /// # Errors
    /// `Io`, `NoSpace` of the device.
    pub(crate) fn fill(&mut self, runs: &Runs, offset: u64, data: &[u8]) -> Result<()> {
        let mut rest = data;
        for (at, len) in self
            .files
            .core
            .layout
            .stretches(runs, offset, data.len() as u64)
        {
            let (now, later) = rest.split_at((len as usize).min(rest.len()));
            self.put_data(at, now)?;
            rest = later;
        }
        Ok(())
    }

    /// Reads; gives how many bytes.
    ///
    /// # Errors
    /// `Corrupt`, for data that its checksum says is another too; `Io`.
    pub(crate) fn read(
        &mut self,
        head: &Head,
        offset: u64,
        buf: &mut [u8],
        first: bool,
    ) -> Result<usize> {
        let len = head.size.saturating_sub(offset).min(buf.len() as u64);
        if len == 0 {
            return Ok(0);
        }
        if head.is_away() {
            return Err(Error::note(
                Kind::Io,
                "a file of the remote that is not here",
            ));
        }
        let runs = Nodes::of(self.files).runs(head)?;
        if first && offset == 0 {
            self.check_leader(head.uid, &runs, len)?;
        }
        let mut done = 0;
        for (at, n) in self.files.core.layout.stretches(&runs, offset, len) {
            let to = buf.get_mut(done..done + n as usize).ok_or(Kind::Corrupt)?;
            self.files.core.cache.read_once(at, to)?;
            done += n as usize;
        }
        if done as u64 != len {
            return Err(self.short(head.uid));
        }
        let data = buf.get(..done).unwrap_or_default();
        Sealing::of(self.files).hold_to_sums(head, &runs, offset, data)?;
        Ok(done)
    }

    fn short(&self, uid: u64) -> Error {
        let at = self
            .files
            .core
            .layout
            .offset(self.files.core.layout.table_a);
        Error::corrupt(
            "runs",
            at,
            format!("too few pages for file {uid:#x}"),
            "as many as its size needs",
        )
    }

    /// Reads a file's leader and first `len` bytes in one request. Files that are
    /// read in the order in which they lie are read ahead of: twice as much with
    /// each request, up to the longest.
    fn read_ahead(&mut self, page: u32, len: u64) {
        if len >= self.files.core.cache.io_size() as u64 {
            return;
        }
        let end = page.saturating_add(self.files.core.layout.pages_for(len));
        let most = (self.files.core.cache.io_size() as u32 / self.files.core.layout.page).max(1);
        let Some(pages) = self.files.ahead.pages(page..end, most) else {
            return;
        };
        let bytes = u64::from(pages) * u64::from(self.files.core.layout.page);
        self.files
            .core
            .cache
            .prefetch(self.files.core.layout.offset(page), bytes);
    }

    /// Reports that the leader of a file, in `page`, disagrees with the name table:
    /// once for each file and attachment.
    fn leader_differs(&mut self, uid: u64, page: u32, mended: bool) {
        if !self.files.found.tells(uid) {
            return;
        }
        let repair = match mended {
            true => "it is written anew",
            false => "fsck -y writes it anew",
        };
        let finding = Finding {
            code: "leader",
            severity: Severity::Damage,
            path: Nodes::of(self.files).path_of(uid),
            offset: Some(self.files.core.layout.offset(page)),
            message: crate::disk::leader::DIFFERS.into(),
            repair: repair.into(),
        };
        self.files.found.untold.add(finding);
    }

    /// Holds the leader to the name table, with the first access to a file's
    /// first page; both are read in one request.
    fn check_leader(&mut self, uid: u64, runs: &Runs, len: u64) -> Result<()> {
        let Some(page) = runs.leader() else {
            return Ok(());
        };
        self.read_ahead(page, len);
        let found = match self.files.core.leader(page) {
            Ok(found) => found,
            Err(e) if e == Kind::Io => None,
            Err(e) => return Err(e),
        };
        if found == Some(Leader::of(uid, runs, &self.files.core.layout)) {
            return Ok(());
        }
        if let Some(other) = found.filter(|l| l.uid != uid) {
            let owns = Nodes::of(self.files)
                .runs_of_uid(other.uid)
                .is_ok_and(|r| r.leader() == Some(page));
            if owns {
                let at = self.files.core.layout.offset(page);
                return Err(Error::corrupt(
                    "leader",
                    at,
                    format!("of file {:#x}", other.uid),
                    format!("of file {uid:#x}"),
                ));
            }
        }
        let mended = self.files.core.mend_leader(uid, runs);
        self.leader_differs(uid, page, mended);
        Ok(())
    }

    /// Where the bytes of a range lie.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn extents(
        &mut self,
        head: &Head,
        offset: u64,
        len: u64,
        out: &mut Vec<Extent>,
    ) -> Result<()> {
        let len = head.size.saturating_sub(offset).min(len);
        let runs = Nodes::of(self.files).runs(head)?;
        self.files.core.cache.write_stage(Stage::DATA)?;
        let mut at = offset;
        for (start, n) in self.files.core.layout.stretches(&runs, offset, len) {
            out.push(Extent {
                offset: at,
                len: n,
                place: Place::Device(start),
            });
            at += n;
        }
        Ok(())
    }

    /// Puts leaders that go with a file's first data into the cache, and writes what is
    /// there: the paper's one request for leader and data. A leader that changes again
    /// as its file grows is written with the commit, which is the first to lead to it.
    ///
    /// # Errors
    /// `Io`, `NoSpace`.
    pub(crate) fn write_through(&mut self) -> Result<()> {
        if !self.files.core.through {
            return Ok(());
        }
        let core = &mut self.files.core;
        let (epoch, seq) = (core.log.epoch(), core.log.seq());
        while let Some((page, leader)) = core.batch.unsent() {
            let image = leader.encode(&core.layout, page, epoch, seq);
            let at = core.layout.offset(page);
            core.cache.write(at, &image, Stage::DATA)?;
            core.batch.sent(page);
        }
        core.cache.write_stage(Stage::DATA)
    }
}

/// Pages of runs, for those who count.
pub(crate) fn pages_of(runs: &[Run]) -> u64 {
    runs.iter().map(|r| u64::from(r.len)).sum()
}
