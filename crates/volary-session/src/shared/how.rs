//! [`OpenHow`]: how to open a node.

use crate::shared::leases::LeaseKey;
use crate::shared::sharing::Share;
use volary_core::{Mode, OpenId};

/// How to open a node. Can be made from a [`Mode`], with the defaults of a POSIX caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenHow {
    /// The access that is wanted.
    pub mode: Mode,
    /// Every write goes to the end, as it is at that moment (`O_APPEND`).
    pub append: bool,
    /// Empty the file first (`O_TRUNC`).
    pub truncate: bool,
    /// The share mode. If there is one, the open remembers the entry that it came through
    /// ([`Session::place`](crate::Session::place)). Without one, the open wants what `mode` says
    /// and allows everything.
    pub share: Option<Share>,
    /// The opener's key: neither the opening nor anything done through the open breaks a lease
    /// under it.
    pub lease_key: Option<LeaseKey>,
    /// A key of the directory's leases: nothing done through the open breaks a lease under it.
    pub parent_key: Option<LeaseKey>,
    /// The open is kept between calls by a server whose protocol has no opens. It never conflicts
    /// with others' share modes or leases; instead, each read and write checks other clients' share
    /// modes again (`Sharing`). Only without a share mode and keys.
    pub momentary: bool,
    /// Opens that never conflict with this one, whatever the share modes say.
    pub beside: Beside,
}

/// Which other opens never conflict with an open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Beside {
    /// None.
    #[default]
    Nobody,
    /// This one, which the new open replaces.
    Open(OpenId),
    /// All of the same client, now and later.
    Client,
    /// Those of [`Client`](Self::Client), and all others that exist now.
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
    /// Marks an open that a server keeps between calls of a protocol without opens.
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

    /// Sets the key under which the opener holds a lease, or will ask for one.
    #[must_use]
    pub fn with_lease_key(mut self, key: LeaseKey) -> Self {
        self.lease_key = Some(key);
        self
    }

    /// Sets the opens that never conflict with this one.
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
