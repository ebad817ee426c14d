//! Mending of chains that lead nowhere, and of directories that are none.

use super::disk::{Rank, UNIT};
use super::findings::{self as code, Where};
use super::mend::Mender;
use super::volume::NONE;
use super::walk::{Problem, What};
use crate::volume::ondisk::{DIR_ENTRIES_MAX, attr};
use volary_core::Result;

/// Mends chains that lead nowhere.
pub(super) struct Chains<'m, 'a, 'r> {
    mender: &'m mut Mender<'a, 'r>,
}

impl<'m, 'a, 'r> Chains<'m, 'a, 'r> {
    pub(super) fn new(mender: &'m mut Mender<'a, 'r>) -> Self {
        Self { mender }
    }

    /// Tells of a problem of the first phase and mends it.
    pub(super) fn mend(&mut self, problem: &Problem) -> Result<()> {
        match problem.what {
            What::RootStart => self.root_start(problem),
            What::Start(value) => self.bad_start(problem, value),
            What::Link { last, value } => {
                let why = self.why_not(value)?;
                let words = format!("after cluster {last} its chain goes to {why}");
                let code = if problem.slot == NONE {
                    code::ROOT_CHAIN
                } else {
                    code::CHAIN_LINK
                };
                if self.mender.tell(
                    code,
                    problem,
                    words,
                    format!("ends the chain at cluster {last}"),
                )? {
                    self.mender.vol.cut(last)?;
                }
                Ok(())
            }
            What::Half { last, value } => {
                let words = format!(
                    "after cluster {last}, whose link was written by half, its chain goes to {value}"
                );
                let repair = format!("ends the chain at cluster {last}");
                if self.mender.tell(code::LINK_HALF, problem, words, repair)? {
                    self.mender.vol.cut(last)?;
                }
                Ok(())
            }
            What::Loop { last } => {
                let words = format!("after cluster {last} its chain comes back to itself");
                let repair = format!("ends the chain at cluster {last}");
                if self.mender.tell(code::CHAIN_LOOP, problem, words, repair)? {
                    self.mender.vol.cut(last)?;
                }
                Ok(())
            }
            What::Garbage { index } => self.garbage(problem, index),
            What::NotDir => self.not_dir(problem),
            What::Unreadable { at } => self.unreadable(problem, at),
            _ => self.too_long(problem),
        }
    }

    fn root_start(&mut self, problem: &Problem) -> Result<()> {
        let root = self.mender.vol.layout.root_cluster;
        let words = format!("the root directory's cluster {root} is not in use in the FAT");
        if self.mender.tell(
            code::ROOT_CHAIN,
            problem,
            words,
            "marks it as a chain of one cluster",
        )? {
            self.mender.vol.cut(root)?;
        }
        Ok(())
    }

    /// Returns what is wrong with a value that a chain leads to.
    fn why_not(&mut self, value: u32) -> Result<String> {
        if !self.mender.vol.layout.is_cluster(value) {
            return Ok(format!("{value}, which is no cluster"));
        }
        let bad = self.mender.vol.fat.get(value)? != 0;
        let state = if bad { "marked bad" } else { "free" };
        Ok(format!("cluster {value}, which is {state}"))
    }

    fn bad_start(&mut self, problem: &Problem, value: u32) -> Result<()> {
        let why = self.why_not(value)?;
        if self.mender.reporter.all.mends() {
            self.mender.vol.fat.avoid(value)?;
        }
        if self.mender.is_dir(problem)? {
            let words = format!("a directory that begins with {why}");
            let repair = "takes it away; what was in it is found lost";
            if self
                .mender
                .tell(code::DIR_NO_CHAIN, problem, words, repair)?
            {
                self.mender.remove(problem)?;
            }
            return Ok(());
        }
        let words = format!("it begins with {why}");
        let repair = "makes it empty; its data is lost";
        if self
            .mender
            .tell(code::CHAIN_START, problem, words, repair)?
        {
            self.mender.set_start(problem, 0)?;
            self.mender.change(problem, |e| e.DIR_FileSize.set(0))?;
        }
        Ok(())
    }

    fn garbage(&mut self, problem: &Problem, index: u32) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        let before = index.checked_sub(1);
        let last = match before {
            Some(i) => self.mender.vol.cluster_at(dir.cluster, i)?,
            None => None,
        };
        let Some(last) = last else {
            return Ok(());
        };
        let words = format!("after cluster {last} the directory holds something else");
        let repair = "ends it there; the rest is found lost";
        if self
            .mender
            .tell(code::DIR_GARBAGE, problem, words, repair)?
        {
            self.mender.vol.cut(last)?;
        }
        Ok(())
    }

    /// Frees the slots of a sector that cannot be read. What is written there
    /// makes the device take another one for it, or fails.
    fn unreadable(&mut self, problem: &Problem, at: u64) -> Result<()> {
        let path = self.mender.path(problem.dir, NONE)?;
        let words = "a sector of the directory cannot be read; the entries in it are lost";
        let repair = "writes free slots there; what the entries led to is found lost";
        let place = Where {
            path: Some(path),
            offset: Some(at),
        };
        if self
            .mender
            .reporter
            .tell(code::DIR_UNREADABLE, at, place, words.into(), repair)
        {
            let mut slots = [0; UNIT];
            self.mender.vol.disk.read_dir(at, &mut slots)?;
            self.mender.vol.disk.edit(at, &slots, Rank::Late)?;
        }
        Ok(())
    }

    fn not_dir(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        let entry = Problem {
            dir: dir.parent,
            first: dir.first,
            slot: dir.slot,
            ..*problem
        };
        let words = "marked as a directory, but it holds something else".into();
        if !self
            .mender
            .tell(code::DIR_NOT_DIR, &entry, words, "makes it a file")?
        {
            return Ok(());
        }
        let bytes = u64::from(dir.clusters) * u64::from(self.mender.vol.layout.cluster_len);
        let size = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.mender.change(&entry, |e| {
            e.DIR_Attr = e.DIR_Attr & !attr::DIRECTORY | attr::ARCHIVE;
            e.DIR_FileSize.set(size);
        })
    }

    /// Gives what is too much of a directory to a directory of its own.
    fn too_long(&mut self, problem: &Problem) -> Result<()> {
        let dir = self.mender.dir(problem.dir);
        let most = DIR_ENTRIES_MAX / self.mender.vol.slots_per_cluster();
        let last = self.mender.vol.cluster_at(dir.cluster, most - 1)?;
        let rest = self.mender.vol.cluster_at(dir.cluster, most)?;
        let (Some(last), Some(rest)) = (last, rest) else {
            return Ok(());
        };
        let words = format!("a directory with room for more than {DIR_ENTRIES_MAX} entries");
        let new = self.mender.vol.fat.find_free()?;
        let repair = match new {
            Some(_) => "puts the rest into a directory of its own, which is found lost",
            None => "",
        };
        if !self
            .mender
            .tell(code::DIR_TOO_LONG, problem, words, repair)?
        {
            return Ok(());
        }
        let Some(new) = new else {
            return Ok(());
        };
        self.mender.fresh_dir(new, 0, true)?;
        self.mender.vol.set_link(new, rest)?;
        self.mender.vol.cut(last)
    }
}
