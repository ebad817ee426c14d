//! Checksums of what files hold, for volumes that were made with them: on what is read
//! again they tell a device that has changed data from one that has not.
//!
//! A file is *sealed* when its last open ends: the checksums are put into its parts,
//! in a change of their own. A write into bytes that they cover takes them away
//! first, and waits until that is durable: so no cut leaves new data under old
//! checksums. What is added behind them leaves them right, for they end where the file
//! ended. What a crash left unsealed is read unchecked until it is written again.

use crate::change::files::Files;
use crate::change::nodes::Nodes;
use crate::change::nodes::is_named;
use crate::disk::runs::Runs;
use crate::disk::sums::{Known, Sums};
use crate::mistakes::{Mistake, made};
use crate::name_table::entry::{Head, Part};
use std::ops::Range;
use volary_core::{Error, FileKind, Kind, Result, Time};

/// Bytes that are read at a time to be summed.
const CHUNK: u64 = 64 << 10;

/// A file's checksums: held to what is read, stored when it is sealed.
pub(crate) struct Sealing<'a> {
    pub(crate) files: &'a mut Files,
}

impl<'a> Sealing<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Returns the checksums that are stored of a file.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn sums(&mut self, head: &Head) -> Result<Option<Sums>> {
        if head.parts_of(Part::Sums) == 0 {
            return Ok(None);
        }
        let bytes = Nodes::of(self.files).parts(head, Part::Sums)?;
        let sums = Sums::decode(&bytes, self.files.core.layout.page);
        match sums.filter(|sums| sums.len() <= head.size && self.files.core.layout.has_sums) {
            Some(sums) => Ok(Some(sums)),
            None => Err(Error::corrupt(
                "checksums",
                self.files
                    .core
                    .layout
                    .offset(self.files.core.layout.table_a),
                format!("{} bytes for file {:#x}", bytes.len(), head.uid),
                format!("checksums of at most {} bytes", head.size),
            )),
        }
    }

    /// Sets the checksums that are stored, or takes them away. The head is to be kept after.
    ///
    /// # Errors
    /// `NoSpace`, `Corrupt`, `Io`.
    pub(crate) fn set_sums(&mut self, head: &mut Head, sums: Option<&Sums>) -> Result<()> {
        self.files.seals.known = None;
        let bytes = sums.map(Sums::encode).unwrap_or_default();
        Nodes::of(self.files).set_parts(head, Part::Sums, &bytes)
    }

    // ---- Reading ----

    /// Holds what was read of a file from `offset` on to its checksums.
    ///
    /// # Errors
    /// `Corrupt`, with the place on the device; `Io`.
    pub(crate) fn hold_to_sums(
        &mut self,
        head: &Head,
        runs: &Runs,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        if head.parts_of(Part::Sums) == 0 || !self.files.seals.looks {
            return Ok(());
        }
        let known = self
            .files
            .seals
            .known
            .take()
            .filter(|known| known.uid == head.uid);
        let sums = match known {
            None => self.sums(head)?,
            Some(_) => None,
        };
        let new = sums.map(|sums| Known {
            uid: head.uid,
            sums,
            last: None,
        });
        let Some(mut known) = known.or(new) else {
            return Ok(());
        };
        let held = self.hold_units(&mut known, runs, offset, data);
        self.files.seals.known = Some(known);
        held
    }

    fn hold_units(
        &mut self,
        known: &mut Known,
        runs: &Runs,
        offset: u64,
        data: &[u8],
    ) -> Result<()> {
        let (mut at, end) = (offset, offset + data.len() as u64);
        while let Some((unit, sum)) = known.sums.unit_at(at).filter(|_| at < end) {
            at = unit.end;
            let here = unit.start.checked_sub(offset);
            let here = here.map(|from| from as usize..(unit.end - offset) as usize);
            let found = match here.and_then(|range| data.get(range)) {
                Some(bytes) => crc32c::crc32c(bytes),
                None if known.last == Some(unit.start) => continue,
                None => self.sum_of(runs, &unit)?,
            };
            if found != sum {
                known.last = None;
                return Err(self.bad_data(known.uid, runs, &unit, found, sum));
            }
            known.last = Some(unit.start);
        }
        Ok(())
    }

    /// Returns the checksum of bytes of a file as they are.
    fn sum_of(&mut self, runs: &Runs, bytes: &Range<u64>) -> Result<u32> {
        let mut sum = 0;
        self.each_chunk(runs, bytes, |chunk| sum = crc32c::crc32c_append(sum, chunk))?;
        Ok(sum)
    }

    fn each_chunk(
        &mut self,
        runs: &Runs,
        bytes: &Range<u64>,
        mut act: impl FnMut(&[u8]),
    ) -> Result<()> {
        let mut chunk = vec![0; CHUNK.min(bytes.end.saturating_sub(bytes.start)) as usize];
        for (start, len) in
            self.files
                .core
                .layout
                .stretches(runs, bytes.start, bytes.end - bytes.start)
        {
            for at in (0..len).step_by(CHUNK as usize) {
                let n = CHUNK.min(len - at) as usize;
                let to = chunk.get_mut(..n).ok_or(Kind::Corrupt)?;
                self.files.core.cache.read(start + at, to)?;
                act(to);
            }
        }
        Ok(())
    }

    fn bad_data(&self, uid: u64, runs: &Runs, unit: &Range<u64>, is: u32, noted: u32) -> Error {
        let place = self.files.core.layout.stretches(runs, unit.start, 1);
        let found = format!(
            "bytes {} to {} of file {uid:#x} with checksum {:#010x}",
            unit.start,
            unit.end - 1,
            is
        );
        let at = place.first().map_or(0, |(at, _)| *at);
        Error::corrupt("data", at, found, format!("{noted:#010x}"))
    }

    /// Reads all that a file's checksums are of.
    ///
    /// # Errors
    /// As [`hold_to_sums`](Self::hold_to_sums), of the first unit that is wrong.
    pub(crate) fn check_data(&mut self, head: &Head, runs: &Runs) -> Result<()> {
        let Some(sums) = self.sums(head)? else {
            return Ok(());
        };
        let mut at = 0;
        while let Some((unit, sum)) = sums.unit_at(at) {
            let found = self.sum_of(runs, &unit)?;
            if found != sum {
                return Err(self.bad_data(head.uid, runs, &unit, found, sum));
            }
            at = unit.end;
        }
        Ok(())
    }

    // ---- Writing ----

    /// Takes the checksums of a file away before bytes from `offset` on change, and makes that
    /// durable; if they are of bytes before these only, they stay.
    ///
    /// # Errors
    /// As [`change`](Files::change).
    pub(crate) fn unseal(&mut self, uid: u64, offset: u64, now: Time) -> Result<()> {
        let (_, head) = Nodes::of(self.files).home(uid)?;
        let Some(sums) = self.sums(&head)?.filter(|sums| offset < sums.len()) else {
            return Ok(());
        };
        self.files
            .seals
            .waiting
            .entry(uid)
            .or_insert(sums)
            .keep_before(offset);
        self.files.change(now, |c| {
            let (place, mut head) = Nodes::of(c).home(uid)?;
            Sealing::of(c).set_sums(&mut head, None)?;
            Nodes::of(c).keep(&place, head)
        })?;
        match made(Mistake::UnsealedTooLate) {
            true => Ok(()),
            false => self.files.core.commit(now),
        }
    }

    /// Takes note that a file is to have `size` bytes; if that is fewer, takes its checksums
    /// away. The head is to be kept after.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `NoSpace`.
    pub(crate) fn note_size(&mut self, head: &mut Head, size: u64) -> Result<()> {
        if !self.files.core.layout.has_sums {
            return Ok(());
        }
        let sums = self.sums_or_none(head)?;
        let sums = self.files.seals.waiting.entry(head.uid).or_insert(sums);
        sums.keep_before(size);
        match size < head.size {
            true => self.set_sums(head, None),
            false => Ok(()),
        }
    }

    /// Gives the checksums of a file to an older version of it, which has its content.
    /// Both heads are to be kept after.
    ///
    /// # Errors
    /// `Corrupt`, `Io`, `NoSpace`.
    pub(crate) fn hand_sums_over(&mut self, head: &mut Head, old: &mut Head) -> Result<()> {
        if !self.files.core.layout.has_sums {
            return Ok(());
        }
        let sums = self.sums(head)?;
        self.files
            .seals
            .waiting
            .insert(head.uid, Sums::new(self.files.core.layout.page));
        self.set_sums(old, sums.as_ref())?;
        self.set_sums(head, None)
    }

    fn sums_or_none(&mut self, head: &Head) -> Result<Sums> {
        let sums = self.sums(head)?;
        Ok(sums.unwrap_or_else(|| Sums::new(self.files.core.layout.page)))
    }

    /// Takes note of bytes that were written at `offset`: those that follow the ones that are
    /// summed are summed at once, so that they need not be read for it.
    ///
    /// # Errors
    /// `Corrupt`, `Io`.
    pub(crate) fn note_write(&mut self, uid: u64, offset: u64, data: &[u8]) -> Result<()> {
        if !self.files.core.layout.has_sums {
            return Ok(());
        }
        if !self.files.seals.waiting.contains_key(&uid) {
            let (_, head) = Nodes::of(self.files).home(uid)?;
            let sums = self.sums_or_none(&head)?;
            self.files.seals.waiting.insert(uid, sums);
        }
        let most = self.files.core.layout.sums_max();
        if let Some(sums) = self.files.seals.waiting.get_mut(&uid) {
            sums.keep_before(offset);
            if sums.len() == offset {
                sums.extend(data, most);
            }
        }
        Ok(())
    }

    /// Takes note that bytes from `offset` on may have been written, but not all.
    pub(crate) fn note_failed_write(&mut self, uid: u64, offset: u64) {
        if let Some(sums) = self.files.seals.waiting.get_mut(&uid) {
            sums.keep_before(offset);
        }
    }

    /// Stores the checksums of a file that was changed; what of it is not summed is read. Where
    /// there is no room for them, or it cannot be read, it stays unsealed.
    ///
    /// # Errors
    /// As [`change`](Files::change), but for `NoSpace`.
    pub(crate) fn seal(&mut self, uid: u64, now: Time) -> Result<()> {
        let Some(sums) = self.files.seals.waiting.remove(&uid) else {
            return Ok(());
        };
        if self.files.core.writable().is_err() {
            return Ok(());
        }
        let sealed = self.sum_rest(uid, sums).and_then(|sums| {
            let Some(sums) = sums else {
                return Ok(());
            };
            self.files.change(now, |c| {
                let (place, mut head) = Nodes::of(c).home(uid)?;
                Sealing::of(c).set_sums(&mut head, Some(&sums))?;
                Nodes::of(c).keep(&place, head)
            })
        });
        match sealed {
            Err(e) if self.files.core.writable().is_err() => Err(e),
            _ => Ok(()),
        }
    }

    /// Returns the checksums of all of a file of which those of the first bytes are known; none for
    /// one that has no name any more or is empty.
    fn sum_rest(&mut self, uid: u64, mut sums: Sums) -> Result<Option<Sums>> {
        let (place, head) = Nodes::of(self.files).home(uid)?;
        if head.kind != FileKind::File || !is_named(&place) || head.size == 0 {
            return Ok(None);
        }
        let (runs, most) = (
            Nodes::of(self.files).runs(&head)?,
            self.files.core.layout.sums_max(),
        );
        sums.keep_before(head.size);
        let rest = sums.len()..head.size;
        self.each_chunk(&runs, &rest, |chunk| sums.extend(chunk, most))?;
        Ok((sums.len() == head.size).then_some(sums))
    }
}
