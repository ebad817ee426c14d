//! [`Logon`]: a user's session on a connection (Session in MS-SMB2).

use crate::budget::Budget;
use crate::config::User;
use crate::crypto::Keys;
use crate::wire::header::{HEADER_LEN, SIGNATURE_AT};
use parking_lot::Mutex;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use volary_core::Cred;

/// The most signed SESSION_SETUPs of a session that are remembered, to detect repeated ones.
const SETUPS_MAX: usize = 256;

/// A user who has logged on, and the keys of the session. It ends by logging off, with the
/// connection, or when the same client's next session replaces it.
pub(crate) struct Logon {
    pub(crate) id: u64,
    /// The user's name, as configured.
    pub(crate) user: String,
    pub(crate) cred: Cred,
    /// The user's resources, on all connections.
    pub(crate) budget: Arc<Budget>,
    pub(crate) keys: Keys,
    /// Every message of the session must be signed or encrypted.
    pub(crate) signing_required: bool,
    /// Every message of the session must be encrypted.
    pub(crate) sealed: bool,
    ended: AtomicBool,
    /// How many messages had a wrong signature.
    pub(crate) forged: AtomicU32,
    /// Signatures of SESSION_SETUP requests that came on any connection.
    setups: Mutex<HashSet<[u8; HEADER_LEN - SIGNATURE_AT]>>,
}

impl Logon {
    pub(crate) fn new(
        id: u64,
        user: &User,
        budget: Arc<Budget>,
        keys: Keys,
        signing_required: bool,
        sealed: bool,
    ) -> Self {
        Self {
            id,
            user: user.name.clone(),
            cred: user.cred.clone(),
            budget,
            keys,
            signing_required,
            sealed,
            ended: AtomicBool::new(false),
            forged: AtomicU32::new(0),
            setups: Mutex::default(),
        }
    }

    /// Notes a SESSION_SETUP with this session's signature. Returns whether it is new on all
    /// connections. Returns false too if there were too many to tell.
    pub(crate) fn is_new_setup(&self, message: &[u8]) -> bool {
        let signature = message.get(SIGNATURE_AT..HEADER_LEN);
        let Some(signature) = signature.and_then(|bytes| bytes.try_into().ok()) else {
            return false;
        };
        let mut setups = self.setups.lock();
        setups.len() < SETUPS_MAX && setups.insert(signature)
    }

    /// Returns whether the session is over. The server then sends nothing unsolicited about it.
    pub(crate) fn has_ended(&self) -> bool {
        self.ended.load(Ordering::SeqCst)
    }

    /// Returns whether every message of the session must be encrypted.
    pub(crate) fn is_sealed(&self) -> bool {
        self.sealed
    }

    /// Ends the session. Returns false if it had already ended.
    pub(crate) fn end(&self) -> bool {
        !self.ended.swap(true, Ordering::SeqCst)
    }
}

impl fmt::Debug for Logon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Logon")
            .field("id", &self.id)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}
