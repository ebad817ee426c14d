//! Charging what a change takes, and giving back what it frees.

use super::passed::{Bounded, Passed};
use super::record::Record;
use super::{Kept, Quotas, owner, weight};
use crate::change::edit::Step;
use crate::change::files::Files;
use crate::inodes::inode::Inode;
use std::collections::BTreeMap;
use volary_core::{Kind, QuotaOf};

/// Blocks and inodes more than before, by number.
type Deltas = BTreeMap<u32, [i64; 2]>;

/// The quotas, as a change sees them.
pub(crate) struct Charges<'a> {
    quotas: &'a mut Quotas,
    /// What there was of records that were changed.
    before: Vec<(QuotaOf, u32, Option<Kept>)>,
}

impl<'a> Charges<'a> {
    /// Returns quotas of which nothing was changed yet.
    pub(crate) fn new(quotas: &'a mut Quotas) -> Self {
        Self {
            quotas,
            before: Vec::new(),
        }
    }

    /// Returns the quotas as they are now.
    pub(crate) fn quotas(&self) -> &Quotas {
        self.quotas
    }

    /// Charges the owners of what the change touched, as the last part of it. Root may go
    /// past all limits. Of who passes a soft limit a warning is kept.
    ///
    /// # Errors
    /// `Quota`; `NoSpace` for room for a record; `Corrupt`; `Io`.
    pub(crate) fn charge(&mut self, files: &mut Files<'_>) -> Step<()> {
        while self.make_records(files)? {}
        let mut passed = Vec::new();
        for of in self.quotas.on() {
            for (id, delta) in deltas(files, of) {
                self.charge_one(files, (of, id), delta, &mut passed)?;
            }
        }
        for one in &passed {
            self.quotas.warnings.add(one, files.edit.now.secs);
        }
        Ok(())
    }

    /// Makes room in the quota files for the records of all that are to be charged. True if
    /// that took something: its owner is charged too.
    fn make_records(&mut self, files: &mut Files<'_>) -> Step<bool> {
        let mut made = false;
        for of in self.quotas.on() {
            for id in deltas(files, of).into_keys() {
                made |= self.make_record(files, of, id)?;
            }
        }
        Ok(made)
    }

    /// Makes room for a record, if there is none. True if there was none.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(crate) fn make_record(&self, files: &mut Files<'_>, of: QuotaOf, id: u32) -> Step<bool> {
        let Some(file) = self.quotas.get(of) else {
            return Ok(false);
        };
        let (ino, form) = (file.ino, file.form);
        let at = form.at(id);
        let end = at + form.len() as u64;
        let blocks = [at, end - 1].map(|byte| byte / files.edit.reader.volume.bsize);
        let has_room = end <= files.edit.inode(ino)?.size
            && files.map(ino).pointer(blocks[0])? != 0
            && files.map(ino).pointer(blocks[1])? != 0;
        if has_room {
            return Ok(false);
        }
        let record = file.record(&files.edit.reader, files.edit.nodes(), id)?;
        // It is the volume's own: for whoever makes the change, the reserve is there.
        let is_root = std::mem::replace(&mut files.room.is_root, true);
        let written = files.file(ino).write(at, &form.stored(&record));
        files.room.is_root = is_root;
        written.map(|()| true)
    }

    fn charge_one(
        &mut self,
        files: &Files<'_>,
        (of, id): (QuotaOf, u32),
        delta: [i64; 2],
        passed: &mut Vec<Passed>,
    ) -> Step<()> {
        let Some(file) = self.quotas.get(of) else {
            return Ok(());
        };
        let grace = file.grace(&files.edit.reader, files.edit.nodes())?;
        let mut record = file.record(&files.edit.reader, files.edit.nodes(), id)?;
        let bounded = [Bounded::Room, Bounded::Files];
        let parts = record.iter_mut().zip(delta).zip(grace).zip(bounded);
        for (((share, delta), grace), what) in parts {
            let was_over = share.is_over();
            if id == 0 {
                // Root has no limits, and the times of grace stand there.
                share.used = share.used.saturating_add_signed(delta);
            } else if !share.count(delta, (files.edit.now.secs, grace), files.room.is_root) {
                return Err(Kind::Quota.into());
            }
            if id != 0 && share.is_over() && !was_over {
                passed.push(Passed {
                    of,
                    id,
                    what,
                    share: *share,
                    grace,
                });
            }
        }
        self.set_record(of, id, record);
        Ok(())
    }

    /// Puts a record, for which there is room, in place of another.
    pub(crate) fn set_record(&mut self, of: QuotaOf, id: u32, record: Record) {
        if let Some(file) = self.quotas.get_mut(of) {
            let before = file.set(id, record);
            self.before.push((of, id, before));
        }
    }

    /// Takes what was done to records back.
    pub(crate) fn take_back(self) {
        for (of, id, before) in self.before.into_iter().rev() {
            self.quotas.put_back(of, id, before);
        }
    }
}

/// Returns what the owners of what the change touched have more than before.
fn deltas(files: &Files<'_>, of: QuotaOf) -> Deltas {
    let mut deltas = Deltas::new();
    let mut add = |inode: &Inode, sign: i64| {
        let all = deltas.entry(owner(inode, of)).or_default();
        for (sum, n) in all.iter_mut().zip(weight(inode)) {
            *sum += sign * i64::try_from(n).unwrap_or(0);
        }
    };
    for (before, now) in files.edit.changed() {
        add(before, -1);
        add(now, 1);
    }
    deltas.retain(|_, delta| *delta != [0, 0]);
    deltas
}
