//! NTLM version 2 (MS-NLMP): the exchange, and its computations.

use super::logon::{FIRST_TOKEN_MAX, Host, LoggedOn, Refused};
use super::messages::{self, Authenticate, MIC_AT, flags};
use crate::config::User;
use crate::wire::utf16;
use hmac::{Hmac, KeyInit, Mac};
use md5::{Digest, Md5};
use rc4::{Rc4, StreamCipher};
use std::mem;
use subtle::ConstantTimeEq;

/// The state of an exchange.
#[derive(Debug, Default)]
pub(super) enum Ntlm {
    #[default]
    Begun,
    Challenged {
        challenge: [u8; 8],
        /// NEGOTIATE_MESSAGE and CHALLENGE_MESSAGE, which a MIC covers.
        said: Vec<u8>,
    },
    Over,
}

pub(super) enum Step {
    Challenge(Vec<u8>),
    Accepted(Accepted),
}

/// A user whose password is right, with the keys.
pub(super) struct Accepted {
    user: usize,
    session_key: [u8; 16],
    /// Whether signatures are encrypted, which is so if the key was exchanged.
    seals: bool,
}

impl Ntlm {
    pub(super) fn step(&mut self, token: &[u8], host: &Host<'_>) -> Result<Step, Refused> {
        match mem::replace(self, Self::Over) {
            Self::Begun => {
                if token.len() > FIRST_TOKEN_MAX {
                    return Err(Refused::Malformed);
                }
                let asked = messages::negotiate(token)?;
                let challenge = host.challenge;
                let message = messages::challenge(asked, host.name, host.now, challenge);
                let said = [token, &message].concat();
                *self = Self::Challenged { challenge, said };
                Ok(Step::Challenge(message))
            }
            Self::Challenged { challenge, said } => {
                accept(token, challenge, &said, host.users).map(Step::Accepted)
            }
            Self::Over => Err(Refused::Malformed),
        }
    }
}

/// Returns the user name in an AUTHENTICATE_MESSAGE, or `None` for another message.
pub(super) fn claimed(token: &[u8]) -> Option<String> {
    match Authenticate::parse(token) {
        Ok(message) => Some(message.user),
        Err(Refused::Logon) => Some(String::new()),
        Err(Refused::Malformed) => None,
    }
}

fn accept(
    token: &[u8],
    challenge: [u8; 8],
    said: &[u8],
    users: &[User],
) -> Result<Accepted, Refused> {
    let message = Authenticate::parse(token)?;
    let needed = flags::UNICODE | flags::EXTENDED_SESSION_SECURITY;
    if message.flags & needed != needed || message.user.is_empty() {
        return Err(Refused::Logon);
    }
    let name = upper(&message.user);
    let user = users.iter().position(|user| upper(&user.name) == name);
    // An unknown user takes as much time as a known one.
    let hash = user
        .and_then(|at| users.get(at))
        .map(|user| user.nt_hash.bytes());
    let key = response_key(hash.unwrap_or(&[0; 16]), &name, message.domain);
    let proof = hmac_md5(&key, &[&challenge, message.blob]);
    let is_right: bool = proof.ct_eq(&message.proof).into();
    let (Some(user), true) = (user, is_right) else {
        return Err(Refused::Logon);
    };
    let base_key = hmac_md5(&key, &[&proof]);
    let exchanges = message.flags & flags::KEY_EXCHANGE != 0;
    let session_key = if exchanges {
        let mut key: [u8; 16] = message
            .encrypted_key
            .try_into()
            .map_err(|_| Refused::Malformed)?;
        rc4(&base_key, &mut key);
        key
    } else {
        base_key
    };
    if let Some(mic) = message.mic {
        let before = token.get(..MIC_AT).unwrap_or_default();
        let after = token.get(MIC_AT + 16..).unwrap_or_default();
        let right = hmac_md5(&session_key, &[said, before, &[0; 16], after]);
        if !bool::from(right.ct_eq(&mic)) {
            return Err(Refused::Logon);
        }
    }
    Ok(Accepted {
        user,
        session_key,
        seals: exchanges,
    })
}

/// `NTOWFv2` (3.3.2), with the user's name in upper case and the domain in UTF-16.
fn response_key(nt_hash: &[u8; 16], user: &str, domain: &[u8]) -> [u8; 16] {
    hmac_md5(nt_hash, &[&utf16(user), domain])
}

/// Returns text in upper case as on Windows: one character stays one.
pub(super) fn upper(text: &str) -> String {
    text.chars().map(volary_core::fold_char).collect()
}

impl Accepted {
    pub(super) fn logged_on(&self) -> LoggedOn {
        LoggedOn {
            user: self.user,
            session_key: self.session_key,
        }
    }

    /// Returns the server's signature of its first message (3.4.4.2).
    pub(super) fn sign(&self, message: &[u8]) -> [u8; 16] {
        self.signature(message, "server-to-client")
    }

    /// Returns whether this is the client's signature of its first message.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> bool {
        let right = self.signature(message, "client-to-server");
        right.ct_eq(signature).into()
    }

    fn signature(&self, message: &[u8], direction: &str) -> [u8; 16] {
        let key = |what: &str| {
            let magic = format!("session key to {direction} {what} key magic constant\0");
            md5(&[&self.session_key, magic.as_bytes()])
        };
        let number = [0; 4];
        let mac = hmac_md5(&key("signing"), &[&number, message]);
        let mut checksum = [0; 8];
        checksum.copy_from_slice(&mac[..8]);
        if self.seals {
            rc4(&key("sealing"), &mut checksum);
        }
        let mut signature = [0; 16];
        signature[0] = 1;
        signature[4..12].copy_from_slice(&checksum);
        signature
    }
}

fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("any length will do");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}

fn md5(parts: &[&[u8]]) -> [u8; 16] {
    let mut hash = Md5::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().into()
}

fn rc4(key: &[u8; 16], data: &mut [u8]) {
    let mut rc4 = Rc4::new_from_slice(key).expect("16 bytes will do");
    rc4.apply_keystream(data);
}

#[cfg(test)]
pub(super) mod tests;
