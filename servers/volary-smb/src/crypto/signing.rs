//! Signatures (MS-SMB2 3.1.4.1).

use crate::config::Dialect;
use crate::wire::header::{HEADER_LEN, SIGNATURE_AT};
use aes::Aes128;
use aes::cipher::{BlockCipherEncrypt, KeyInit};
use cmac::Cmac;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// How messages are signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Algorithm {
    HmacSha256,
    AesCmac,
    AesGmac,
}

impl Algorithm {
    const ALL: [Self; 3] = [Self::HmacSha256, Self::AesCmac, Self::AesGmac];

    /// What a dialect signs with, if nothing else is agreed on.
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

/// Who signs: what is in the nonce of GMAC beside the message id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Client,
    /// A client's CANCEL, which has another request's id.
    ClientCancel,
    Server,
}

/// Signs with one key.
pub(crate) struct Signer(Keyed);

enum Keyed {
    HmacSha256(Box<Hmac<Sha256>>),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(Box<(Aes128, GHash)>),
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
                let aes = Aes128::new(key.into());
                let mut hash_key = Default::default();
                aes.encrypt_block(&mut hash_key);
                let hash = GHash::new(&hash_key);
                Keyed::AesGmac(Box::new((aes, hash)))
            }
        })
    }

    /// The signature of a message: of its header, whose own signature is taken
    /// for zeros, and the rest. `id` is the message id, `role` whose it is.
    pub(crate) fn sign(
        &self,
        header: &[u8; HEADER_LEN],
        body: &[u8],
        id: u64,
        role: Role,
    ) -> [u8; 16] {
        let mut signing = self.begin(header, id, role);
        signing.update(body);
        signing.finish()
    }

    /// As [`sign`](Self::sign), piece by piece.
    pub(crate) fn begin(&self, header: &[u8; HEADER_LEN], id: u64, role: Role) -> Signing {
        let mut signing = Signing(match &self.0 {
            Keyed::HmacSha256(mac) => Begun::HmacSha256(mac.clone()),
            Keyed::AesCmac(mac) => Begun::AesCmac(mac.clone()),
            Keyed::AesGmac(keyed) => Begun::AesGmac(Gmac::new(&keyed.0, &keyed.1, nonce(id, role))),
        });
        let mut header = *header;
        header[SIGNATURE_AT..].fill(0);
        signing.update(&header);
        signing
    }

    /// Whether a message, from its header on, bears the right signature.
    pub(crate) fn verify(&self, message: &[u8], id: u64, role: Role) -> bool {
        let Some((header, body)) = message.split_first_chunk::<HEADER_LEN>() else {
            return false;
        };
        let mut signing = self.begin(header, id, role);
        signing.update(body);
        signing.signs(message)
    }
}

/// A signature that is being computed.
pub(crate) struct Signing(Begun);

enum Begun {
    HmacSha256(Box<Hmac<Sha256>>),
    AesCmac(Box<Cmac<Aes128>>),
    AesGmac(Gmac),
}

impl Signing {
    /// What comes next of the body: a multiple of 16 bytes, but for the last piece.
    pub(crate) fn update(&mut self, piece: &[u8]) {
        match &mut self.0 {
            Begun::HmacSha256(mac) => mac.update(piece),
            Begun::AesCmac(mac) => mac.update(piece),
            Begun::AesGmac(mac) => mac.update(piece),
        }
    }

    fn finish(self) -> [u8; 16] {
        match self.0 {
            Begun::HmacSha256(mac) => {
                let whole: [u8; 32] = mac.finalize().into_bytes().into();
                first_16(&whole)
            }
            Begun::AesCmac(mac) => mac.finalize().into_bytes().into(),
            Begun::AesGmac(mac) => mac.finish(),
        }
    }

    /// Whether it is the signature that the message, from its header on, bears.
    pub(crate) fn signs(self, message: &[u8]) -> bool {
        let borne = message.get(SIGNATURE_AT..HEADER_LEN).unwrap_or_default();
        self.finish().ct_eq(borne).into()
    }
}

fn first_16(whole: &[u8; 32]) -> [u8; 16] {
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

/// GMAC (SP 800-38D): GCM of nothing, with the message as what is authenticated.
struct Gmac {
    hash: GHash,
    /// Bytes so far.
    len: u64,
    mask: [u8; 16],
}

impl Gmac {
    fn new(aes: &Aes128, hash: &GHash, nonce: [u8; 12]) -> Self {
        let mut counter = [0; 16];
        counter[..12].copy_from_slice(&nonce);
        counter[15] = 1;
        let mut mask = counter.into();
        aes.encrypt_block(&mut mask);
        Self {
            hash: hash.clone(),
            len: 0,
            mask: mask.into(),
        }
    }

    fn update(&mut self, piece: &[u8]) {
        self.hash.update_padded(piece);
        self.len += piece.len() as u64;
    }

    fn finish(mut self) -> [u8; 16] {
        let mut lengths = [0; 16];
        lengths[..8].copy_from_slice(&(self.len * 8).to_be_bytes());
        self.hash.update(&[lengths.into()]);
        let mut tag: [u8; 16] = self.hash.finalize().into();
        for (byte, mask) in tag.iter_mut().zip(self.mask) {
            *byte ^= mask;
        }
        tag
    }
}
