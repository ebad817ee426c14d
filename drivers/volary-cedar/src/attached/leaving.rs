//! Nodes that leave: those without a name that nobody has open, and versions that are too many.

use crate::change::files::Files;
use crate::change::nodes::{Nodes, is_named};
use crate::change::versions::Versions;
use volary_core::{Ctx, Kind, Result};

/// Nodes that leave.
pub(crate) struct Leaving<'a> {
    files: &'a mut Files,
}

impl<'a> Leaving<'a> {
    pub(crate) fn of(files: &'a mut Files) -> Self {
        Self { files }
    }

    /// Does what the last change left to be done.
    pub(crate) fn see_off(&mut self, cx: &Ctx<'_>) -> Result<()> {
        let leaving = std::mem::take(&mut self.files.leaving);
        leaving
            .into_iter()
            .try_for_each(|uid| self.release(cx, uid))
    }

    /// Lets a node go that is neither open nor has a name; of one that has a
    /// name, the versions that are too many.
    pub(crate) fn release(&mut self, cx: &Ctx<'_>, uid: u64) -> Result<()> {
        if self.files.core.writable().is_err() {
            return Ok(());
        }
        match Nodes::of(self.files).home(uid) {
            Ok((place, _)) if is_named(&place) => Versions::of(self.files).shed(uid, cx.now),
            Ok(_) if self.files.is_open(uid) => Ok(()),
            Ok(_) => Versions::of(self.files).let_go(uid, cx.now),
            Err(e) if e == Kind::Stale => Ok(()),
            Err(e) => Err(e),
        }
    }
}
