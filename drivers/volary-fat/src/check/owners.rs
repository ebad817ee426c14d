//! The UNIX extension: its table of owners, and the reset of the paper's layout.

use super::disk::Rank;
use super::findings::{self as code};
use super::mend::Mender;
use super::walk::{Problem, What};
use crate::unix::devices::device_text;
use crate::unix::owner::{HEAD_LEN, OwnerTable};
use crate::unix::paper::{self, Extension};
use crate::volume::ondisk::FREE;
use volary_core::Result;

/// Mends what the UNIX extension has beside entries, and resets the paper's layout.
pub(super) struct UnixExtension<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
}

impl<'m, 'a, 'r> UnixExtension<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self { mender }
    }

    /// Takes the extension in the paper's layout, and the rest of a long name, away
    /// from an entry. A device's numbers, which stand nowhere else, become what the
    /// file says: as much as today's layout writes there.
    pub(super) fn reset(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        let entry = self.mender.vol.entry(&dir, problem.slot)?;
        let device = Extension::read(&entry).and_then(|ext| {
            let rdev = u64::from(ext.major) << 32 | u64::from(ext.minor);
            device_text(ext.kind(), rdev)
        });
        let device = device.filter(|_| self.mender.vol.start(&entry) == 0);
        let room = match &device {
            Some(_) => self.mender.vol.fat.find_free()?,
            None => None,
        };
        let words = "it has the UNIX extension, which is to be reset".into();
        let repair = match (&device, room) {
            (None, _) => "takes the extension away".into(),
            (Some(text), Some(_)) => format!("makes it a file that says '{}'", text.trim_end()),
            // Without room for its numbers it stays a device.
            (Some(_), None) => String::new(),
        };
        if !self.mender.tell(code::UNIX_RESET, problem, words, repair)? {
            return Ok(());
        }
        let next = self.mender.vol.raw(&dir, problem.slot + 1)?;
        if paper::has_tail(&entry) && paper::is_tail(&next) {
            // First: the entry would not lead to it any more.
            if let Some(offset) = self.mender.vol.slot_offset(&dir, problem.slot + 1)? {
                self.mender.vol.disk.edit(offset, &[FREE], Rank::Early)?;
            }
        }
        self.mender.change(problem, paper::reset)?;
        let (Some(text), Some(cluster)) = (device, room) else {
            return Ok(());
        };
        let mut bytes = text.clone().into_bytes();
        bytes.resize(self.mender.vol.layout.cluster_len as usize, 0);
        let offset = self.mender.vol.layout.cluster_offset(cluster);
        self.mender.vol.disk.fill(offset, &bytes)?;
        self.mender.vol.cut(cluster)?;
        self.mender.set_start(problem, cluster)?;
        self.mender
            .change(problem, |e| e.DIR_FileSize.set(text.len() as u32))
    }

    /// Looks at the head of the table of owners, if there is one. When the
    /// extension is reset, the table goes as well.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn owner_table(&mut self, reset: bool) -> Result<()> {
        let Some(slot) = self.mender.walk.owners else {
            return Ok(());
        };
        let root = self.mender.dir(0);
        let first = self.mender.vol.first_slot(&root, slot)?;
        let problem = Problem {
            what: What::UnixCheck,
            dir: 0,
            first,
            slot,
        };
        let entry = self.mender.vol.entry(&root, slot)?;
        let start = self.mender.vol.start(&entry);
        if reset {
            let words = "the table of owners of an extension that is to be reset".into();
            if self
                .mender
                .tell(code::UNIX_RESET, &problem, words, "takes it away")?
            {
                self.mender.remove(&problem)?;
                if self.mender.vol.layout.is_cluster(start) {
                    self.mender.drop_excess(start, true)?;
                    self.mender.vol.set_link(start, 0)?;
                }
            }
            return Ok(());
        }
        let mut head = [0; HEAD_LEN];
        let long = entry.DIR_FileSize.get() as usize >= HEAD_LEN;
        let there = self.mender.vol.layout.is_cluster(start);
        let offset = self.mender.vol.layout.cluster_offset(start);
        if there {
            self.mender.vol.disk.read_dir(offset, &mut head)?;
        }
        if there && long && head == OwnerTable::head() {
            return Ok(());
        }
        let words = "the table of owners is none; all is the mount's owner's".into();
        if there && long {
            if self
                .mender
                .tell(code::OWNER_TABLE, &problem, words, "writes its head anew")?
            {
                self.mender
                    .vol
                    .disk
                    .edit(offset, &OwnerTable::head(), Rank::Late)?;
            }
        } else if self
            .mender
            .tell(code::OWNER_TABLE, &problem, words, "takes it away")?
        {
            self.mender.remove(&problem)?;
        }
        Ok(())
    }
}
