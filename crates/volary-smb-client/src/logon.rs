//! NTLM version 2 as a client (MS-NLMP 3.1.5.1), without a key exchange.

use crate::wire::utf16;
use hmac::{Hmac, KeyInit, Mac};
use md4::{Digest, Md4};
use md5::Md5;

/// `NTLMSSP_NEGOTIATE_UNICODE`, `_NTLM`, `_EXTENDED_SESSIONSECURITY`.
const FLAGS: u32 = 0x8_0201;

/// Returns a NEGOTIATE_MESSAGE (2.2.1.1).
pub(crate) fn negotiate() -> Vec<u8> {
    let mut message = b"NTLMSSP\0\x01\0\0\0".to_vec();
    message.extend(FLAGS.to_le_bytes());
    message.resize(32, 0);
    message
}

/// Returns an AUTHENTICATE_MESSAGE (2.2.1.3) in answer to a challenge, and the session key.
pub(crate) fn authenticate(challenge: &[u8], user: &str, password: &str) -> (Vec<u8>, [u8; 16]) {
    let nt_hash: [u8; 16] = Md4::digest(utf16(password)).into();
    let key = hmac_md5(&nt_hash, &[&utf16(&user.to_uppercase())]);
    // Version, time, the client's challenge, and no names.
    let mut blob = vec![1, 1];
    blob.resize(32, 0);
    let proof = hmac_md5(&key, &[&challenge[24..32], &blob]);
    let session_key = hmac_md5(&key, &[&proof]);
    let response = [&proof[..], &blob].concat();
    let fields = [&[][..], &response, &[], &utf16(user), &[], &[]];
    let mut message = b"NTLMSSP\0\x03\0\0\0".to_vec();
    let mut at = 72;
    for field in fields {
        let len = (field.len() as u16).to_le_bytes();
        message.extend([len, len].concat());
        message.extend((at as u32).to_le_bytes());
        at += field.len();
    }
    message.extend(FLAGS.to_le_bytes());
    message.resize(72, 0);
    message.extend(fields.concat());
    (message, session_key)
}

fn hmac_md5(key: &[u8; 16], parts: &[&[u8]]) -> [u8; 16] {
    let mut mac = Hmac::<Md5>::new_from_slice(key).expect("any length will do");
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
