//! [`Proof`]: verifies the signature of a long message while it arrives.
//!
//! The part that has arrived is hashed while the client sends the rest, and while the bytes are in
//! the processor's cache.

use super::members::Members;
use crate::client::Logon;
use crate::crypto::{Role, Signing};
use crate::wire::Header;
use crate::wire::header::{self, HEADER_LEN, flags};
use std::sync::Arc;

/// The shortest message for which this pays. Shorter ones arrive at once.
const LONG: usize = 64 * 1024;

/// The verification of a message that is arriving.
pub(super) enum Proof {
    /// The header has not arrived yet.
    Waiting,
    Running {
        logon: Arc<Logon>,
        signing: Box<Signing>,
        /// How many bytes are hashed.
        done: usize,
    },
    /// The message is hashed once it is complete.
    AtOnce(Arc<Logon>),
    /// Verification is left to the code that carries the message out. The message is short,
    /// unsigned, a compound, or without a session.
    Left,
}

impl Proof {
    /// Begins with a message of `len` bytes.
    pub(super) fn new(len: usize) -> Self {
        if len < LONG {
            Self::Left
        } else {
            Self::Waiting
        }
    }

    /// Processes the part of the message that has arrived, from its header on.
    pub(super) fn hear(&mut self, members: &Members, come: &[u8]) {
        if matches!(self, Self::Waiting)
            && let Some(header) = come.first_chunk()
        {
            *self = Self::begin(members, header).unwrap_or(Self::Left);
        }
        if let Self::Running { signing, done, .. } = self {
            signing.update(come.get(*done..).unwrap_or_default());
            *done = come.len().max(*done);
        }
    }

    fn begin(members: &Members, bytes: &[u8; HEADER_LEN]) -> Option<Self> {
        if !bytes.starts_with(&header::MAGIC) {
            return None;
        }
        let header = Header::parse(bytes).ok()?;
        if !header.has(flags::SIGNED) || header.next_command != 0 {
            return None;
        }
        let logon = members.logon(header.session_id)?;
        Some(match logon.keys.signer.begin(bytes) {
            Some(signing) => Self::Running {
                logon,
                signing: Box::new(signing),
                done: HEADER_LEN,
            },
            None => Self::AtOnce(logon),
        })
    }

    /// Ends when the message is complete. Returns who signed it, if this is known and the signature
    /// is right.
    pub(super) fn end(self, message: &mut [u8]) -> Option<Arc<Logon>> {
        match self {
            Self::Waiting | Self::Left => None,
            Self::Running {
                logon,
                signing,
                done,
            } => {
                let rest = message.get(done..)?;
                signing.signs(message, rest).then_some(logon)
            }
            Self::AtOnce(logon) => {
                let id = Header::parse(message).ok()?.message_id;
                let signer = &logon.keys.signer;
                let is_right = signer.verify_in_place(message, id, Role::Client);
                is_right.then_some(logon)
            }
        }
    }
}
