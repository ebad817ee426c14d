//! What an attachment lets be done: what the volume can do, until it is detached.

use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{Caps, Kind, Result};

/// What is asked before anything is done.
pub(crate) struct Attachment {
    caps: Caps,
    detached: AtomicBool,
}

impl Attachment {
    pub(crate) fn new(caps: Caps) -> Self {
        Self {
            caps,
            detached: AtomicBool::new(false),
        }
    }

    pub(crate) fn caps(&self) -> Caps {
        self.caps
    }

    /// Ends the attachment; false if it had ended before.
    pub(crate) fn end(&self) -> bool {
        !self.detached.swap(true, Ordering::AcqRel)
    }

    /// Checks that the volume is still attached.
    ///
    /// # Errors
    /// `Stale` once it is detached.
    pub(crate) fn check_attached(&self) -> Result<()> {
        if self.detached.load(Ordering::Acquire) {
            return Err(Kind::Stale.into());
        }
        Ok(())
    }

    /// Checks that changes are taken.
    ///
    /// # Errors
    /// `Stale`, `ReadOnly`.
    pub(crate) fn check_writable(&self) -> Result<()> {
        self.check_attached()?;
        if self.caps.has(Caps::WRITE) {
            Ok(())
        } else {
            Err(Kind::ReadOnly.into())
        }
    }

    /// Checks that the volume has an ability of [`Caps`].
    ///
    /// # Errors
    /// `Unsupported`.
    pub(crate) fn check_able(&self, ability: u32) -> Result<()> {
        if self.caps.has(ability) {
            Ok(())
        } else {
            Err(Kind::Unsupported.into())
        }
    }

    /// Checks that a change can be made which asks for an ability.
    ///
    /// # Errors
    /// `Stale`, `ReadOnly`; `Unsupported`.
    pub(crate) fn check_can(&self, ability: u32) -> Result<()> {
        self.check_writable()?;
        self.check_able(ability)
    }

    /// Checks that a file can have this size.
    ///
    /// # Errors
    /// `TooBig`.
    pub(crate) fn check_size(&self, size: u64) -> Result<()> {
        if size > self.caps.size_max {
            return Err(Kind::TooBig.into());
        }
        Ok(())
    }
}
