//! Encrypted messages (MS-SMB2 2.2.41, 3.1.4.3).

use crate::wire::{Cursor, Out, Short};
use aes::{Aes128, Aes256};
use aws_lc_rs::aead::{AES_128_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ccm::Ccm;
use ccm::aead::inout::InOutBuf;
use ccm::aead::{AeadInOut, KeyInit};
use ccm::consts::{U11, U16};
use std::sync::atomic::{AtomicU64, Ordering};

/// `ProtocolId` of an encrypted message.
pub(crate) const MAGIC: [u8; 4] = *b"\xFDSMB";
/// The length of the transform header.
pub(crate) const TRANSFORM_LEN: usize = 52;
/// The offset of the authenticated part: after `ProtocolId` and `Signature`.
const AUTHENTICATED_AT: usize = 20;

/// The cipher of encrypted messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cipher {
    Aes128Ccm,
    Aes128Gcm,
    Aes256Ccm,
    Aes256Gcm,
}

impl Cipher {
    pub(super) const ALL: [Self; 4] = [
        Self::Aes128Ccm,
        Self::Aes128Gcm,
        Self::Aes256Ccm,
        Self::Aes256Gcm,
    ];

    pub(crate) fn from_code(code: u16) -> Option<Self> {
        Self::ALL.into_iter().find(|c| c.code() == code)
    }

    pub(crate) fn code(self) -> u16 {
        match self {
            Self::Aes128Ccm => 1,
            Self::Aes128Gcm => 2,
            Self::Aes256Ccm => 3,
            Self::Aes256Gcm => 4,
        }
    }

    pub(super) fn key_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes128Gcm => 16,
            Self::Aes256Ccm | Self::Aes256Gcm => 32,
        }
    }

    fn nonce_len(self) -> usize {
        match self {
            Self::Aes128Ccm | Self::Aes256Ccm => 11,
            Self::Aes128Gcm | Self::Aes256Gcm => 12,
        }
    }
}

/// A message that was not encrypted with the right key, or was changed since.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Forged;

/// The header of an encrypted message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TransformHeader {
    signature: [u8; 16],
    nonce: [u8; 16],
    pub(crate) message_len: u32,
    pub(crate) session_id: u64,
}

impl TransformHeader {
    /// Parses a header whose `ProtocolId` has been checked.
    ///
    /// # Errors
    /// [`Short`], also if `Flags` does not say that the message is encrypted.
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(bytes);
        c.skip(4)?;
        let signature = c.array()?;
        let nonce = c.array()?;
        let message_len = c.u32()?;
        c.skip(2)?;
        let is_encrypted = c.u16()? == 1;
        let session_id = c.u64()?;
        let header = Self {
            signature,
            nonce,
            message_len,
            session_id,
        };
        is_encrypted.then_some(header).ok_or(Short)
    }

    fn emit(&self) -> Vec<u8> {
        let mut out = Out::with_capacity(TRANSFORM_LEN);
        out.bytes(&MAGIC).bytes(&self.signature).bytes(&self.nonce);
        out.u32(self.message_len).u16(0).u16(1);
        out.u64(self.session_id);
        out.done()
    }
}

/// Encrypts, or decrypts, with one key. A key does only one of the two, so that nonces are used
/// once.
pub(crate) struct Sealer {
    cipher: Cipher,
    keyed: Keyed,
    next_nonce: AtomicU64,
}

enum Keyed {
    Aes128Ccm(Box<Ccm<Aes128, U16, U11>>),
    Aes256Ccm(Box<Ccm<Aes256, U16, U11>>),
    Gcm(LessSafeKey),
}

impl Sealer {
    /// Returns a sealer for a key of the cipher's length.
    pub(super) fn new(cipher: Cipher, key: &[u8]) -> Self {
        const LEN: &str = "a key of the cipher's length";
        let keyed = match cipher {
            Cipher::Aes128Ccm => Keyed::Aes128Ccm(Box::new(Ccm::new_from_slice(key).expect(LEN))),
            Cipher::Aes256Ccm => Keyed::Aes256Ccm(Box::new(Ccm::new_from_slice(key).expect(LEN))),
            Cipher::Aes128Gcm | Cipher::Aes256Gcm => {
                let is_long = cipher == Cipher::Aes256Gcm;
                let gcm = if is_long { &AES_256_GCM } else { &AES_128_GCM };
                Keyed::Gcm(LessSafeKey::new(UnboundKey::new(gcm, key).expect(LEN)))
            }
        };
        Self {
            cipher,
            keyed,
            next_nonce: AtomicU64::new(1),
        }
    }

    /// Encrypts `message` in place, and returns its transform header. Every call uses a new nonce.
    pub(crate) fn seal(&self, session_id: u64, message: &mut [u8]) -> Vec<u8> {
        let mut nonce = [0; 16];
        let number = self.next_nonce.fetch_add(1, Ordering::Relaxed);
        nonce[..8].copy_from_slice(&number.to_le_bytes());
        let mut header = TransformHeader {
            signature: [0; 16],
            nonce,
            message_len: crate::wire::out::len32(message.len()),
            session_id,
        };
        let bytes = header.emit();
        header.signature = self.encrypt(&nonce, &bytes[AUTHENTICATED_AT..], message);
        header.emit()
    }

    fn encrypt(&self, nonce: &[u8; 16], authenticated: &[u8], message: &mut [u8]) -> [u8; 16] {
        const FITS: &str = "the message is shorter than what the cipher allows";
        let nonce = &nonce[..self.cipher.nonce_len()];
        macro_rules! by {
            ($aead:expr) => {{
                let nonce = nonce.try_into().expect("the cipher's length");
                let buffer = InOutBuf::from(message);
                let tag = $aead.encrypt_inout_detached(nonce, authenticated, buffer);
                tag.expect(FITS).into()
            }};
        }
        match &self.keyed {
            Keyed::Aes128Ccm(aead) => by!(aead),
            Keyed::Aes256Ccm(aead) => by!(aead),
            Keyed::Gcm(key) => {
                let nonce = Nonce::try_assume_unique_for_key(nonce).expect("the cipher's length");
                let authenticated = Aad::from(authenticated);
                let tag = key.seal_in_place_separate_tag(nonce, authenticated, message);
                let tag = tag.expect(FITS);
                tag.as_ref().try_into().expect("a tag of 16 bytes")
            }
        }
    }

    /// Decrypts a message in place, which follows its transform header.
    ///
    /// # Errors
    /// [`Forged`].
    pub(crate) fn open(&self, bytes: &mut [u8]) -> Result<(), Forged> {
        let header = TransformHeader::parse(bytes).map_err(|_| Forged)?;
        let (head, message) = bytes.split_at_mut_checked(TRANSFORM_LEN).ok_or(Forged)?;
        let authenticated = head.get(AUTHENTICATED_AT..).ok_or(Forged)?;
        if header.message_len as usize != message.len() {
            return Err(Forged);
        }
        let nonce = header.nonce.get(..self.cipher.nonce_len()).ok_or(Forged)?;
        macro_rules! by {
            ($aead:expr) => {{
                let nonce = nonce.try_into().map_err(|_| Forged)?;
                let tag = (&header.signature).into();
                let buffer = InOutBuf::from(message);
                let opened = $aead.decrypt_inout_detached(nonce, authenticated, buffer, tag);
                opened.map_err(|_| Forged)
            }};
        }
        match &self.keyed {
            Keyed::Aes128Ccm(aead) => by!(aead),
            Keyed::Aes256Ccm(aead) => by!(aead),
            Keyed::Gcm(key) => {
                let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| Forged)?;
                let (authenticated, tag) = (Aad::from(authenticated), &header.signature);
                let opened = key.open_in_place_separate_tag(nonce, authenticated, tag, message);
                opened.map(drop).map_err(|_| Forged)
            }
        }
    }
}
