//! The CREATE request (MS-SMB2 2.2.13) and its response (2.2.14).

use super::contexts::{self, Asked};
use crate::call::{Call, Failure, FileId};
use crate::files::access;
use crate::wire::fscc::file::{FileFacts, attribute};
use crate::wire::{Cursor, Out, Status, out::len32};

/// `CreateOptions`.
pub(crate) mod option {
    pub(crate) const DIRECTORY: u32 = 0x1;
    pub(crate) const WRITE_THROUGH: u32 = 0x2;
    pub(crate) const NON_DIRECTORY: u32 = 0x40;
    pub(crate) const DELETE_ON_CLOSE: u32 = 0x1000;
    pub(crate) const OPEN_REPARSE_POINT: u32 = 0x20_0000;
    /// `FILE_CREATE_TREE_CONNECTION`, `FILE_OPEN_BY_FILE_ID`, `FILE_RESERVE_OPFILTER`.
    pub(super) const UNSUPPORTED: u32 = 0x10_2080;
    /// Bits that mean nothing.
    pub(super) const INVALID: u32 = 0xff00_0000;
    /// What `FileModeInformation` tells of them.
    pub(crate) const MODE: u32 = 0x103e;
}

/// `CreateDisposition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Supersede,
    Open,
    Create,
    OpenIf,
    Overwrite,
    OverwriteIf,
}

impl Disposition {
    fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Supersede,
            1 => Self::Open,
            2 => Self::Create,
            3 => Self::OpenIf,
            4 => Self::Overwrite,
            5 => Self::OverwriteIf,
            _ => return None,
        })
    }

    /// Whether what is there loses its content.
    pub(crate) fn truncates(self) -> bool {
        matches!(self, Self::Supersede | Self::Overwrite | Self::OverwriteIf)
    }

    /// Whether what is not there is made.
    pub(crate) fn makes(self) -> bool {
        !matches!(self, Self::Open | Self::Overwrite)
    }
}

/// `ShareAccess`.
pub(crate) mod share {
    pub(crate) const READ: u32 = 1;
    pub(crate) const WRITE: u32 = 2;
    pub(crate) const DELETE: u32 = 4;
}

/// What a client asks for, checked as far as the request alone goes.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) oplock: u8,
    /// With generic rights spelled out; perhaps [`access::MAXIMUM_ALLOWED`].
    pub(crate) access: u32,
    pub(crate) attributes: u32,
    pub(crate) share: u32,
    pub(crate) disposition: Disposition,
    pub(crate) options: u32,
    /// UTF-16LE.
    pub(crate) name: &'a [u8],
    pub(crate) asked: Asked<'a>,
}

impl<'a> Request<'a> {
    /// # Errors
    /// `BAD_IMPERSONATION_LEVEL`, `INVALID_PARAMETER`, `NOT_SUPPORTED`, `ACCESS_DENIED`,
    /// `PRIVILEGE_NOT_HELD`, as MS-FSA 2.1.5.1 orders them where it does.
    pub(crate) fn parse(call: &Call<'a>) -> Result<Self, Failure> {
        let mut c = Cursor::new(call.body);
        if c.u16()? != 57 {
            return Err(Status::INVALID_PARAMETER.into());
        }
        c.skip(1)?;
        let oplock = c.u8()?;
        let impersonation = c.u32()?;
        c.skip(16)?;
        let (access, attributes, share) = (c.u32()?, c.u32()?, c.u32()?);
        let (disposition, options) = (c.u32()?, c.u32()?);
        let name = (c.u16()?, c.u16()?);
        let contexts = (c.u32()?, c.u32()?);
        let contexts = match contexts {
            (_, 0) => &[][..],
            (offset, len) => call.part(offset as usize, len as usize)?,
        };
        let mut request = Self {
            oplock,
            access: 0,
            attributes,
            share,
            disposition: Disposition::Open,
            options,
            name: call.part(name.0.into(), name.1.into())?,
            asked: contexts::parse(contexts)?,
        };
        if request.asked.back.is_some() {
            // What is open already is as it was asked for then.
            return Ok(request);
        }
        if impersonation > 3 {
            return Err(Status::BAD_IMPERSONATION_LEVEL.into());
        }
        request.access = access::spelled(access).ok_or(Status::ACCESS_DENIED)?;
        let disposition = Disposition::from_code(disposition);
        request.disposition = disposition.ok_or(Status::INVALID_PARAMETER)?;
        request.check()?;
        Ok(request)
    }

    fn check(&self) -> Result<(), Status> {
        let has = |bits: u32| self.options & bits != 0;
        if has(option::INVALID) || self.attributes & !attribute::ALL != 0 || self.share & !7 != 0 {
            return Err(Status::INVALID_PARAMETER);
        }
        if has(option::UNSUPPORTED) {
            return Err(Status::NOT_SUPPORTED);
        }
        if has(option::DIRECTORY) && (has(option::NON_DIRECTORY) || self.disposition.truncates()) {
            return Err(Status::INVALID_PARAMETER);
        }
        if self.access & access::SYSTEM_SECURITY != 0 {
            return Err(Status::PRIVILEGE_NOT_HELD);
        }
        if self.access == 0 {
            return Err(Status::ACCESS_DENIED);
        }
        let deletes = self.access & (access::DELETE | access::MAXIMUM_ALLOWED) != 0;
        if has(option::DELETE_ON_CLOSE) && !deletes {
            return Err(Status::INVALID_PARAMETER);
        }
        Ok(())
    }

    pub(crate) fn has(&self, option: u32) -> bool {
        self.options & option != 0
    }
}

/// `CreateAction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Superseded = 0,
    Opened = 1,
    Created = 2,
    Overwritten = 3,
}

/// What a CREATE is answered with.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) oplock: u8,
    pub(crate) action: Action,
    pub(crate) facts: FileFacts,
    pub(crate) id: FileId,
    /// Encoded create contexts.
    pub(crate) contexts: Vec<u8>,
}

impl Response {
    pub(crate) fn emit(&self) -> Vec<u8> {
        /// From the header to the contexts.
        const CONTEXTS_AT: u32 = 64 + 88;
        let facts = &self.facts;
        let mut out = Out::with_capacity(self.contexts.len().saturating_add(88));
        out.u16(89).u8(self.oplock).u8(0).u32(self.action as u32);
        out.u64(facts.created).u64(facts.accessed);
        out.u64(facts.written).u64(facts.changed);
        out.u64(facts.allocated).u64(facts.size);
        out.u32(facts.attributes).u32(0);
        out.u64(self.id.persistent).u64(self.id.volatile);
        if self.contexts.is_empty() {
            out.u32(0).u32(0);
        } else {
            out.u32(CONTEXTS_AT).u32(len32(self.contexts.len()));
            out.bytes(&self.contexts);
        }
        out.done()
    }
}
