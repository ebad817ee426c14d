//! The CREATE request (MS-SMB2 2.2.13) and its response (2.2.14).

use super::contexts::{self, Asked};
use crate::answer::Failure;
use crate::files::access;
use crate::files::call::Call;
use crate::files::open::level;
use crate::files::oplock;
use crate::wire::FileId;
use crate::wire::create::{Action, Disposition, option, share};
use crate::wire::fscc::file::{FileFacts, attribute};
use crate::wire::{Cursor, Dialect, Out, Status, out::len32};
use volary_session::{LeaseKey, Rights, Share};

/// A request, checked as far as possible by itself.
#[derive(Debug)]
pub(crate) struct Request<'a> {
    pub(crate) oplock: u8,
    /// Access with generic rights expanded, perhaps with [`access::MAXIMUM_ALLOWED`].
    pub(crate) access: u32,
    pub(crate) attributes: u32,
    pub(crate) share: u32,
    pub(crate) disposition: Disposition,
    pub(crate) options: u32,
    /// The name in UTF-16LE.
    pub(crate) name: &'a [u8],
    pub(crate) asked: Asked<'a>,
}

impl<'a> Request<'a> {
    /// Parses a request.
    ///
    /// # Errors
    /// `BAD_IMPERSONATION_LEVEL`, `INVALID_PARAMETER`, `NOT_SUPPORTED`, `ACCESS_DENIED`,
    /// `PRIVILEGE_NOT_HELD`, in the order of MS-FSA 2.1.5.1 if it specifies one.
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
            // A reconnected open keeps the parameters of its first request.
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

impl Request<'_> {
    /// Returns the key of the requested lease, if the dialect has leases.
    pub(super) fn lease(&self, call: &Call<'_>) -> Option<LeaseKey> {
        let asked = self.asked.lease.filter(|_| self.oplock == level::LEASE)?;
        let oldest = match asked.v2 {
            Some(_) => Dialect::Smb300,
            None => Dialect::Smb210,
        };
        (call.link.dialect() >= oldest).then(|| oplock::lease_key(call, asked.key))
    }

    /// Returns the share modes for these rights.
    pub(super) fn shares(&self, access: u32) -> Share {
        let right = |mask: u32, right: Rights| {
            if access & mask != 0 {
                right
            } else {
                Rights::NONE
            }
        };
        let mut wants = right(access::READ_DATA | access::EXECUTE, Rights::READ)
            | right(access::WRITES, Rights::WRITE)
            | right(access::DELETE, Rights::DELETE)
            | right(!access::STAT_ONLY, Rights::OTHER);
        if self.disposition.truncates() {
            wants = wants | Rights::WRITE;
        }
        let allowed = |bit: u32, right: Rights| {
            if self.share & bit != 0 {
                right
            } else {
                Rights::NONE
            }
        };
        let allows = allowed(share::READ, Rights::READ)
            | allowed(share::WRITE, Rights::WRITE)
            | allowed(share::DELETE, Rights::DELETE);
        // An open that does not access data conflicts with nobody.
        let allows = if wants.0 & Rights::ALL.0 == 0 {
            Rights::ALL
        } else {
            allows
        };
        Share { wants, allows }
    }
}

/// The content of a response.
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
        /// The length from the header to the contexts.
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
