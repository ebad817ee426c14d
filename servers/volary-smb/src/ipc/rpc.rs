//! DCE/RPC over a pipe (C706 chapter 12, MS-RPCE): bind, alter, request.

use super::caller::Caller;
use super::srvsvc;
use crate::wire::{Cursor, Out, Short, Status};
use std::collections::VecDeque;

/// `PTYPE`.
mod kind {
    pub(super) const REQUEST: u8 = 0;
    pub(super) const RESPONSE: u8 = 2;
    pub(super) const FAULT: u8 = 3;
    pub(super) const BIND: u8 = 11;
    pub(super) const BIND_ACK: u8 = 12;
    pub(super) const BIND_NAK: u8 = 13;
    pub(super) const ALTER: u8 = 14;
    pub(super) const ALTER_ANSWER: u8 = 15;
}

const FIRST: u8 = 1;
const LAST: u8 = 2;
const HAS_UUID: u8 = 0x80;
/// Little-endian, ASCII, IEEE.
const DATA_REPRESENTATION: [u8; 4] = [0x10, 0, 0, 0];
const HEADER_LEN: usize = 16;
/// The length of the longest fragment, and the least that a client must accept.
const FRAGMENT_MAX: u16 = 4280;
const FRAGMENT_MIN: u16 = 1432;
/// The longest arguments of a call.
const ARGS_MAX: usize = 64 * 1024;
/// Bytes of unread answers from which on no more fragments are accepted.
const UNREAD_MAX: usize = 16 * 1024;
/// `4b324fc8-1670-01d3-1278-5a47bf6ee188` version 3.0: `srvsvc`.
const SRVSVC: [u8; 20] =
    *b"\xc8\x4f\x32\x4b\x70\x16\xd3\x01\x12\x78\x5a\x47\xbf\x6e\xe1\x88\x03\0\0\0";
/// `8a885d04-1ceb-11c9-9fe8-08002b104860` version 2: NDR.
const NDR: [u8; 20] =
    *b"\x04\x5d\x88\x8a\xeb\x1c\xc9\x11\x9f\xe8\x08\x00\x2b\x10\x48\x60\x02\0\0\0";

/// `nca_s_op_rng_error`, `nca_s_fault_ndr`, `nca_s_unk_if`.
const FAULT_OPERATION: u32 = 0x1C01_0002;
const FAULT_NDR: u32 = 0x0000_06F7;
const FAULT_INTERFACE: u32 = 0x1C01_0003;

/// An open pipe.
#[derive(Debug)]
pub(super) struct Pipe {
    bound: bool,
    fragment_max: u16,
    /// Arguments of an incomplete call.
    args: Vec<u8>,
    answers: VecDeque<Vec<u8>>,
}

impl Default for Pipe {
    fn default() -> Self {
        Self {
            bound: false,
            fragment_max: FRAGMENT_MAX,
            args: Vec::new(),
            answers: VecDeque::new(),
        }
    }
}

struct Fragment<'a> {
    kind: u8,
    flags: u8,
    call: u32,
    body: Cursor<'a>,
}

impl<'a> Fragment<'a> {
    fn parse(c: &mut Cursor<'a>) -> Result<Self, Short> {
        let all = c.rest();
        let (major, _minor, kind, flags) = (c.u8()?, c.u8()?, c.u8()?, c.u8()?);
        let order: [u8; 4] = c.array()?;
        let (len, auth_len, call) = (c.u16()?, c.u16()?, c.u32()?);
        let all = all.get(..len.into()).ok_or(Short)?;
        let body = all.get(HEADER_LEN..).ok_or(Short)?;
        c.skip(body.len())?;
        if major != 5 || order != DATA_REPRESENTATION || auth_len != 0 {
            return Err(Short);
        }
        Ok(Self {
            kind,
            flags,
            call,
            body: Cursor::new(body),
        })
    }
}

impl Pipe {
    /// Processes fragments.
    ///
    /// # Errors
    /// For each fragment: `INSUFFICIENT_RESOURCES` while [`UNREAD_MAX`] bytes of answers are
    /// unread; `PIPE_BROKEN` for one that is not RPC.
    pub(super) fn write(&mut self, data: &[u8], caller: Caller<'_>) -> Result<(), Status> {
        let mut c = Cursor::new(data);
        while !c.is_empty() {
            if self.unread() >= UNREAD_MAX {
                return Err(Status::INSUFFICIENT_RESOURCES);
            }
            let fragment = Fragment::parse(&mut c).map_err(|_| Status::PIPE_BROKEN)?;
            self.take(fragment, caller)
                .map_err(|_| Status::PIPE_BROKEN)?;
        }
        Ok(())
    }

    /// Returns the next fragment of an answer, or its first `len` bytes. Also returns whether that
    /// completes the fragment.
    ///
    /// # Errors
    /// `PIPE_EMPTY`.
    pub(super) fn read(&mut self, len: usize) -> Result<(Vec<u8>, bool), Status> {
        let mut next = self.answers.pop_front().ok_or(Status::PIPE_EMPTY)?;
        if next.len() <= len {
            return Ok((next, true));
        }
        let rest = next.split_off(len);
        self.answers.push_front(rest);
        Ok((next, false))
    }

    fn unread(&self) -> usize {
        self.answers.iter().map(Vec::len).sum()
    }

    fn take(&mut self, mut fragment: Fragment<'_>, caller: Caller<'_>) -> Result<(), Short> {
        match fragment.kind {
            kind::BIND | kind::ALTER => self.bind(&mut fragment),
            kind::REQUEST => self.request(&mut fragment, caller),
            _ => Err(Short),
        }
    }

    fn bind(&mut self, fragment: &mut Fragment<'_>) -> Result<(), Short> {
        let c = &mut fragment.body;
        let (_send_max, receive_max) = (c.u16()?, c.u16()?);
        c.skip(4)?;
        let count = c.u8()?;
        c.skip(3)?;
        let mut results = Vec::new();
        for _ in 0..count {
            results.push(context(c)?);
        }
        let is_bind = fragment.kind == kind::BIND;
        if is_bind && self.bound || results.is_empty() {
            let mut nak = Out::new();
            nak.u16(0).u8(1).u8(5).u8(0);
            self.answer(kind::BIND_NAK, FIRST | LAST, fragment.call, &nak.done());
            return Ok(());
        }
        self.bound |= results.contains(&Bound::Yes);
        if is_bind {
            self.fragment_max = receive_max.clamp(FRAGMENT_MIN, FRAGMENT_MAX);
        }
        let address: &[u8] = if is_bind { b"\\PIPE\\srvsvc\0" } else { b"" };
        let mut out = Out::new();
        out.u16(self.fragment_max)
            .u16(self.fragment_max)
            .u32(0x53F0);
        out.u16(address.len() as u16).bytes(address).align(4);
        out.u8(count).zeros(3);
        for result in results {
            match result {
                Bound::Yes => out.u32(0).bytes(&NDR),
                Bound::No(reason) => out.u16(2).u16(reason).zeros(20),
            };
        }
        let kind = if is_bind {
            kind::BIND_ACK
        } else {
            kind::ALTER_ANSWER
        };
        self.answer(kind, FIRST | LAST, fragment.call, &out.done());
        Ok(())
    }

    fn request(&mut self, fragment: &mut Fragment<'_>, caller: Caller<'_>) -> Result<(), Short> {
        let c = &mut fragment.body;
        c.skip(4)?;
        let (context, operation) = (c.u16()?, c.u16()?);
        if fragment.flags & HAS_UUID != 0 {
            c.skip(16)?;
        }
        if fragment.flags & FIRST != 0 {
            self.args.clear();
        }
        if self.args.len() + c.rest().len() > ARGS_MAX {
            return Err(Short);
        }
        self.args.extend_from_slice(c.rest());
        if fragment.flags & LAST == 0 {
            return Ok(());
        }
        let args = std::mem::take(&mut self.args);
        let result = if self.bound {
            srvsvc::call(caller, operation, &args)
        } else {
            Err(srvsvc::Fault::Unbound)
        };
        match result {
            Ok(result) => self.respond(fragment.call, context, &result),
            Err(fault) => self.fault(fragment.call, context, fault),
        }
        Ok(())
    }

    fn respond(&mut self, call: u32, context: u16, result: &[u8]) {
        let room = usize::from(self.fragment_max) - HEADER_LEN - 8;
        let count = result.len().div_ceil(room).max(1);
        for at in 0..count {
            let rest = result.get(at * room..).unwrap_or_default();
            let piece = rest.get(..room).unwrap_or(rest);
            let mut out = Out::with_capacity(8 + piece.len());
            out.u32(crate::wire::out::len32(rest.len()));
            out.u16(context).u16(0).bytes(piece);
            let first = if at == 0 { FIRST } else { 0 };
            let last = if at + 1 == count { LAST } else { 0 };
            self.answer(kind::RESPONSE, first | last, call, &out.done());
        }
    }

    fn fault(&mut self, call: u32, context: u16, fault: srvsvc::Fault) {
        let status = match fault {
            srvsvc::Fault::Operation => FAULT_OPERATION,
            srvsvc::Fault::Args => FAULT_NDR,
            srvsvc::Fault::Unbound => FAULT_INTERFACE,
        };
        let mut out = Out::new();
        out.u32(0).u16(context).u16(0).u32(status).u32(0);
        self.answer(kind::FAULT, FIRST | LAST, call, &out.done());
    }

    fn answer(&mut self, kind: u8, flags: u8, call: u32, body: &[u8]) {
        let len = u16::try_from(HEADER_LEN + body.len()).unwrap_or(u16::MAX);
        let mut out = Out::with_capacity(HEADER_LEN + body.len());
        out.u8(5).u8(0).u8(kind).u8(flags);
        out.bytes(&DATA_REPRESENTATION).u16(len).u16(0).u32(call);
        out.bytes(body);
        self.answers.push_back(out.done());
    }
}

/// The result for a presentation context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bound {
    Yes,
    /// Refused, with the reason.
    No(u16),
}

fn context(c: &mut Cursor<'_>) -> Result<Bound, Short> {
    c.skip(2)?;
    let transfers = c.u8()?;
    c.skip(1)?;
    let interface: [u8; 20] = c.array()?;
    let mut knows_ndr = false;
    for _ in 0..transfers {
        knows_ndr |= c.array::<20>()? == NDR;
    }
    Ok(match (interface == SRVSVC, knows_ndr) {
        (true, true) => Bound::Yes,
        (false, _) => Bound::No(1),
        (true, false) => Bound::No(2),
    })
}
