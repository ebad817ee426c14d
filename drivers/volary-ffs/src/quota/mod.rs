//! Quotas, in the quota files of the root directory.
//!
//! A change is charged as a whole at its end (`charge`). Changed records stay in memory until the
//! commit writes them. After a power cut, the files may be out of date. `count` corrects them, for
//! the check too.
//!
//! May use `disk`, `inodes`, `groups`, `directory` and `change`.

mod charge;
mod count;
mod passed;
mod record;

pub(crate) use charge::Charges;
pub(crate) use count::Counts;
pub(crate) use passed::Warnings;
pub(crate) use record::{Form, Grace, Record, Share};

use crate::directory::dir::Dir;
use crate::disk::ondisk::UFS_ROOTINO;
use crate::disk::volume::Variant;
use crate::inodes::blocks::Reader;
use crate::inodes::inode::Inode;
use crate::inodes::node::Nodes;
use std::collections::BTreeMap;
use volary_block::Stage;
use volary_core::{Error, FileKind, Kind, QuotaOf, Result};

/// Most records that stay in memory after a commit.
const RECORDS_MAX: usize = 1024;
/// Records of a quota file that are read at a time.
const PART: usize = 512;

/// A record in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Kept {
    pub(crate) record: Record,
    is_dirty: bool,
}

/// A quota file.
#[derive(Clone, Debug)]
pub(crate) struct QuotaFile {
    pub(crate) ino: u32,
    pub(crate) form: Form,
    records: BTreeMap<u32, Kept>,
}

impl QuotaFile {
    /// Returns a quota file without records in memory.
    pub(crate) fn new(ino: u32, form: Form) -> Self {
        Self {
            ino,
            form,
            records: BTreeMap::new(),
        }
    }

    /// Returns the volume's quota file, if it has one: a regular file in the root directory, owned
    /// by root.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn find(reader: &Reader<'_>, of: QuotaOf) -> Result<Option<Self>> {
        let newest = Form::Narrow(reader.volume.order);
        for form in [form_of(reader, of), newest] {
            match Self::look(reader, of, form) {
                Ok(None) => {}
                // Damage is reported elsewhere, also that of the root directory.
                Err(e) if e != Kind::Io => {}
                found => return found,
            }
        }
        Ok(None)
    }

    /// Returns the file with the name that this form has.
    fn look(reader: &Reader<'_>, of: QuotaOf, form: Form) -> Result<Option<Self>> {
        let root = reader.inode(UFS_ROOTINO.into())?;
        let mut entries = Dir::new(*reader, &root)?;
        let (ino, _) = entries.find(form.file_name(of).as_bytes(), 0, &|| Ok(()))?;
        let inode = reader.inode(ino.into())?;
        let is_one = inode.kind() == Some(FileKind::File) && inode.uid == 0;
        if !is_one || inode.size == 0 || inode.is_snapshot(reader.volume) {
            return Ok(None);
        }
        if matches!(form, Form::Warned(_)) {
            return Ok(Some(Self::new(ino, form)));
        }
        let mut head = vec![0; record::HEADER];
        reader.read(&inode, 0, &mut head)?;
        let form = Form::of(&head, reader.volume.order);
        Ok(form.map(|form| Self::new(ino, form)))
    }

    /// Returns an owner's record, with zeros if there is none.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn record(&self, reader: &Reader<'_>, nodes: &Nodes, id: u32) -> Result<Record> {
        if let Some(kept) = self.records.get(&id) {
            return Ok(kept.record);
        }
        let inode = nodes.inode(reader, self.ino.into())?;
        let mut bytes = vec![0; self.form.len()];
        reader.read(&inode, self.form.at(id), &mut bytes)?;
        Ok(self.form.parse(&bytes))
    }

    /// Puts a record into memory, or restores its former state. Returns the state before.
    fn put(&mut self, id: u32, kept: Option<Kept>) -> Option<Kept> {
        match kept {
            Some(kept) => self.records.insert(id, kept),
            None => self.records.remove(&id),
        }
    }

    /// Puts a record into memory, to be written at the next commit. Returns its former state.
    pub(crate) fn set(&mut self, id: u32, record: Record) -> Option<Kept> {
        let kept = Kept {
            record,
            is_dirty: true,
        };
        self.put(id, Some(kept))
    }

    /// Returns the grace that the soft limits of blocks and of inodes give.
    ///
    /// # Errors
    /// As [`record`](Self::record).
    pub(crate) fn grace(&self, reader: &Reader<'_>, nodes: &Nodes) -> Result<[Grace; 2]> {
        let times = self.record(reader, nodes, 0)?.map(|share| share.time);
        Ok(times.map(|time| self.form.grace(time)))
    }

    /// Returns the first record from number `from` on that is not all zeros, with its current
    /// content.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn next(
        &self,
        reader: &Reader<'_>,
        nodes: &Nodes,
        from: u32,
    ) -> Result<Option<(u32, Record)>> {
        let in_memory = self.records.range(from..);
        let mut used = in_memory.filter(|(_, kept)| kept.record != Record::default());
        let kept = used.next().map(|(&id, kept)| (id, kept.record));
        let inode = nodes.inode(reader, self.ino.into())?;
        let mut found = None;
        self.stored(reader, &inode, from, &mut |id, record| {
            // Records in memory are newer.
            if !self.records.contains_key(&id) {
                found = Some((id, record));
            }
            found.is_none() && kept.is_none_or(|(first, _)| id < first)
        })?;
        Ok(match (kept, found) {
            (Some(kept), Some(found)) if kept.0 < found.0 => Some(kept),
            (kept, found) => found.or(kept),
        })
    }

    /// Calls `each` for the stored records that are not all zeros, from number `from` on, until
    /// `each` returns false.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn stored(
        &self,
        reader: &Reader<'_>,
        inode: &Inode,
        from: u32,
        each: &mut dyn FnMut(u32, Record) -> bool,
    ) -> Result<()> {
        let start = self.form.at(from);
        let end = self.form.at(u32::MAX) + self.form.len() as u64;
        let (mut goes_on, mut next) = (true, u64::from(from));
        let done = reader.runs(inode, start, end - start, &mut |run| {
            if run.place.is_none() {
                return Ok(());
            }
            // A record may span two runs.
            let last = self.form.id_at(run.offset + run.len - 1);
            next = next.max(self.form.id_at(run.offset));
            while next <= last && goes_on {
                let count = PART.min(usize::try_from(last - next + 1).unwrap_or(PART));
                let at = self.form.at(u32::try_from(next).unwrap_or(u32::MAX));
                let mut bytes = vec![0; count * self.form.len()];
                reader.read(inode, at, &mut bytes)?;
                goes_on = self.part(next, &bytes, each);
                next += count as u64;
            }
            match goes_on {
                true => Ok(()),
                false => Err(Kind::Interrupted.into()),
            }
        });
        match done {
            Err(e) if !goes_on && e == Kind::Interrupted => Ok(()),
            done => done,
        }
    }

    /// Calls `each` for the records in a part of the file. Returns whether to go on.
    fn part(&self, first: u64, bytes: &[u8], each: &mut dyn FnMut(u32, Record) -> bool) -> bool {
        let records = bytes.chunks_exact(self.form.len()).zip(first..);
        let used = records.filter(|(bytes, _)| bytes.iter().any(|&byte| byte != 0));
        for (bytes, id) in used {
            if let Ok(id) = u32::try_from(id)
                && !each(id, self.form.parse(bytes))
            {
                return false;
            }
        }
        true
    }

    /// Writes changed records to the file, which has room for them.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    fn write(&mut self, reader: &Reader<'_>, nodes: &Nodes) -> Result<()> {
        if !self.records.values().any(|kept| kept.is_dirty) {
            return Ok(());
        }
        let inode = nodes.inode(reader, self.ino.into())?;
        for (&id, kept) in self.records.iter_mut().filter(|(_, kept)| kept.is_dirty) {
            let bytes = self.form.stored(&kept.record);
            let mut rest = bytes.as_slice();
            let at = self.form.at(id);
            reader.runs(&inode, at, bytes.len() as u64, &mut |run| {
                let len = usize::try_from(run.len).unwrap_or(0).min(rest.len());
                let (part, after) = rest.split_at(len);
                rest = after;
                match run.place {
                    Some(place) => reader.cache.write(place, part, Stage::DATA),
                    None => Ok(()),
                }
            })?;
            kept.is_dirty = false;
        }
        if self.records.len() > RECORDS_MAX {
            self.records.clear();
        }
        Ok(())
    }
}

/// The quotas of a volume.
#[derive(Default)]
pub(crate) struct Quotas {
    users: Option<QuotaFile>,
    groups: Option<QuotaFile>,
    /// Warnings about owners who have passed a soft limit.
    pub(crate) warnings: Warnings,
}

impl Quotas {
    /// Returns the quotas that a volume has.
    ///
    /// # Errors
    /// `Io`.
    pub(crate) fn find(reader: &Reader<'_>) -> Result<Self> {
        Ok(Self {
            users: QuotaFile::find(reader, QuotaOf::Users)?,
            groups: QuotaFile::find(reader, QuotaOf::Groups)?,
            warnings: Warnings::default(),
        })
    }

    pub(crate) fn get(&self, of: QuotaOf) -> Option<&QuotaFile> {
        self.slot_of(of).as_ref()
    }

    /// Returns the file of quotas that are on, for a change.
    pub(crate) fn get_mut(&mut self, of: QuotaOf) -> Option<&mut QuotaFile> {
        self.slot(of).as_mut()
    }

    /// Replaces a quota file, and returns the former one.
    pub(crate) fn set(&mut self, of: QuotaOf, file: Option<QuotaFile>) -> Option<QuotaFile> {
        std::mem::replace(self.slot(of), file)
    }

    /// Undoes the change of a record.
    fn put_back(&mut self, of: QuotaOf, id: u32, before: Option<Kept>) {
        if let Some(file) = self.get_mut(of) {
            file.put(id, before);
        }
    }

    fn slot_of(&self, of: QuotaOf) -> &Option<QuotaFile> {
        match of {
            QuotaOf::Users => &self.users,
            QuotaOf::Groups => &self.groups,
        }
    }

    fn slot(&mut self, of: QuotaOf) -> &mut Option<QuotaFile> {
        match of {
            QuotaOf::Users => &mut self.users,
            QuotaOf::Groups => &mut self.groups,
        }
    }

    /// Returns which quotas are on.
    pub(crate) fn on(&self) -> impl Iterator<Item = QuotaOf> + use<> {
        let on = QuotaOf::ALL.map(|of| self.get(of).is_some().then_some(of));
        on.into_iter().flatten()
    }

    /// Checks that an inode is not a quota file.
    ///
    /// # Errors
    /// `Busy` if it is one: only the driver writes or removes quota files.
    pub(crate) fn check_not_one(&self, ino: u32) -> Result<()> {
        let is_one = self
            .on()
            .any(|of| self.get(of).is_some_and(|f| f.ino == ino));
        match is_one {
            false => Ok(()),
            true => {
                let words = "the volume keeps its quotas in this file; volary quota --off first";
                Err(Error::note(Kind::Busy, words))
            }
        }
    }

    /// Writes changed records to the files.
    ///
    /// # Errors
    /// `Corrupt`; `Io`.
    pub(crate) fn write(&mut self, reader: &Reader<'_>, nodes: &Nodes) -> Result<()> {
        for file in [&mut self.users, &mut self.groups].into_iter().flatten() {
            file.write(reader, nodes)?;
        }
        Ok(())
    }
}

/// Returns the form of new quota files, which the systems with this variant can read. Group quotas
/// came when 4.3BSD's format was still in use (4.3BSD-Reno).
pub(crate) fn form_of(reader: &Reader<'_>, of: QuotaOf) -> Form {
    match (reader.volume.variant, of) {
        (Variant::Ufs2, _) => Form::Wide,
        (Variant::Bsd43, QuotaOf::Users) => Form::Warned(reader.volume.order),
        _ => Form::Narrow(reader.volume.order),
    }
}

/// Returns the owner of an inode.
fn owner(inode: &Inode, of: QuotaOf) -> u32 {
    match of {
        QuotaOf::Users => inode.uid,
        QuotaOf::Groups => inode.gid,
    }
}

/// Returns the blocks and inodes that an inode counts for.
fn weight(inode: &Inode) -> [u64; 2] {
    match inode.mode {
        0 => [0, 0],
        _ => [inode.blocks, 1],
    }
}
