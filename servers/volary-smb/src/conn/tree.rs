//! [`Tree`]: a session's connection to a share, and the commands that make and
//! end one (MS-SMB2 3.3.5.7, 3.3.5.8).

use super::{Conn, Logon};
use crate::answer::{Answer, empty_body};
use crate::config::Limits;
use crate::files::{self, By, Common, FileTable};
use crate::ipc::Pipes;
use crate::server::Shared;
use crate::wire::cursor::part;
use crate::wire::header::HEADER_LEN;
use crate::wire::{Cursor, Out, Status};
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tracing::warn;
use volary_core::escape_short;
use volary_session::Session;

/// `SHI1005_FLAGS_ENCRYPT_DATA` of `ShareFlags`.
const SHARE_ENCRYPTS: u32 = 0x8000;
/// Every right to files.
const ACCESS_ALL: u32 = 0x001F_01FF;
/// Rights to files that change nothing: read, execute, read attributes and
/// extended attributes, read control, synchronize.
const ACCESS_READ: u32 = 0x0012_00A9;

/// A session's connection to a share that is a volume.
pub(crate) struct Tree {
    pub(crate) id: u32,
    /// The share's place in `Config::shares`.
    share: usize,
    server: Arc<Shared>,
    /// The user's session on the volume.
    pub(crate) session: Session,
    /// The most rights that an open can have here.
    pub(crate) access: u32,
    /// Every message about it is encrypted.
    pub(crate) sealed: bool,
    pub(crate) files: FileTable,
    /// What it has in common with the share's other trees.
    pub(crate) common: Arc<Common>,
}

impl Tree {
    /// The share's name.
    pub(crate) fn name(&self) -> &str {
        self.server
            .config
            .shares
            .get(self.share)
            .map_or("", |s| &s.name)
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.server.config.limits
    }

    /// Its user, as who makes changes.
    pub(crate) fn by(&self) -> By<'_> {
        By {
            common: &self.common,
            cred: Some(self.session.cred()),
        }
    }

    /// Whether all changes are refused.
    pub(crate) fn is_read_only(&self) -> bool {
        self.access == ACCESS_READ
    }
}

impl fmt::Debug for Tree {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tree")
            .field("id", &self.id)
            .field("share", &self.name())
            .finish_non_exhaustive()
    }
}

/// What a tree id stands for.
#[derive(Clone, Debug)]
pub(super) enum Joined {
    Disk(Arc<Tree>),
    Pipes(Arc<Pipes>),
}

impl Joined {
    pub(super) fn disk(&self) -> Option<&Arc<Tree>> {
        match self {
            Self::Disk(tree) => Some(tree),
            Self::Pipes(_) => None,
        }
    }
}

/// TREE_CONNECT: the new tree's id and the reply.
///
/// # Errors
/// `INVALID_PARAMETER`, `BAD_NETWORK_NAME`, `ACCESS_DENIED` for a share that is not for
/// this user or this client, and for an encrypted one to a client that cannot,
/// `INSUFFICIENT_RESOURCES`.
pub(super) fn connect(
    conn: &Arc<Conn>,
    logon: &Arc<Logon>,
    message: &[u8],
) -> Result<(u32, Vec<u8>), Status> {
    let name = share_name(message).ok_or(Status::INVALID_PARAMETER)?;
    let id = logon
        .tree_ids
        .fetch_add(1, Ordering::Relaxed)
        .wrapping_add(1);
    let (joined, reply) = join(conn, logon, id, &name)?;
    let place = logon.budget.trees.take(conn.limits().trees_per_user);
    let place = place.ok_or(Status::INSUFFICIENT_RESOURCES)?;
    let mut trees = logon.trees.write();
    if trees.len() >= conn.limits().trees {
        conn.log_limit("trees", &logon.user);
        return Err(Status::INSUFFICIENT_RESOURCES);
    }
    trees.insert(id, joined);
    logon.tree_places.lock().insert(id, place);
    Ok((id, reply))
}

fn join(conn: &Arc<Conn>, logon: &Logon, id: u32, name: &str) -> Result<(Joined, Vec<u8>), Status> {
    if name.eq_ignore_ascii_case("IPC$") {
        let pipes = Joined::Pipes(Arc::new(Pipes::new(conn, logon)));
        return Ok((pipes, reply(2, 0, ACCESS_ALL)));
    }
    let server = &conn.server;
    let place = server.share_place(name).ok_or(Status::BAD_NETWORK_NAME)?;
    let share = server
        .config
        .shares
        .get(place)
        .ok_or(Status::BAD_NETWORK_NAME)?;
    if !share.is_for(&logon.user, conn.peer) {
        let (user, share) = (escape_short(logon.user.as_bytes()), &share.name);
        warn!(target: "SMB", user, address = %conn.peer, share, "share refused");
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
    let common = server.common(place).ok_or(Status::BAD_NETWORK_NAME)?;
    let session = share.volume.session(logon.cred.clone());
    let tree = Tree {
        id,
        share: place,
        server: Arc::clone(server),
        session: session.with_client(common.client),
        access,
        sealed: share.encrypt,
        files: FileTable::default(),
        common,
    };
    let flags = if share.encrypt { SHARE_ENCRYPTS } else { 0 };
    Ok((Joined::Disk(Arc::new(tree)), reply(1, flags, access)))
}

/// The share's name in a request: what follows the last `\` of its path.
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

/// TREE_DISCONNECT.
pub(super) fn disconnect(logon: &Logon, id: u32) -> Answer {
    let joined = logon.trees.write().remove(&id);
    logon.tree_places.lock().remove(&id);
    match joined {
        Some(Joined::Disk(tree)) => files::end_tree(&tree, false),
        Some(Joined::Pipes(_)) => {}
        None => return Err(Status::NETWORK_NAME_DELETED.into()),
    }
    Ok(empty_body())
}
