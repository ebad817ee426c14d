//! [`OpenHow`]: how a node is to be opened.

use crate::shared::leases::LeaseKey;
use crate::shared::sharing::Share;
use volary_core::{Mode, OpenId};

/// How to open a node. Made from a [`Mode`], with the rest as a POSIX caller
/// has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenHow {
    /// What for.
    pub mode: Mode,
    /// Every write goes to the end, as it is at that moment (`O_APPEND`).
    pub append: bool,
    /// Cut it to nothing first (`O_TRUNC`).
    pub truncate: bool,
    /// The share mode. With one, the open remembers the entry that it came
    /// through ([`Session::place`](crate::Session::place)); without, it is
    /// that of the mode.
    pub share: Option<Share>,
    /// Who is opening: a lease under this key is not broken by what is done
    /// through the open, nor by the opening.
    pub lease_key: Option<LeaseKey>,
    /// A lease under this key on the directory is not broken by what is done
    /// through the open.
    pub parent_key: Option<LeaseKey>,
    /// Kept by a server whose callers know no opens, from one call to the next:
    /// it stands in nobody's way, neither with a share mode nor for a lease, and
    /// what other clients' share modes forbid (`Sharing`) is looked at anew in each
    /// read and write. Only without a share mode and keys.
    pub momentary: bool,
    /// Opens that are not in its way, whatever the share modes say.
    pub beside: Beside,
}

/// Whose opens an open goes together with in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// Nobody's.
    #[default]
    Nobody,
    /// This one, in whose place it comes.
    Open(OpenId),
    /// All of its own client's, then and later.
    Client,
    /// The same, and all others that there are then.
    All,
}

impl From<Mode> for OpenHow {
    fn from(mode: Mode) -> Self {
        Self {
            mode,
            append: false,
            truncate: false,
            share: None,
            lease_key: None,
            parent_key: None,
            momentary: false,
            beside: Beside::Nobody,
        }
    }
}

impl OpenHow {
    /// Open between the calls of one who knows no opens.
    #[must_use]
    pub fn momentary(mut self) -> Self {
        self.momentary = true;
        self
    }

    /// Sets the share mode.
    #[must_use]
    pub fn with_share(mut self, share: Share) -> Self {
        self.share = Some(share);
        self
    }

    /// Sets the key under which the opener holds, or is to have, a lease.
    #[must_use]
    pub fn with_lease_key(mut self, key: LeaseKey) -> Self {
        self.lease_key = Some(key);
        self
    }

    /// Sets the opens that it goes together with in any case.
    #[must_use]
    pub fn beside(mut self, beside: Beside) -> Self {
        self.beside = beside;
        self
    }

    pub(crate) fn is_plain(&self) -> bool {
        let keyed = self.lease_key.is_some() || self.parent_key.is_some();
        self.share.is_none() && !keyed && self.beside == Beside::Nobody
    }

    pub(crate) fn shares(&self) -> Share {
        self.share.unwrap_or_else(|| self.mode.into())
    }
}
