//! Charging what a change takes, and giving back what it frees.

use super::passed::{Bounded, Passed};
use super::{owner, weight};
use crate::edit::{Edit, Step};
use crate::inode::Inode;
use std::collections::BTreeMap;
use volary_core::{Kind, QuotaOf, Result};

/// Blocks and inodes more than before, by number.
type Deltas = BTreeMap<u32, [i64; 2]>;

impl Edit<'_> {
    /// Charges the owners of what the change touched, as the last part of it. Root may go
    /// past all limits. Of who passes a soft limit a warning is kept.
    ///
    /// # Errors
    /// `Quota`; `NoSpace` for room for a record; `Corrupt`; `Io`.
    pub(crate) fn charge(&mut self) -> Step<()> {
        while self.make_records()? {}
        let mut passed = Vec::new();
        for of in self.quotas.on() {
            for (id, delta) in self.deltas(of) {
                self.charge_one((of, id), delta, &mut passed)?;
            }
        }
        for one in &passed {
            self.quotas.warnings.add(one, self.now.secs);
        }
        Ok(())
    }

    /// Makes room in the quota files for the records of all that are to be charged. True if
    /// that took something: its owner is charged too.
    fn make_records(&mut self) -> Step<bool> {
        let mut made = false;
        for of in self.quotas.on() {
            for id in self.deltas(of).into_keys() {
                made |= self.make_record(of, id)?;
            }
        }
        Ok(made)
    }

    /// Makes room for a record, if there is none. True if there was none.
    ///
    /// # Errors
    /// `NoSpace`; `Corrupt`; `Io`.
    pub(super) fn make_record(&mut self, of: QuotaOf, id: u32) -> Step<bool> {
        let Some(file) = self.quotas.get(of) else {
            return Ok(false);
        };
        let (ino, form) = (file.ino, file.form);
        let at = form.at(id);
        let end = at + form.len() as u64;
        let blocks = [at, end - 1].map(|byte| byte / self.volume.bsize);
        let has_room = end <= self.inode(ino)?.size
            && self.pointer(ino, blocks[0])? != 0
            && self.pointer(ino, blocks[1])? != 0;
        if has_room {
            return Ok(false);
        }
        let record = file_record(self, of, id)?;
        // It is the volume's own: for whoever makes the change, the reserve is there.
        let is_root = std::mem::replace(&mut self.is_root, true);
        let written = self.write(ino, at, &form.stored(&record));
        self.is_root = is_root;
        written.map(|()| true)
    }

    fn deltas(&self, of: QuotaOf) -> Deltas {
        let mut deltas = Deltas::new();
        let mut add = |inode: &Inode, sign: i64| {
            let all = deltas.entry(owner(inode, of)).or_default();
            for (sum, n) in all.iter_mut().zip(weight(inode)) {
                *sum += sign * i64::try_from(n).unwrap_or(0);
            }
        };
        for (before, now) in self.touched() {
            add(before, -1);
            add(now, 1);
        }
        deltas.retain(|_, delta| *delta != [0, 0]);
        deltas
    }

    fn charge_one(
        &mut self,
        (of, id): (QuotaOf, u32),
        delta: [i64; 2],
        passed: &mut Vec<Passed>,
    ) -> Step<()> {
        let reader = self.reader();
        let Some(file) = self.quotas.get(of) else {
            return Ok(());
        };
        let grace = file.grace(&reader, self.nodes)?;
        let mut record = file.record(&reader, self.nodes, id)?;
        let bounded = [Bounded::Room, Bounded::Files];
        let parts = record.iter_mut().zip(delta).zip(grace).zip(bounded);
        for (((share, delta), grace), what) in parts {
            let was_over = share.is_over();
            if id == 0 {
                // Root has no limits, and the times of grace stand there.
                share.used = share.used.saturating_add_signed(delta);
            } else if !share.count(delta, (self.now.secs, grace), self.is_root) {
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
    pub(super) fn set_record(&mut self, of: QuotaOf, id: u32, record: super::Record) {
        if let Some(file) = self.quotas.get_mut(of) {
            let before = file.set(id, record);
            self.note_record(of, id, before);
        }
    }
}

/// Returns a record as it is now.
fn file_record(edit: &Edit<'_>, of: QuotaOf, id: u32) -> Result<super::Record> {
    match edit.quotas.get(of) {
        Some(file) => file.record(&edit.reader(), edit.nodes, id),
        None => Ok(super::Record::default()),
    }
}
