//! [`Proof`]: the signature of a long message, computed while it comes.
//!
//! What has come is hashed while the client still sends the rest, and while it is in
//! the processor's cache.

use super::members::Members;
use crate::client::Logon;
use crate::crypto::{Role, Signing};
use crate::wire::Header;
use crate::wire::header::{self, HEADER_LEN, flags};
use std::sync::Arc;

/// Shorter messages come at once.
const LONG: usize = 64 * 1024;

/// A message that is coming.
pub(super) enum Proof {
    /// Its header is not there yet.
    Waiting,
    Running {
        logon: Arc<Logon>,
        signing: Box<Signing>,
        /// How much of it is hashed.
        done: usize,
    },
    /// It is hashed when all of it is there.
    AtOnce(Arc<Logon>),
    /// Whoever carries it out looks at it: it is short, not signed, a compound, or of no session.
    Left,
}

impl Proof {
    /// Of a message of `len` bytes.
    pub(super) fn new(len: usize) -> Self {
        if len < LONG {
            Self::Left
        } else {
            Self::Waiting
        }
    }

    /// `come` is what there is of the message, from its header on.
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

    /// All of the message is there. Who signed it, if that is known and right.
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
