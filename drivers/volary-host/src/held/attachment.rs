//! What an attachment permits: the volume's abilities, until it is detached.

use std::sync::atomic::{AtomicBool, Ordering};
use volary_core::{Caps, Kind, Result};

/// The checks that come before every operation.
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

    /// Ends the attachment. Returns false if it had already ended.
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

    /// Checks that the volume takes changes.
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

    /// Checks that a change which needs an ability can be made.
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
