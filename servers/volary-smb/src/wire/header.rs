//! The header of every message (MS-SMB2 2.2.1).

use super::{Cursor, Out, Short};

/// The length of the header.
pub(crate) const HEADER_LEN: usize = 64;
/// The offset of the signature in the header.
pub(crate) const SIGNATURE_AT: usize = 48;
/// `ProtocolId` of a message.
pub(crate) const MAGIC: [u8; 4] = *b"\xFESMB";

/// `Flags`.
pub(crate) mod flags {
    /// `SMB2_FLAGS_SERVER_TO_REDIR`.
    pub(crate) const RESPONSE: u32 = 0x1;
    /// `SMB2_FLAGS_ASYNC_COMMAND`.
    pub(crate) const ASYNC: u32 = 0x2;
    /// `SMB2_FLAGS_RELATED_OPERATIONS`.
    pub(crate) const RELATED: u32 = 0x4;
    /// `SMB2_FLAGS_SIGNED`.
    pub(crate) const SIGNED: u32 = 0x8;
    /// `SMB2_FLAGS_PRIORITY_MASK`.
    pub(crate) const PRIORITY: u32 = 0x70;
    /// `SMB2_FLAGS_REPLAY_OPERATION`.
    pub(crate) const REPLAY: u32 = 0x2000_0000;
}

/// `Command`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum Command {
    Negotiate = 0,
    SessionSetup = 1,
    Logoff = 2,
    TreeConnect = 3,
    TreeDisconnect = 4,
    Create = 5,
    Close = 6,
    Flush = 7,
    Read = 8,
    Write = 9,
    Lock = 10,
    Ioctl = 11,
    Cancel = 12,
    Echo = 13,
    QueryDirectory = 14,
    ChangeNotify = 15,
    QueryInfo = 16,
    SetInfo = 17,
    OplockBreak = 18,
}

impl Command {
    const ALL: [Self; 19] = [
        Self::Negotiate,
        Self::SessionSetup,
        Self::Logoff,
        Self::TreeConnect,
        Self::TreeDisconnect,
        Self::Create,
        Self::Close,
        Self::Flush,
        Self::Read,
        Self::Write,
        Self::Lock,
        Self::Ioctl,
        Self::Cancel,
        Self::Echo,
        Self::QueryDirectory,
        Self::ChangeNotify,
        Self::QueryInfo,
        Self::SetInfo,
        Self::OplockBreak,
    ];

    pub(crate) fn from_code(code: u16) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    pub(crate) fn code(self) -> u16 {
        self as u16
    }
}

/// A header without its signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) credit_charge: u16,
    /// In requests: `ChannelSequence` in the lower half.
    pub(crate) status: u32,
    pub(crate) command: u16,
    /// `CreditRequest` or `CreditResponse`.
    pub(crate) credits: u16,
    pub(crate) flags: u32,
    /// Bytes from this header to the next one, or 0 in the last message.
    pub(crate) next_command: u32,
    pub(crate) message_id: u64,
    /// The asynchronous id, with [`flags::ASYNC`]. Otherwise 0.
    pub(crate) async_id: u64,
    /// The tree's id, without [`flags::ASYNC`]. Otherwise 0.
    pub(crate) tree_id: u32,
    pub(crate) session_id: u64,
}

impl Header {
    /// Parses a header whose `ProtocolId` has been checked.
    ///
    /// # Errors
    /// [`Short`], also if `StructureSize` is wrong.
    pub(crate) fn parse(message: &[u8]) -> Result<Self, Short> {
        let mut c = Cursor::new(message);
        c.skip(4)?;
        if c.u16()? != 64 {
            return Err(Short);
        }
        let mut header = Self {
            credit_charge: c.u16()?,
            status: c.u32()?,
            command: c.u16()?,
            credits: c.u16()?,
            flags: c.u32()?,
            next_command: c.u32()?,
            message_id: c.u64()?,
            ..Self::default()
        };
        if header.has(flags::ASYNC) {
            header.async_id = c.u64()?;
        } else {
            c.skip(4)?;
            header.tree_id = c.u32()?;
        }
        header.session_id = c.u64()?;
        c.skip(16)?;
        Ok(header)
    }

    /// Returns the header's bytes, with a signature of zeros.
    pub(crate) fn emit(&self) -> [u8; HEADER_LEN] {
        let mut out = Out::with_capacity(HEADER_LEN);
        out.bytes(&MAGIC).u16(64).u16(self.credit_charge);
        out.u32(self.status).u16(self.command).u16(self.credits);
        out.u32(self.flags).u32(self.next_command);
        out.u64(self.message_id);
        if self.has(flags::ASYNC) {
            out.u64(self.async_id);
        } else {
            out.u32(0).u32(self.tree_id);
        }
        out.u64(self.session_id).zeros(16);
        let mut bytes = [0; HEADER_LEN];
        bytes.copy_from_slice(&out.done());
        bytes
    }

    pub(crate) fn has(&self, flag: u32) -> bool {
        self.flags & flag != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emitted_headers_are_read_back() {
        let mut header = Header {
            credit_charge: 1,
            status: 0xC000_0022,
            command: Command::Create.code(),
            credits: 33,
            flags: flags::SIGNED | flags::RELATED,
            next_command: 88,
            message_id: 7,
            tree_id: 5,
            session_id: 0x1122_3344_5566_7788,
            ..Header::default()
        };
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        header.flags |= flags::ASYNC;
        header.tree_id = 0;
        header.async_id = 9;
        assert_eq!(Header::parse(&header.emit()), Ok(header));
        assert_eq!(Header::parse(&header.emit()[..63]), Err(Short));
    }

    #[test]
    fn commands_keep_their_codes() {
        for (code, command) in (0..).zip(Command::ALL) {
            assert_eq!(command.code(), code);
            assert_eq!(Command::from_code(code), Some(command));
        }
        assert_eq!(Command::from_code(19), None);
    }
}
