//! NTLM's messages (MS-NLMP 2.2).

use super::logon::Refused;
use crate::wire::cursor::part;
use crate::wire::{Cursor, Out, Short, utf16};
use volary_core::Time;

/// `Signature`.
pub(super) const SIGNATURE: [u8; 8] = *b"NTLMSSP\0";

const NEGOTIATE: u32 = 1;
const CHALLENGE: u32 = 2;
const AUTHENTICATE: u32 = 3;

/// `NegotiateFlags` (2.2.2.5).
pub(super) mod flags {
    pub(crate) const UNICODE: u32 = 0x1;
    pub(crate) const REQUEST_TARGET: u32 = 0x4;
    pub(crate) const SIGN: u32 = 0x10;
    pub(crate) const SEAL: u32 = 0x20;
    pub(crate) const NTLM: u32 = 0x200;
    pub(crate) const ALWAYS_SIGN: u32 = 0x8000;
    pub(crate) const TARGET_TYPE_SERVER: u32 = 0x2_0000;
    pub(crate) const EXTENDED_SESSION_SECURITY: u32 = 0x8_0000;
    pub(crate) const TARGET_INFO: u32 = 0x80_0000;
    pub(crate) const VERSION: u32 = 0x200_0000;
    pub(crate) const KEY_128: u32 = 0x2000_0000;
    pub(crate) const KEY_EXCHANGE: u32 = 0x4000_0000;
    pub(crate) const KEY_56: u32 = 0x8000_0000;
}

/// `AvId` (2.2.2.1).
mod av {
    pub(super) const END: u16 = 0;
    pub(super) const COMPUTER: u16 = 1;
    pub(super) const DOMAIN: u16 = 2;
    pub(super) const DNS_COMPUTER: u16 = 3;
    pub(super) const DNS_DOMAIN: u16 = 4;
    pub(super) const FLAGS: u16 = 6;
    pub(super) const TIMESTAMP: u16 = 7;
}

/// In `MsvAvFlags`: the message has a MIC.
const HAS_MIC: u32 = 2;
/// The offset of the MIC, if there is one.
pub(super) const MIC_AT: usize = 72;
/// The length of an NTLM version 1 response. An anonymous user's response is empty.
const NTLM1_RESPONSE_LEN: usize = 24;
/// The longest name or response, in bytes.
const FIELD_MAX: usize = 8 * 1024;

/// Returns the flags of a NEGOTIATE_MESSAGE.
///
/// # Errors
/// [`Short`] for any other message.
pub(super) fn negotiate(message: &[u8]) -> Result<u32, Short> {
    let mut c = Cursor::new(message);
    if c.array()? != SIGNATURE || c.u32()? != NEGOTIATE {
        return Err(Short);
    }
    c.u32()
}

/// Returns a CHALLENGE_MESSAGE.
pub(super) fn challenge(asked: u32, name: &str, now: Time, challenge: [u8; 8]) -> Vec<u8> {
    use flags::*;
    let name = utf16(&name.to_uppercase());
    let info = target_info(&name, now);
    let answered = UNICODE | SIGN | SEAL | ALWAYS_SIGN | KEY_128 | KEY_EXCHANGE | KEY_56;
    let own = NTLM | EXTENDED_SESSION_SECURITY | TARGET_INFO | TARGET_TYPE_SERVER;
    let mut out = Out::with_capacity(56 + name.len() + info.len());
    out.bytes(&SIGNATURE).u32(CHALLENGE);
    field(&mut out, name.len(), 56);
    out.u32(asked & answered | own | REQUEST_TARGET | VERSION);
    out.bytes(&challenge).zeros(8);
    field(&mut out, info.len(), 56 + name.len());
    // Version 6.1, build 0, NTLMSSP_REVISION_W2K3.
    out.bytes(&[6, 1, 0, 0, 0, 0, 0, 15]);
    out.bytes(&name).bytes(&info);
    out.done()
}

fn field(out: &mut Out, len: usize, offset: usize) {
    let len = u16::try_from(len).unwrap_or(u16::MAX);
    out.u16(len).u16(len);
    out.u32(crate::wire::out::len32(offset));
}

fn target_info(name: &[u8], now: Time) -> Vec<u8> {
    let mut out = Out::new();
    let mut pair = |id, value: &[u8]| {
        out.u16(id)
            .u16(u16::try_from(value.len()).unwrap_or(u16::MAX));
        out.bytes(value);
    };
    for id in [av::DOMAIN, av::COMPUTER, av::DNS_DOMAIN, av::DNS_COMPUTER] {
        pair(id, name);
    }
    pair(av::TIMESTAMP, &file_time(now).to_le_bytes());
    pair(av::END, &[]);
    out.done()
}

/// Returns a time in units of 100 ns since 1601.
pub(crate) fn file_time(time: Time) -> u64 {
    let secs = time.secs.saturating_add(11_644_473_600);
    let secs = u64::try_from(secs).unwrap_or(0);
    secs.saturating_mul(10_000_000)
        .saturating_add(u64::from(time.nanos) / 100)
}

/// An AUTHENTICATE_MESSAGE.
#[derive(Debug)]
pub(super) struct Authenticate<'a> {
    /// UTF-16.
    pub(super) domain: &'a [u8],
    pub(super) user: String,
    /// `NTProofStr`.
    pub(super) proof: [u8; 16],
    /// The data that the proof covers, after the challenge.
    pub(super) blob: &'a [u8],
    pub(super) encrypted_key: &'a [u8],
    pub(super) flags: u32,
    pub(super) mic: Option<[u8; 16]>,
}

impl<'a> Authenticate<'a> {
    /// Parses the message.
    ///
    /// # Errors
    /// `Malformed`; `Logon` for anonymous users, and for responses older than NTLMv2.
    pub(super) fn parse(message: &'a [u8]) -> Result<Self, Refused> {
        let mut c = Cursor::new(message);
        if c.array()? != SIGNATURE || c.u32()? != AUTHENTICATE {
            return Err(Refused::Malformed);
        }
        let mut field = || {
            let len = usize::from(c.u16()?);
            c.skip(2)?;
            let offset = c.u32()? as usize;
            if len > FIELD_MAX {
                return Err(Short);
            }
            part(message, if len == 0 { 0 } else { offset }, len)
        };
        let _lm_response = field()?;
        let nt_response = field()?;
        let domain = field()?;
        let user = field()?;
        let _workstation = field()?;
        let encrypted_key = field()?;
        let flags = c.u32()?;
        if nt_response.len() <= NTLM1_RESPONSE_LEN {
            return Err(Refused::Logon);
        }
        let (proof, blob) = nt_response.split_first_chunk().ok_or(Short)?;
        let mic = match has_mic(blob)? {
            true => part(message, MIC_AT, 16)?.first_chunk().copied(),
            false => None,
        };
        Ok(Self {
            domain,
            user: text(user)?,
            proof: *proof,
            blob,
            encrypted_key,
            flags,
            mic,
        })
    }
}

fn text(bytes: &[u8]) -> Result<String, Short> {
    let units = bytes
        .chunks_exact(2)
        .filter_map(|u| u.first_chunk().copied());
    String::from_utf16(&units.map(u16::from_le_bytes).collect::<Vec<_>>()).map_err(|_| Short)
}

/// Returns whether an NTLMv2_CLIENT_CHALLENGE says that its message has a MIC.
fn has_mic(blob: &[u8]) -> Result<bool, Short> {
    let mut c = Cursor::new(blob);
    if c.u16()? != 0x0101 {
        return Err(Short);
    }
    c.skip(26)?;
    let mut has = false;
    loop {
        let (id, len) = (c.u16()?, c.u16()?);
        let value = c.take(len.into())?;
        match id {
            av::END => return Ok(has),
            av::FLAGS => has = Cursor::new(value).u32()? & HAS_MIC != 0,
            _ => {}
        }
    }
}
