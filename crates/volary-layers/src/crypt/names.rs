//! Names and targets of symlinks, as stored on the volume.
//!
//! A name is sealed by AES-256-SIV (RFC 5297), which needs no nonce: in one directory, the same
//! name always gives the same result. It is bound to the directory's id, and written in lower-case
//! base 32 (RFC 4648, the extended hex alphabet), which case-insensitive volumes can hold too.

use super::keys::{Keys, broken};
use aes_siv::KeyInit;
use aes_siv::siv::Aes256Siv;
use data_encoding::{BASE32_DNSSEC, BASE64URL_NOPAD};
use volary_core::{Kind, Result};

/// The id of a directory.
pub(super) type DirId = [u8; 16];

const TAG: usize = 16;

/// Returns the length of the longest name above, if names below may have `below` bytes.
pub(super) fn name_max(below: u16) -> u16 {
    (below / 8 * 5 + below % 8 * 5 / 8).saturating_sub(TAG as u16)
}

/// Returns the sealed form of a name.
pub(super) fn seal(keys: &Keys, dir: &DirId, name: &[u8]) -> Result<Vec<u8>> {
    let sealed = cipher(&keys.names)?
        .encrypt([dir], name)
        .map_err(|_| broken())?;
    Ok(BASE32_DNSSEC.encode(&sealed).into_bytes())
}

/// Returns the plain form of a name; `None` if it was not sealed for this directory.
pub(super) fn open(keys: &Keys, dir: &DirId, sealed: &[u8]) -> Option<Vec<u8>> {
    let sealed = BASE32_DNSSEC.decode(sealed).ok()?;
    cipher(&keys.names).ok()?.decrypt([dir], &sealed).ok()
}

/// Returns the sealed form of a symlink's target. A nonce hides that two targets are the same.
pub(super) fn seal_target(keys: &Keys, target: &[u8]) -> Result<Vec<u8>> {
    let nonce = keys.nonce();
    let sealed = cipher(&keys.targets)?
        .encrypt([&nonce], target)
        .map_err(|_| broken())?;
    let whole = [&nonce[..], &sealed].concat();
    Ok(BASE64URL_NOPAD.encode(&whole).into_bytes())
}

/// # Errors
/// `Corrupt` if it was not sealed by this layer.
pub(super) fn open_target(keys: &Keys, sealed: &[u8]) -> Result<Vec<u8>> {
    let bad = || {
        let expected = "one that layer crypt made";
        volary_core::Error::corrupt("symlink's target", 0, "something else", expected)
    };
    let whole = BASE64URL_NOPAD.decode(sealed).map_err(|_| bad())?;
    let (nonce, sealed) = whole.split_first_chunk::<24>().ok_or_else(bad)?;
    let opened = cipher(&keys.targets)?.decrypt([nonce], sealed);
    opened.map_err(|_| bad())
}

/// Returns the length of a target from that of its sealed form.
pub(super) fn target_len(below: u64) -> u64 {
    let bytes = below / 4 * 3 + below % 4 * 3 / 4;
    bytes.saturating_sub((24 + TAG) as u64)
}

fn cipher(key: &[u8; 64]) -> Result<Aes256Siv> {
    Aes256Siv::new_from_slice(key).map_err(|_| Kind::Io.into())
}
