//! Charges what a change allocates, and credits what it frees.

use super::passed::{Bounded, Passed};
use super::record::Record;
use super::{Kept, Quotas, owner, weight};
use crate::change::edit::Step;
use crate::change::files::Files;
use crate::inodes::inode::Inode;
use std::collections::BTreeMap;
use volary_core::{Kind, QuotaOf};

/// By owner, how many more blocks and inodes than before the change.
type Deltas = BTreeMap<u32, [i64; 2]>;

/// The quotas, as a change sees them.
pub(crate) struct Charges<'a> {
    quotas: &'a mut Quotas,
    /// The former state of records that were changed.
    before: Vec<(QuotaOf, u32, Option<Kept>)>,
}

impl<'a> Charges<'a> {
    /// Returns the quotas, with nothing changed yet.
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

    /// Charges the owners of what the change touched. This is the last part of a change. Root may
    /// exceed all limits. A warning is kept about each owner who passes a soft limit.
    ///
    /// # Errors
    /// `Quota`; `NoSpace` if there is no room for a record; `Corrupt`; `Io`.
    pub(crate) fn charge(&mut self, files: &mut Files<'_>) -> Step<()> {
        while self.make_records(files)? {}
        let mut passed = Vec::new();
        for of in self.quotas.on() {
            for (id, delta) in deltas(files, of) {
                self.charge_one(files, of, id, delta, &mut passed)?;
            }
        }
        for one in &passed {
            self.quotas.warnings.add(one, files.edit.now.secs);
        }
        Ok(())
    }

    /// Makes room in the quota files for the records of all owners to charge. Returns whether that
    /// allocated anything, because the owner of a quota file must be charged too.
    fn make_records(&mut self, files: &mut Files<'_>) -> Step<bool> {
        let mut made = false;
        for of in self.quotas.on() {
            for id in deltas(files, of).into_keys() {
                made |= self.make_record(files, of, id)?;
            }
        }
        Ok(made)
    }

    /// Makes room for a record that does not exist yet. Returns whether it did so.
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
        // The quota file belongs to the volume, so it may use the reserve whoever makes the change.
        let is_root = std::mem::replace(&mut files.room.is_root, true);
        let written = files.file(ino).write(at, &form.stored(&record));
        files.room.is_root = is_root;
        written.map(|()| true)
    }

    fn charge_one(
        &mut self,
        files: &Files<'_>,
        of: QuotaOf,
        id: u32,
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
                // Root has no limits, and its record holds the grace times.
                share.used = share.used.saturating_add_signed(delta);
            } else if !share.count(delta, files.edit.now.secs, grace, files.room.is_root) {
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

    /// Replaces a record for which there is room.
    pub(crate) fn set_record(&mut self, of: QuotaOf, id: u32, record: Record) {
        if let Some(file) = self.quotas.get_mut(of) {
            let before = file.set(id, record);
            self.before.push((of, id, before));
        }
    }

    /// Undoes the changes of records.
    pub(crate) fn take_back(self) {
        for (of, id, before) in self.before.into_iter().rev() {
            self.quotas.put_back(of, id, before);
        }
    }
}

/// Returns how much more than before the change the owners have.
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
