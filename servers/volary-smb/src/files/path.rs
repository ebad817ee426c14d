//! Resolves a path in a request to nodes, ignoring case. Symlinks stop the walk.
//!
//! On a case-sensitive volume, a name is first looked up as given. If it does not exist, and the
//! directory is not [known](super::known) to lack it, the directory is read. The search is for a
//! name that differs only in case, or whose 8.3 name this is. Under the layer `casefold`, or on a
//! volume that ignores case, directories are not read.

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

/// Entries that are read at once when a directory is searched for a name, and the bytes of their
/// names.
const SCAN_ENTRIES: usize = 512;
const SCAN_NAMES: usize = 32 << 10;

/// How many entries a walk has visited, and the check whether it is still wanted.
pub(crate) struct Search<'a> {
    looked_at: usize,
    /// Called before each step, with the number of visited entries.
    wanted: &'a dyn Fn(usize) -> Result<(), Failure>,
}

impl<'a> Search<'a> {
    /// Returns a search that ends with the failure of `wanted`.
    pub(crate) fn new(wanted: &'a dyn Fn(usize) -> Result<(), Failure>) -> Self {
        let looked_at = 0;
        Self { looked_at, wanted }
    }

    fn check_wanted(&self) -> Result<(), Failure> {
        (self.wanted)(self.looked_at)
    }
}

/// The result of a walk.
#[derive(Debug)]
pub(crate) struct Walked {
    /// The directory of the last component, or `None` for the share's root.
    pub(crate) dir: Option<NodeId>,
    /// That directory's attributes during the walk.
    pub(crate) dir_attr: Option<Attr>,
    /// The components as spelled on the volume, with at most [`PATH_MAX`] bytes in total. If the
    /// last entry does not exist, its component is as given.
    pub(crate) path: Vec<Vec<u8>>,
    pub(crate) entry: Option<Entry>,
    /// The length of the path in bytes.
    len: usize,
}

impl Walked {
    /// Appends a component to the path.
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

/// Walks from the share's root. The last component need not exist. If it is a symlink, it is not
/// followed.
///
/// # Errors
/// `OBJECT_PATH_NOT_FOUND` if a directory on the way does not exist or is not one;
/// `STOPPED_ON_SYMLINK` with the symlink's target; `ACCESS_DENIED`; those of the search;
/// `NAME_TOO_LONG` past [`PATH_MAX`].
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

/// Checks that the walk can go on into the node.
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

/// Returns the entry with that name in any case, and its spelling.
///
/// # Errors
/// As [`Session::lookup`], except `NotFound`; those of the search.
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

/// Reads a directory to find the name. If the directory may not be read, the name is not found.
///
/// # Errors
/// Those of the search.
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
    let found = scan_open(session, common, dir, open, wanted, search);
    // It was opened only for reading, so closing it cannot lose anything.
    let _ = session.close(open);
    found
}

fn scan_open(
    session: &Session,
    common: &Common,
    dir: NodeId,
    open: OpenId,
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

/// Returns the answer for a path with a symlink (MS-SMB2 2.2.2.2.1), which the client follows
/// itself. `before` is the path of the symlink, and `rest` is what follows it.
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

/// Returns whether a symlink's target is relative, and the target in UTF-16 with `\` between
/// components.
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

/// Appends a symlink's data from `SubstituteNameOffset` to `PathBuffer`. Both names are the same.
pub(crate) fn put_target(out: &mut Out, relative: bool, target: &[u8]) {
    out.u16(0).len16(target.len());
    out.len16(target.len()).len16(target.len());
    out.u32(u32::from(relative)).bytes(target).bytes(target);
}
