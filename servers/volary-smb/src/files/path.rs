//! From a path in a request to nodes: upper and lower case are the same, symlinks stop the walk.
//!
//! On a volume that tells them apart, a name is looked up as given first. Only if that finds
//! nothing, and the directory is not [known](super::known) to lack it, is the directory read for a
//! name that differs in case alone, or whose 8.3 name this is. Under the layer `casefold`, or on a
//! volume that does not tell them apart, it is not.

use super::known::hash;
use super::names::{Path, shown, to_utf16};
use super::open::Common;
use super::short;
use crate::answer::Failure;
use crate::wire::Dialect;
use crate::wire::fscc::file::TAG_SYMLINK;
use crate::wire::{Out, Status, out::len32};
use volary_core::{
    Attr, Caps, Cookie, DirBuf, Entry, FileKind, Kind, Mode, NodeId, OpenId, same_name,
};
use volary_session::{PATH_MAX, Session};

/// Entries looked at in one go when a directory is read for a name.
const SCAN_ENTRIES: usize = 512;
const SCAN_NAMES: usize = 32 << 10;

/// How much a walk has looked at, and who asks whether it is wanted.
pub(crate) struct Search<'a> {
    looked_at: usize,
    /// Called before each step, with how many entries were looked at.
    wanted: &'a dyn Fn(usize) -> Result<(), Failure>,
}

impl<'a> Search<'a> {
    /// One that ends with the failure of `wanted`.
    pub(crate) fn new(wanted: &'a dyn Fn(usize) -> Result<(), Failure>) -> Self {
        let looked_at = 0;
        Self { looked_at, wanted }
    }

    fn check_wanted(&self) -> Result<(), Failure> {
        (self.wanted)(self.looked_at)
    }
}

/// Where a path leads.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The directory that the last component is in; `None` for the share's root.
    pub(crate) dir: Option<NodeId>,
    /// What that directory was on the way.
    pub(crate) dir_attr: Option<Attr>,
    /// The components as the volume has them, in [`PATH_MAX`] bytes; the last one as given if there
    /// is no such entry.
    pub(crate) path: Vec<Vec<u8>>,
    pub(crate) entry: Option<Entry>,
    /// Bytes of the path.
    len: usize,
}

impl Walked {
    /// Goes on to the component.
    ///
    /// # Errors
    /// `NAME_TOO_LONG` if the path would be longer than [`PATH_MAX`].
    fn push(&mut self, name: Vec<u8>) -> Result<(), Status> {
        let between = usize::from(!self.path.is_empty());
        let more = name.len().saturating_add(between);
        self.len = self.len.saturating_add(more);
        if self.len > PATH_MAX {
            return Err(Status::NAME_TOO_LONG);
        }
        self.path.push(name);
        Ok(())
    }

    /// Returns the last component.
    pub(crate) fn name(&self) -> &[u8] {
        self.path.last().map_or(&[], Vec::as_slice)
    }

    /// Returns the directory and the name in it.
    pub(crate) fn at(&self) -> Option<(NodeId, &[u8])> {
        Some((self.dir?, self.name()))
    }
}

/// Walks from the share's root. The last component need not be there, and is not followed if it is
/// a symlink.
///
/// # Errors
/// `OBJECT_PATH_NOT_FOUND` if a directory on the way is not there, or none; `STOPPED_ON_SYMLINK`
/// with what the symlink holds; `ACCESS_DENIED`; the search's; `NAME_TOO_LONG` past [`PATH_MAX`].
pub(crate) fn walk(
    session: &Session,
    common: &Common,
    path: &Path,
    dialect: Dialect,
    mut search: Search<'_>,
) -> Result<Walked, Failure> {
    let root = session.root();
    let attr = session.getattr(root)?;
    let mut here = Entry { node: root, attr };
    let mut walked = Walked {
        dir: None,
        dir_attr: None,
        path: Vec::with_capacity(path.components.len()),
        entry: None,
        len: 0,
    };
    let mut rest = path.components.as_slice();
    while let Some((name, after)) = rest.split_first() {
        enterable(session, &here.attr, &walked.path, rest, dialect)?;
        rest = after;
        search.check_wanted()?;
        let found = find(session, common, &here.attr, name, &mut search)?;
        walked.dir = Some(here.node);
        walked.dir_attr = Some(here.attr);
        match found {
            Some((name, entry)) => {
                walked.push(name)?;
                here = entry;
            }
            None if after.is_empty() => {
                walked.push(name.clone())?;
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

/// Returns the entry of that name, in whatever case it is, and its name.
///
/// # Errors
/// As [`Session::lookup`], but for `NotFound`; the search's.
fn find(
    session: &Session,
    common: &Common,
    dir: &Attr,
    name: &[u8],
    search: &mut Search<'_>,
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
    let Some(found) = scan(session, common, dir.node, name, search)? else {
        return Ok(None);
    };
    match session.lookup_seen(dir, &found) {
        Ok(entry) => Ok(Some((found, entry))),
        Err(e) if e == Kind::NotFound => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Reads a directory for the name. One that may not be read has no names but those looked up.
///
/// # Errors
/// The search's.
fn scan(
    session: &Session,
    common: &Common,
    dir: NodeId,
    name: &[u8],
    search: &mut Search<'_>,
) -> Result<Option<Vec<u8>>, Failure> {
    let Ok(wanted) = std::str::from_utf8(name) else {
        return Ok(None);
    };
    if !short::could_be(name) && common.known.may_have(dir, hash(wanted)) == Some(false) {
        return Ok(None);
    }
    let Ok(open) = session.open(dir, Mode::Read) else {
        return Ok(None);
    };
    let found = scan_open(session, common, (dir, open), wanted, search);
    // Opened to look only: there is nothing that ending it could lose.
    let _ = session.close(open);
    found
}

fn scan_open(
    session: &Session,
    common: &Common,
    (dir, open): (NodeId, OpenId),
    wanted: &str,
    search: &mut Search<'_>,
) -> Result<Option<Vec<u8>>, Failure> {
    let short = short::could_be(wanted.as_bytes());
    let mut build = common.known.read_names(dir);
    let mut found = None;
    let mut from = Cookie::START;
    while found.is_none() {
        search.check_wanted()?;
        let mut buf = DirBuf::new(SCAN_ENTRIES, SCAN_NAMES, false);
        let Ok(end) = session.readdir(open, from, &mut buf) else {
            break;
        };
        let same = |name: &[u8]| {
            let is_short = || short && short::name(name).eq_ignore_ascii_case(wanted);
            same_name(name, wanted.as_bytes()) || is_short()
        };
        search.looked_at = search.looked_at.saturating_add(buf.len());
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
    Ok(found)
}

/// Returns the answer for a path that leads through, or to, a symlink (MS-SMB2 2.2.2.2.1): the client
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

/// Returns whether a symlink's target is relative, and its UTF-16 with `\` between components.
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
