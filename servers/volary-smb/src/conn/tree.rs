//! TREE_CONNECT and TREE_DISCONNECT (MS-SMB2 3.3.5.7, 3.3.5.8).

use super::Conn;
use super::members::{Joined, Member};
use crate::answer::{Answer, empty_body};
use crate::files::{self, ACCESS_ALL, ACCESS_READ, FileTable, Tree};
use crate::ipc::Pipes;
use crate::wire::cursor::part;
use crate::wire::header::HEADER_LEN;
use crate::wire::{Cursor, Out, Status};
use std::sync::Arc;
use tracing::warn;
use volary_core::escape_short;

/// `SHI1005_FLAGS_ENCRYPT_DATA` of `ShareFlags`.
const SHARE_ENCRYPTS: u32 = 0x8000;
/// Answers TREE_CONNECT. Returns the new tree's id and the reply.
///
/// # Errors
/// `INVALID_PARAMETER`; `BAD_NETWORK_NAME`; `ACCESS_DENIED` if the share is not for this user or
/// this client, or requires encryption that the client does not support; `INSUFFICIENT_RESOURCES`.
pub(super) fn connect(
    conn: &Conn,
    member: &Member,
    message: &[u8],
) -> Result<(u32, Vec<u8>), Status> {
    let name = share_name(message).ok_or(Status::INVALID_PARAMETER)?;
    let (link, logon) = (&conn.link, &member.logon);
    let id = member.next_tree_id();
    let (joined, reply) = join(conn, member, id, &name)?;
    let place = logon.budget.trees.take(link.limits().trees_per_user);
    let place = place.ok_or(Status::INSUFFICIENT_RESOURCES)?;
    if !member.join(id, joined, place, link.limits().trees) {
        link.log_limit("trees", &logon.user);
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    Ok((id, reply))
}

fn join(conn: &Conn, member: &Member, id: u32, name: &str) -> Result<(Joined, Vec<u8>), Status> {
    let (link, logon) = (&conn.link, &member.logon);
    if name.eq_ignore_ascii_case("IPC$") {
        let pipes = Joined::Pipes(Arc::new(Pipes::new(link, logon)));
        return Ok((pipes, reply(2, 0, ACCESS_ALL)));
    }
    let shared = &link.shared;
    let place = shared.share_place(name).ok_or(Status::BAD_NETWORK_NAME)?;
    let share = shared
        .config
        .shares
        .get(place)
        .ok_or(Status::BAD_NETWORK_NAME)?;
    if !share.is_for(&logon.user, link.peer) {
        let (user, share) = (escape_short(logon.user.as_bytes()), &share.name);
        warn!(target: "SMB", user, address = %link.peer, share, "share refused");
        return Err(Status::ACCESS_DENIED);
    }
    if share.encrypt && logon.keys.seal.is_none() {
        return Err(Status::ACCESS_DENIED);
    }
    let access = if share.read_only {
        ACCESS_READ
    } else {
        ACCESS_ALL
    };
    let common = conn
        .register
        .common(place)
        .ok_or(Status::BAD_NETWORK_NAME)?;
    let session = share.volume.session(logon.cred.clone());
    let tree = Tree {
        id,
        share: place,
        config: Arc::clone(&shared.config),
        session: session.with_client(common.client),
        access,
        sealed: share.encrypt,
        files: FileTable::default(),
        common,
    };
    let flags = if share.encrypt { SHARE_ENCRYPTS } else { 0 };
    Ok((Joined::Disk(Arc::new(tree)), reply(1, flags, access)))
}

/// Returns the share's name in a request, which follows the last `\` of its path.
fn share_name(message: &[u8]) -> Option<String> {
    let mut c = Cursor::new(message.get(HEADER_LEN..)?);
    if c.u16().ok()? != 9 {
        return None;
    }
    c.skip(2).ok()?;
    let (offset, len) = (c.u16().ok()?, c.u16().ok()?);
    let path = part(message, offset.into(), len.into()).ok()?;
    let units = path
        .chunks_exact(2)
        .filter_map(|u| u.first_chunk().copied());
    let path = String::from_utf16(&units.map(u16::from_le_bytes).collect::<Vec<_>>()).ok()?;
    Some(path.rsplit('\\').next()?.to_owned())
}

fn reply(share_type: u8, flags: u32, access: u32) -> Vec<u8> {
    let mut out = Out::with_capacity(16);
    out.u16(16).u8(share_type).u8(0);
    out.u32(flags).u32(0).u32(access);
    out.done()
}

/// Answers TREE_DISCONNECT.
pub(super) fn disconnect(member: &Member, id: u32) -> Answer {
    match member.part(id) {
        Some(Joined::Disk(tree)) => files::end_tree(&tree, false),
        Some(Joined::Pipes(_)) => {}
        None => return Err(Status::NETWORK_NAME_DELETED.into()),
    }
    Ok(empty_body())
}
