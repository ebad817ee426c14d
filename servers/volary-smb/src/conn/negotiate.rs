//! NEGOTIATE (MS-SMB2 3.3.5.3, 3.3.5.4) and its validation (3.3.5.15.12).

use super::Conn;
use super::compound::{Broken, Reply};
use super::work::Worker;
use crate::call::Answer;
use crate::config::Dialect;
use crate::wire::{Header, Status};
use std::sync::Arc;

/// `Protocol` of an SMB1 message.
pub(super) const SMB1_MAGIC: [u8; 4] = *b"\xFFSMB";

/// What was agreed on.
#[derive(Debug)]
pub(super) struct Negotiated {
    pub(super) dialect: Dialect,
    pub(super) client_guid: [u8; 16],
    pub(super) io_max: u32,
}

/// A client that speaks SMB1 asks for SMB2.
pub(super) fn from_smb1(_conn: &Arc<Conn>, _frame: &[u8]) -> Result<(), Broken> {
    Err(Broken)
}

pub(super) fn answer(
    conn: &Arc<Conn>,
    worker: &Worker,
    header: &Header,
    _message: &[u8],
) -> Result<(), Broken> {
    let header = super::dispatch::reply_header(conn, header);
    let header = Header {
        status: Status::NOT_SUPPORTED.0,
        ..header
    };
    worker.replies.lock().push(Reply {
        header,
        body: Vec::new(),
        security: Default::default(),
    });
    Ok(())
}

/// The answer to an IOCTL that is about NEGOTIATE.
pub(super) fn validation(_conn: &Arc<Conn>, _message: &[u8]) -> Option<Answer> {
    None
}
