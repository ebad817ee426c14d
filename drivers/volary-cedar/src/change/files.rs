//! The files of an attached volume: the core, what is in memory only of nodes, and changes of both.

use crate::change::ahead::Ahead;
use crate::change::found::Found;
use crate::commit::core::Core;
use crate::disk::sums::Seals;
use volary_core::{Mode, Result, Time};
use volary_ondisk::Opens;
use volary_ondisk::retry::{Stop, with_commits};

/// One open.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub(crate) uid: u64,
    pub(crate) mode: Mode,
    /// Whether the leader was looked at.
    pub(crate) checked: bool,
}

/// What operations on files share.
pub(crate) struct Files {
    pub(crate) core: Core,
    /// The open table, by uid.
    pub(crate) opens: Opens<Open>,
    /// What is known of checksums.
    pub(crate) seals: Seals,
    /// Nodes that lost their last name, or have a version too many.
    pub(crate) leaving: Vec<u64>,
    /// What was found wrong in passing.
    pub(crate) found: Found,
    pub(crate) ahead: Ahead,
}

impl Files {
    pub(crate) fn new(core: Core) -> Self {
        Self {
            core,
            opens: Opens::default(),
            seals: Seals::default(),
            leaving: Vec::new(),
            found: Found::default(),
            ahead: Ahead::default(),
        }
    }

    /// Returns whether a node is open.
    pub(crate) fn is_open(&self, uid: u64) -> bool {
        self.opens.is_open(uid)
    }

    /// Does a change whole or not at all. If there is no room but what the next
    /// commit frees, commits and tries again.
    ///
    /// # Errors
    /// `ReadOnly`; what `change` answers; `NoSpace` for a change that no log
    /// record can hold; `Io`, after which the volume takes no changes.
    pub(crate) fn change<T>(
        &mut self,
        now: Time,
        change: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.core.at_work += 1;
        let done = self.change_now(now, change);
        self.core.at_work -= 1;
        done
    }

    fn change_now<T>(
        &mut self,
        now: Time,
        mut change: impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.core.too_much = false;
        self.core.writable()?;
        self.core.begin()?;
        let done = with_commits(
            self,
            |files| {
                let done = files.attempt(now, &mut change);
                done.map_err(|e| Stop::from(e).or_commit(|| files.core.commit_gives_room()))
            },
            |files| files.core.commit(now),
        )?;
        if self.core.batch.is_due(now, self.core.commit_time) {
            self.core.commit(now)?;
        }
        Ok(done)
    }

    fn attempt<T>(
        &mut self,
        now: Time,
        change: &mut impl FnMut(&mut Self) -> Result<T>,
    ) -> Result<T> {
        self.core.too_much = false;
        let done = change(self).and_then(|done| self.core.install(now).map(|()| done));
        if done.is_err() {
            self.core.undo();
        }
        done
    }
}
