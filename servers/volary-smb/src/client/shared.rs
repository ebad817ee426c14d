//! [`Shared`]: what all clients of a server share.

use crate::budget::Budget;
use crate::config::Config;
use crate::crypto;
use crate::guesses::Guesses;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::fmt;
use std::hash::Hash;
use std::sync::Arc;
use volary_core::same_name;
use volary_session::{LeaseKey, Pool};

/// What all clients of a server share.
pub(crate) struct Shared {
    pub(crate) config: Arc<Config>,
    /// The server's GUID in NEGOTIATE.
    pub(crate) guid: [u8; 16],
    /// The secret from which keys of leases are derived.
    lease_secret: [u8; 16],
    /// For each configured user, their resources.
    budgets: Vec<Arc<Budget>>,
    /// Delays after wrong passwords.
    pub(crate) guesses: Guesses,
    /// The threads of all connections, except the first one of each.
    pub(crate) threads: Arc<Pool>,
}

impl Shared {
    pub(crate) fn new(config: Config) -> Self {
        let limits = &config.limits;
        let threads = Pool::new(limits.threads_beside, limits.threads_beside_per_peer);
        Self {
            guid: crypto::random(),
            lease_secret: crypto::random(),
            budgets: config.users.iter().map(|_| Arc::default()).collect(),
            guesses: Guesses::new(config.users.len(), limits.failed_logon_delay),
            threads: Arc::new(threads),
            config: Arc::new(config),
        }
    }

    /// Returns the key under which sessions store a lease. It combines the client and the user,
    /// because any user can claim to be on another's client.
    pub(crate) fn lease_key(&self, user: &str, client: [u8; 16], key: [u8; 16]) -> LeaseKey {
        let mut hasher = SipHasher13::new_with_key(&self.lease_secret);
        (client, user).hash(&mut hasher);
        LeaseKey {
            client: hasher.finish128().as_bytes(),
            key,
        }
    }

    /// Returns the resources of the user at `place` in the configuration.
    pub(crate) fn budget(&self, place: usize) -> Arc<Budget> {
        self.budgets.get(place).cloned().unwrap_or_default()
    }

    /// Returns the index in the configuration of the share called `name`.
    pub(crate) fn share_place(&self, name: &str) -> Option<usize> {
        let mut shares = self.config.shares.iter();
        shares.position(|share| same_name(share.name.as_bytes(), name.as_bytes()))
    }

    /// Wakes requests that wait on any volume, so that they notice at once if they are cancelled.
    pub(crate) fn wake_waiting(&self) {
        for share in &self.config.shares {
            share.volume.wake_waiting();
        }
    }
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared")
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
