//! From a path in a request to nodes: upper and lower case are the same, symlinks stop the walk.
//!
//! On a volume that tells them apart, a name is looked up as given first. Only if that finds
//! nothing, and the directory is not [known](super::known) to lack it, is the directory read for a
//! name that differs in case alone, or whose 8.3 name this is. Under the layer `casefold`, or on a
//! volume that does not tell them apart, it is not.

use super::common::Common;
use super::known::hash;
use super::names::{Path, shown, to_utf16};
use super::short;
use crate::call::Failure;
use crate::config::Dialect;
use crate::wire::fscc::file::TAG_SYMLINK;
use crate::wire::{Out, Status, out::len32};
use volary_core::{Attr, Caps, Cookie, DirBuf, Entry, FileKind, Kind, Mode, NodeId, same_name};
use volary_session::Session;

/// Entries looked at in one go when a directory is read for a name.
const SCAN_ENTRIES: usize = 512;
const SCAN_NAMES: usize = 32 << 10;

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The directory that the last component is in; `None` for the share's root.
    pub(crate) dir: Option<NodeId>,
    /// What that directory was on the way.
    pub(crate) dir_attr: Option<Attr>,
    /// The components as the volume has them; the last one as given if there is no such entry.
    pub(crate) path: Vec<Vec<u8>>,
    pub(crate) entry: Option<Entry>,
}

impl Walked {
    /// The last component.
    pub(crate) fn name(&self) -> &[u8] {
        self.path.last().map_or(&[], Vec::as_slice)
    }

    /// The directory and the name in it.
    pub(crate) fn at(&self) -> Option<(NodeId, &[u8])> {
        Some((self.dir?, self.name()))
    }
}

/// Walks from the share's root. The last component need not be there, and is not followed if it is
/// a symlink.
///
/// # Errors
/// `OBJECT_PATH_NOT_FOUND` if a directory on the way is not there, or none; `STOPPED_ON_SYMLINK`
/// with what the symlink holds; `ACCESS_DENIED`.
pub(crate) fn walk(
    session: &Session,
    common: &Common,
    path: &Path,
    dialect: Dialect,
) -> Result<Walked, Failure> {
    let root = session.root();
    let attr = session.getattr(root)?;
    let mut here = Entry { node: root, attr };
    let mut walked = Walked {
        dir: None,
        dir_attr: None,
        path: Vec::with_capacity(path.components.len()),
        entry: None,
    };
    let mut rest = path.components.as_slice();
    while let Some((name, after)) = rest.split_first() {
        enterable(session, &here.attr, &walked.path, rest, dialect)?;
        rest = after;
        let found = find(session, common, &here.attr, name)?;
        walked.dir = Some(here.node);
        walked.dir_attr = Some(here.attr);
        match found {
            Some((name, entry)) => {
                walked.path.push(name);
                here = entry;
            }
            None if after.is_empty() => {
                walked.path.push(name.clone());
                return Ok(walked);
            }
            None => return Err(Status::OBJECT_PATH_NOT_FOUND.into()),
        }
    }
    walked.entry = Some(here);
    Ok(walked)
}

/// Whether the walk can go on into the node.
fn enterable(
    session: &Session,
    attr: &Attr,
    before: &[Vec<u8>],
    rest: &[Vec<u8>],
    dialect: Dialect,
) -> Result<(), Failure> {
    match attr.kind {
        FileKind::Dir => Ok(()),
        FileKind::Symlink => Err(stopped(session, attr.node, before, rest, dialect)),
        _ => Err(Status::OBJECT_PATH_NOT_FOUND.into()),
    }
}

/// The entry of that name, in whatever case it is, and its name.
///
/// # Errors
/// As [`Session::lookup`], but for `NotFound`.
fn find(
    session: &Session,
    common: &Common,
    dir: &Attr,
    name: &[u8],
) -> Result<Option<(Vec<u8>, Entry)>, Failure> {
    match session.lookup_seen(dir, name) {
        Ok(entry) => return Ok(Some((name.to_vec(), entry))),
        Err(e) if e == Kind::NotFound => {}
        Err(e) if e == Kind::NameTooLong || e == Kind::Invalid => {
            return Err(Status::OBJECT_NAME_INVALID.into());
        }
        Err(e) => return Err(e.into()),
    }
    let short = short::could_be(name);
    if !session.caps().has(Caps::CASE_SENSITIVE) && !short {
        return Ok(None);
    }
    let Some(found) = scan(session, common, dir.node, name, short) else {
        return Ok(None);
    };
    match session.lookup_seen(dir, &found) {
        Ok(entry) => Ok(Some((found, entry))),
        Err(e) if e == Kind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Reads a directory for the name. One that may not be read has no names but those looked up.
fn scan(
    session: &Session,
    common: &Common,
    dir: NodeId,
    name: &[u8],
    short: bool,
) -> Option<Vec<u8>> {
    let wanted = std::str::from_utf8(name).ok()?;
    if !short && common.known.may_have(dir, hash(wanted)) == Some(false) {
        return None;
    }
    let mut build = common.known.read_names(dir);
    let open = session.open(dir, Mode::Read).ok()?;
    let mut found = None;
    let mut from = Cookie::START;
    while found.is_none() {
        let mut buf = DirBuf::new(SCAN_ENTRIES, SCAN_NAMES, false);
        let Ok(end) = session.readdir(open, from, &mut buf) else {
            break;
        };
        let same = |name: &[u8]| {
            let is_short = || short && short::name(name).eq_ignore_ascii_case(wanted);
            same_name(name, wanted.as_bytes()) || is_short()
        };
        found = buf.iter().find(|e| same(e.name)).map(|e| e.name.to_vec());
        if let Some(build) = build.as_mut() {
            buf.iter().for_each(|e| build.add(e.name));
        }
        match buf.last_cookie() {
            Some(last) if !end => from = last,
            _ => {
                if let Some(build) = build.filter(|_| end) {
                    build.done();
                }
                break;
            }
        }
    }
    // Opened to look only: there is nothing that ending it could lose.
    let _ = session.close(open);
    found
}

/// The answer for a path that leads through, or to, a symlink (MS-SMB2 2.2.2.2.1): the client
/// goes on by itself. `before` is the path of the symlink, `rest` what comes after it.
pub(crate) fn stopped(
    session: &Session,
    link: NodeId,
    before: &[Vec<u8>],
    rest: &[Vec<u8>],
    dialect: Dialect,
) -> Failure {
    /// "SYML".
    const SYMLINK_ERROR_TAG: u32 = 0x4c4d_5953;
    let target = match session.readlink(link) {
        Ok(target) => target,
        Err(e) => return e.into(),
    };
    if before.is_empty() {
        return Status::OBJECT_PATH_NOT_FOUND.into();
    }
    let unparsed = to_utf16(&Path::show(rest)).len();
    let (relative, target) = shown_target(&target);
    let mut data = Out::new();
    data.u32(SYMLINK_ERROR_TAG).u32(TAG_SYMLINK);
    data.len16(target.len().saturating_mul(2).saturating_add(12));
    data.len16(unparsed);
    put_target(&mut data, relative, &target);
    let data = data.done();
    let mut out = Out::new();
    if dialect == Dialect::Smb311 {
        out.u32(len32(data.len().saturating_add(4))).u32(0);
    }
    out.u32(len32(data.len())).bytes(&data);
    let contexts = u8::from(dialect == Dialect::Smb311);
    Failure::with_data(Status::STOPPED_ON_SYMLINK, contexts, &out.done())
}

/// Whether a symlink's target is relative, and its UTF-16 with `\` between components.
pub(crate) fn shown_target(target: &[u8]) -> (bool, Vec<u8>) {
    let relative = !target.starts_with(b"/");
    let parts: Vec<Vec<u8>> = target.split(|b| *b == b'/').map(shown_part).collect();
    (relative, to_utf16(&parts.join(&b'\\')))
}

fn shown_part(part: &[u8]) -> Vec<u8> {
    if part == b"." || part == b".." {
        part.to_vec()
    } else {
        shown(part)
    }
}

/// `SubstituteNameOffset` to `PathBuffer` of a symlink's data: both names are the same.
pub(crate) fn put_target(out: &mut Out, relative: bool, target: &[u8]) {
    out.u16(0).len16(target.len());
    out.len16(target.len()).len16(target.len());
    out.u32(u32::from(relative)).bytes(target).bytes(target);
}
