//! Signatures (MS-SMB2 3.1.4.1).

use crate::wire::Dialect;
use crate::wire::header::{HEADER_LEN, SIGNATURE_AT};
use aes::Aes128;
use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use cmac::{Cmac, KeyInit};
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// The algorithm of signatures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    HmacSha256,
    AesCmac,
    AesGmac,
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::HmacSha256, Self::AesCmac, Self::AesGmac];

    /// Returns the algorithm of a dialect, if no other is negotiated.
    pub(crate) fn of(dialect: Dialect) -> Self {
        if dialect < Dialect::Smb300 {
            Self::HmacSha256
        } else {
            Self::AesCmac
        }
    }

    pub(crate) fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|a| a.code() == code)
    }

    pub(crate) fn code(self) -> u16 {
        match self {
            Self::HmacSha256 => 0,
            Self::AesCmac => 1,
            Self::AesGmac => 2,
        }
    }
}

/// The signer, which is part of GMAC's nonce beside the message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    /// A client's CANCEL, which has another request's id.
    ClientCancel,
    Server,
}

/// Signs and verifies with one key.
pub(crate) struct Signer(Keyed);

enum Keyed {
    HmacSha256(Box<Hmac<Sha256>>),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(LessSafeKey),
}

impl Signer {
    pub(crate) fn new(algorithm: Algorithm, key: &[u8; 16]) -> Self {
        Self(match algorithm {
            Algorithm::HmacSha256 => {
                let mac = Hmac::new_from_slice(key).expect("any length will do");
                Keyed::HmacSha256(Box::new(mac))
            }
            Algorithm::AesCmac => Keyed::AesCmac(Box::new(Cmac::new(key.into()))),
            Algorithm::AesGmac => {
                let key = UnboundKey::new(&AES_128_GCM, key).expect("a key of 16 bytes");
                Keyed::AesGmac(LessSafeKey::new(key))
            }
        })
    }

    /// Signs a message: its header and the rest. `id` is the message id, and `role` is the signer.
    pub(crate) fn sign(&self, message: &mut [u8], id: u64, role: Role) {
        take_signature(message);
        let signature = self.signature(message, id, role);
        if let Some(place) = message.get_mut(SIGNATURE_AT..HEADER_LEN) {
            place.copy_from_slice(&signature);
        }
    }

    /// Returns the signature of a message that has zeros in its place.
    fn signature(&self, message: &[u8], id: u64, role: Role) -> [u8; 16] {
        match &self.0 {
            Keyed::HmacSha256(mac) => Signing::HmacSha256(mac.clone()).finish_with(message),
            Keyed::AesCmac(mac) => Signing::AesCmac(mac.clone()).finish_with(message),
            // SP 800-38D: GCM of empty data, with the message as additional authenticated data.
            Keyed::AesGmac(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce(id, role));
                let tag = key.seal_in_place_separate_tag(nonce, Aad::from(message), &mut []);
                let tag = tag.expect("the message is shorter than what GCM allows");
                first_16(tag.as_ref())
            }
        }
    }

    /// Begins to verify a message of which only the header has arrived. Returns `None` if it is
    /// faster to wait for the whole message.
    pub(crate) fn begin(&self, header: &[u8; HEADER_LEN]) -> Option<Signing> {
        let mut signing = match &self.0 {
            Keyed::HmacSha256(mac) => Signing::HmacSha256(mac.clone()),
            Keyed::AesCmac(mac) => Signing::AesCmac(mac.clone()),
            Keyed::AesGmac(_) => return None,
        };
        let mut header = *header;
        take_signature(&mut header);
        signing.update(&header);
        Some(signing)
    }

    /// Returns whether a message, from its header on, has the right signature.
    pub(crate) fn verify(&self, message: &[u8], id: u64, role: Role) -> bool {
        self.verify_in_place(&mut message.to_vec(), id, role)
    }

    /// Verifies a signature without a copy. The message is unchanged afterwards.
    pub(crate) fn verify_in_place(&self, message: &mut [u8], id: u64, role: Role) -> bool {
        let Some(borne) = take_signature(message) else {
            return false;
        };
        let right = self.signature(message, id, role);
        if let Some(place) = message.get_mut(SIGNATURE_AT..HEADER_LEN) {
            place.copy_from_slice(&borne);
        }
        right.ct_eq(&borne).into()
    }
}

/// Replaces the signature by zeros and returns it, if the message is long enough.
fn take_signature(message: &mut [u8]) -> Option<[u8; 16]> {
    let place = message.get_mut(SIGNATURE_AT..HEADER_LEN)?;
    let borne = first_16(place);
    place.fill(0);
    Some(borne)
}

/// A signature that is being computed.
pub(crate) enum Signing {
    HmacSha256(Box<Hmac<Sha256>>),
    AesCmac(Box<Cmac<Aes128>>),
}

impl Signing {
    /// Adds the next piece of the body.
    pub(crate) fn update(&mut self, piece: &[u8]) {
        match self {
            Self::HmacSha256(mac) => mac.update(piece),
            Self::AesCmac(mac) => mac.update(piece),
        }
    }

    fn finish_with(mut self, rest: &[u8]) -> [u8; 16] {
        self.update(rest);
        match self {
            Self::HmacSha256(mac) => {
                let whole: [u8; 32] = mac.finalize().into_bytes().into();
                first_16(&whole)
            }
            Self::AesCmac(mac) => mac.finalize().into_bytes().into(),
        }
    }

    /// Returns whether the signature, completed with `rest`, is the one in the message.
    pub(crate) fn signs(self, message: &[u8], rest: &[u8]) -> bool {
        let borne = message.get(SIGNATURE_AT..HEADER_LEN).unwrap_or_default();
        self.finish_with(rest).ct_eq(borne).into()
    }
}

fn first_16(whole: &[u8]) -> [u8; 16] {
    let mut first = [0; 16];
    first.copy_from_slice(&whole[..16]);
    first
}

fn nonce(id: u64, role: Role) -> [u8; 12] {
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&id.to_le_bytes());
    nonce[8] = match role {
        Role::Client => 0,
        Role::Server => 1,
        Role::ClientCancel => 2,
    };
    nonce
}
