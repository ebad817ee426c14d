//! NEGOTIATE (MS-SMB2 2.2.3, 2.2.4).

use super::cursor::part;
use super::header::HEADER_LEN;
use super::{Cursor, Out, Short, Status};

/// `Capabilities`.
pub(crate) mod capabilities {
    pub(crate) const LEASING: u32 = 0x02;
    pub(crate) const LARGE_MTU: u32 = 0x04;
    pub(crate) const DIRECTORY_LEASING: u32 = 0x20;
    pub(crate) const ENCRYPTION: u32 = 0x40;
}

/// `SecurityMode`.
pub(crate) mod security_mode {
    pub(crate) const SIGNING_ENABLED: u16 = 1;
    pub(crate) const SIGNING_REQUIRED: u16 = 2;
}

/// `DialectRevision` for any SMB2 dialect, in the answer to SMB1.
pub(crate) const ANY_SMB2: u16 = 0x02FF;
const SMB311: u16 = 0x0311;
/// The most dialects, contexts, and entries of a context. No real client has more.
const COUNT_MAX: u16 = 64;

const PREAUTH: u16 = 1;
const ENCRYPTION: u16 = 2;
const SIGNING: u16 = 8;
const SHA512: u16 = 1;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) security_mode: u16,
    pub(crate) capabilities: u32,
    pub(crate) client_guid: [u8; 16],
    pub(crate) dialects: Vec<u16>,
    pub(crate) contexts: Contexts,
}

/// The relevant content of the contexts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contexts {
    /// Whether there is a context for pre-authentication integrity.
    pub(crate) has_preauth: bool,
    /// Whether it offers SHA-512.
    pub(crate) has_sha512: bool,
    pub(crate) ciphers: Option<Vec<u16>>,
    pub(crate) signing: Option<Vec<u16>>,
}

impl Request {
    /// Parses a request, from its header on.
    ///
    /// # Errors
    /// `INVALID_PARAMETER`.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, Status> {
        Self::read(message).map_err(|Short| Status::INVALID_PARAMETER)
    }

    fn read(message: &[u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(message.get(HEADER_LEN..).ok_or(Short)?);
        if c.u16()? != 36 {
            return Err(Short);
        }
        let dialect_count = c.u16()?;
        let security_mode = c.u16()?;
        c.skip(2)?;
        let capabilities = c.u32()?;
        let client_guid = c.array()?;
        let (contexts_at, contexts_count) = (c.u32()?, c.u16()?);
        c.skip(2)?;
        let dialects = numbers(&mut c, dialect_count)?;
        if dialects.is_empty() {
            return Err(Short);
        }
        let contexts = if dialects.contains(&SMB311) {
            let len = message
                .len()
                .checked_sub(contexts_at as usize)
                .ok_or(Short)?;
            Contexts::read(part(message, contexts_at as usize, len)?, contexts_count)?
        } else {
            Contexts::default()
        };
        Ok(Self {
            security_mode,
            capabilities,
            client_guid,
            dialects,
            contexts,
        })
    }
}

impl Contexts {
    fn read(mut rest: &[u8], count: u16) -> Result<Self, Short> {
        if count > COUNT_MAX {
            return Err(Short);
        }
        let mut all = Self::default();
        for at in 0..count {
            let mut c = Cursor::new(rest);
            let (kind, len) = (c.u16()?, usize::from(c.u16()?));
            c.skip(4)?;
            all.add(kind, c.take(len)?)?;
            let padded = (8 + len).next_multiple_of(8);
            if at + 1 < count {
                rest = rest.get(padded..).ok_or(Short)?;
            }
        }
        Ok(all)
    }

    /// Adds a context. A context that is given twice is invalid, and unknown kinds are ignored.
    fn add(&mut self, kind: u16, data: &[u8]) -> Result<(), Short> {
        let mut c = Cursor::new(data);
        match kind {
            PREAUTH if !self.has_preauth => {
                let (count, _salt_len) = (c.u16()?, c.u16()?);
                self.has_sha512 = numbers(&mut c, count)?.contains(&SHA512);
                self.has_preauth = true;
            }
            ENCRYPTION if self.ciphers.is_none() => {
                let count = c.u16()?;
                self.ciphers = Some(numbers(&mut c, count)?);
            }
            SIGNING if self.signing.is_none() => {
                let count = c.u16()?;
                self.signing = Some(numbers(&mut c, count)?);
            }
            PREAUTH | ENCRYPTION | SIGNING => return Err(Short),
            _ => {}
        }
        Ok(())
    }
}

fn numbers(c: &mut Cursor<'_>, count: u16) -> Result<Vec<u16>, Short> {
    if count > COUNT_MAX {
        return Err(Short);
    }
    (0..count).map(|_| c.u16()).collect()
}

/// A response.
#[derive(Clone, Debug)]
pub(crate) struct Response {
    pub(crate) security_mode: u16,
    pub(crate) dialect: u16,
    pub(crate) server_guid: [u8; 16],
    pub(crate) capabilities: u32,
    pub(crate) io_max: u32,
    pub(crate) system_time: u64,
    /// The first token of the logon.
    pub(crate) token: Vec<u8>,
    /// Only with 3.1.1.
    pub(crate) contexts: Option<Chosen>,
}

/// The content of a response's contexts.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    pub(crate) salt: [u8; 32],
    /// The chosen algorithms, if the client offered any. 0 means that no cipher is common.
    pub(crate) cipher: Option<u16>,
    pub(crate) signing: Option<u16>,
}

impl Response {
    pub(crate) fn emit(&self) -> Vec<u8> {
        const TOKEN_AT: usize = HEADER_LEN + 64;
        let contexts = self.contexts.as_ref().map(Chosen::emit).unwrap_or_default();
        let token_len = u16::try_from(self.token.len()).unwrap_or(0);
        let contexts_at = (TOKEN_AT + self.token.len()).next_multiple_of(8);
        let mut out = Out::with_capacity(128 + self.token.len());
        out.u16(65).u16(self.security_mode).u16(self.dialect);
        out.u16(u16::try_from(contexts.len()).unwrap_or(0));
        out.bytes(&self.server_guid).u32(self.capabilities);
        out.u32(self.io_max).u32(self.io_max).u32(self.io_max);
        out.u64(self.system_time).u64(0);
        out.u16(TOKEN_AT as u16).u16(token_len);
        let at = if contexts.is_empty() { 0 } else { contexts_at };
        out.u32(super::out::len32(at)).bytes(&self.token);
        for (kind, data) in contexts {
            out.align(8);
            out.u16(kind).u16(u16::try_from(data.len()).unwrap_or(0));
            out.u32(0).bytes(&data);
        }
        out.done()
    }
}

impl Chosen {
    fn emit(&self) -> Vec<(u16, Vec<u8>)> {
        let mut all = Vec::new();
        let mut preauth = Out::new();
        preauth.u16(1).u16(32).u16(SHA512).bytes(&self.salt);
        all.push((PREAUTH, preauth.done()));
        for (kind, chosen) in [(ENCRYPTION, self.cipher), (SIGNING, self.signing)] {
            if let Some(number) = chosen {
                let mut out = Out::new();
                out.u16(1).u16(number);
                all.push((kind, out.done()));
            }
        }
        all
    }
}

/// Returns the dialects in an SMB1 NEGOTIATE (MS-CIFS 2.2.4.52.1).
///
/// # Errors
/// [`Short`] for any other SMB1 message.
pub(crate) fn smb1_dialects(message: &[u8]) -> Result<Vec<&[u8]>, Short> {
    const COMMAND_NEGOTIATE: u8 = 0x72;
    let mut c = Cursor::new(message);
    c.skip(4)?;
    if c.u8()? != COMMAND_NEGOTIATE {
        return Err(Short);
    }
    c.skip(27)?;
    let word_count = c.u8()?;
    c.skip(2 * usize::from(word_count))?;
    let len = c.u16()?;
    let bytes = c.take(len.into())?;
    let all = bytes.split(|byte| *byte == 0).take(COUNT_MAX.into());
    Ok(all.filter_map(|name| name.strip_prefix(&[2])).collect())
}

/// The negotiation that a client wants validated (2.2.31.4).
#[derive(Debug)]
pub(crate) struct Validate {
    pub(crate) capabilities: u32,
    pub(crate) client_guid: [u8; 16],
    pub(crate) security_mode: u16,
    pub(crate) dialects: Vec<u16>,
}

impl Validate {
    pub(crate) fn parse(input: &[u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(input);
        let capabilities = c.u32()?;
        let client_guid = c.array()?;
        let security_mode = c.u16()?;
        let count = c.u16()?;
        Ok(Self {
            capabilities,
            client_guid,
            security_mode,
            dialects: numbers(&mut c, count)?,
        })
    }
}
