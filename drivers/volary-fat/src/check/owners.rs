//! The table of owners of the UNIX extension.

use super::disk::Rank;
use super::findings::{self as code};
use super::mend::Mender;
use super::walk::{Problem, What};
use crate::owner::{HEAD_LEN, OwnerTable};
use volary_core::Result;

impl Mender<'_, '_> {
    /// Looks at the head of the table of owners, if there is one. When the
    /// extension is reset, the table goes as well.
    ///
    /// # Errors
    /// `Io`.
    pub(super) fn owner_table(&mut self, reset: bool) -> Result<()> {
        let Some(slot) = self.walk.owners else {
            return Ok(());
        };
        let root = self.dir(0);
        let first = self.vol.first_slot(&root, slot)?;
        let problem = Problem {
            what: What::UnixCheck,
            dir: 0,
            first,
            slot,
        };
        let entry = self.vol.entry(&root, slot)?;
        let start = self.vol.start(&entry);
        if reset {
            let words = "the table of owners of an extension that is to be reset".into();
            if self.tell(code::UNIX_RESET, &problem, words, "takes it away")? {
                self.remove(&problem)?;
                if self.vol.layout.is_cluster(start) {
                    self.drop_excess(start, true)?;
                    self.vol.set_link(start, 0)?;
                }
            }
            return Ok(());
        }
        let mut head = [0; HEAD_LEN];
        let long = entry.DIR_FileSize.get() as usize >= HEAD_LEN;
        let there = self.vol.layout.is_cluster(start);
        let offset = self.vol.layout.cluster_offset(start);
        if there {
            self.vol.disk.read_dir(offset, &mut head)?;
        }
        if there && long && head == OwnerTable::head() {
            return Ok(());
        }
        let words = "the table of owners is none; all is the mount's owner's".into();
        if there && long {
            if self.tell(code::OWNER_TABLE, &problem, words, "writes its head anew")? {
                self.vol
                    .disk
                    .edit(offset, &OwnerTable::head(), Rank::Late)?;
            }
        } else if self.tell(code::OWNER_TABLE, &problem, words, "takes it away")? {
            self.remove(&problem)?;
        }
        Ok(())
    }
}
