//! SPNEGO: selects the mechanism, and carries its tokens (RFC 4178 4.2).

use super::der::{optional, tagged, value};
use crate::wire::{Cursor, Short};

const APPLICATION_0: u8 = 0x60;
const SEQUENCE: u8 = 0x30;
const OID: u8 = 0x06;
const ENUMERATED: u8 = 0x0A;
const OCTETS: u8 = 0x04;
const CONTEXT_0: u8 = 0xA0;
const CONTEXT_1: u8 = 0xA1;
const CONTEXT_2: u8 = 0xA2;
const CONTEXT_3: u8 = 0xA3;

/// 1.3.6.1.5.5.2.
const SPNEGO: &[u8] = &[0x2B, 6, 1, 5, 5, 2];
/// 1.3.6.1.4.1.311.2.2.10.
pub(super) const MECH_NTLM: &[u8] = &[0x2B, 6, 1, 4, 1, 0x82, 0x37, 2, 2, 10];

/// `negState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Completed = 0,
    Incomplete = 1,
    RequestMic = 3,
}

/// A token of a client.
#[derive(Debug)]
pub(super) enum Token<'a> {
    Init(Init<'a>),
    Response(Response<'a>),
}

/// `NegTokenInit`.
#[derive(Debug)]
pub(super) struct Init<'a> {
    /// `mechTypes`, with tag and length. A MIC covers them.
    pub(super) mechanisms: &'a [u8],
    pub(super) token: Option<&'a [u8]>,
}

/// `NegTokenResp`.
#[derive(Debug)]
pub(super) struct Response<'a> {
    pub(super) token: Option<&'a [u8]>,
    pub(super) mic: Option<&'a [u8]>,
}

impl<'a> Init<'a> {
    /// Returns the mechanisms in the client's order of preference.
    pub(super) fn offered(&self) -> impl Iterator<Item = &'a [u8]> + use<'a> {
        let list = value(&mut Cursor::new(self.mechanisms), SEQUENCE);
        let mut c = Cursor::new(list.unwrap_or_default());
        std::iter::from_fn(move || value(&mut c, OID).ok())
    }
}

/// Reads a token.
pub(super) fn parse(token: &[u8]) -> Result<Token<'_>, Short> {
    let mut c = Cursor::new(token);
    if let Some(response) = optional(&mut c, CONTEXT_1)? {
        return response_of(response).map(Token::Response);
    }
    let mut c = Cursor::new(value(&mut c, APPLICATION_0)?);
    if value(&mut c, OID)? != SPNEGO {
        return Err(Short);
    }
    init_of(value(&mut c, CONTEXT_0)?).map(Token::Init)
}

fn init_of(bytes: &[u8]) -> Result<Init<'_>, Short> {
    let mut c = Cursor::new(value(&mut Cursor::new(bytes), SEQUENCE)?);
    let mechanisms = value(&mut c, CONTEXT_0)?;
    optional(&mut c, CONTEXT_1)?;
    let token = octets(&mut c, CONTEXT_2)?;
    Ok(Init { mechanisms, token })
}

fn response_of(bytes: &[u8]) -> Result<Response<'_>, Short> {
    let mut c = Cursor::new(value(&mut Cursor::new(bytes), SEQUENCE)?);
    optional(&mut c, CONTEXT_0)?;
    optional(&mut c, CONTEXT_1)?;
    let token = octets(&mut c, CONTEXT_2)?;
    let mic = octets(&mut c, CONTEXT_3)?;
    Ok(Response { token, mic })
}

fn octets<'a>(c: &mut Cursor<'a>, tag: u8) -> Result<Option<&'a [u8]>, Short> {
    let Some(outer) = optional(c, tag)? else {
        return Ok(None);
    };
    value(&mut Cursor::new(outer), OCTETS).map(Some)
}

/// Returns the server's first token, which offers NTLM only.
pub(super) fn offer() -> Vec<u8> {
    let mechanisms = tagged(SEQUENCE, &[&tagged(OID, &[MECH_NTLM])]);
    let init = tagged(SEQUENCE, &[&tagged(CONTEXT_0, &[&mechanisms])]);
    let token = tagged(CONTEXT_0, &[&init]);
    tagged(APPLICATION_0, &[&tagged(OID, &[SPNEGO]), &token])
}

/// Returns a token that selects NTLM and asks for its first token.
pub(super) fn select(state: State) -> Vec<u8> {
    response(state, &[&mechanism()])
}

/// Returns a token with NTLM's challenge.
pub(super) fn challenge(token: &[u8]) -> Vec<u8> {
    let token = tagged(CONTEXT_2, &[&tagged(OCTETS, &[token])]);
    response(State::Incomplete, &[&mechanism(), &token])
}

/// Returns the token that completes a successful logon.
pub(super) fn completed(mic: Option<&[u8]>) -> Vec<u8> {
    match mic {
        Some(mic) => {
            let mic = tagged(CONTEXT_3, &[&tagged(OCTETS, &[mic])]);
            response(State::Completed, &[&mic])
        }
        None => response(State::Completed, &[]),
    }
}

fn mechanism() -> Vec<u8> {
    tagged(CONTEXT_1, &[&tagged(OID, &[MECH_NTLM])])
}

fn response(state: State, fields: &[&[u8]]) -> Vec<u8> {
    let state = tagged(CONTEXT_0, &[&tagged(ENUMERATED, &[&[state as u8]])]);
    let mut all = vec![&state[..]];
    all.extend(fields);
    tagged(CONTEXT_1, &[&tagged(SEQUENCE, &all)])
}
