//! Replaces the content of files by writing another file and renaming it.

use super::held::Held;
use volary_core::{
    Caps, Create, Entry, FileKind, Kind, Mode, NodeId, OpenId, RenameFlags, Result, SetAttr,
};
use volary_session::{OpenHow, SYMLINKS_MAX, SetXattr};

/// How many spare names are tried.
const SPARES_MAX: u32 = 1000;

/// Writes a file as [`Vol::write`](crate::Vol::write) does.
///
/// # Errors
/// As there.
pub(super) fn write(held: &Held, path: &[u8], bytes: &[u8]) -> Result<()> {
    let at = place(held, path)?;
    let session = &held.session;
    let found = match session.lookup(at.dir, &at.name) {
        Err(e) if e.kind() == Kind::NotFound => None,
        found => Some(found?),
    };
    match found {
        Some(found) if found.attr.kind == FileKind::Dir => Err(Kind::IsDir.into()),
        Some(found) if found.attr.kind != FileKind::File || found.attr.nlink > 1 => {
            in_place(held, &found, bytes)
        }
        found => by_rename(held, &at, found.as_ref(), bytes),
    }
}

/// The directory and the name of a file, which need not exist.
struct Place {
    dir: NodeId,
    name: Vec<u8>,
}

/// Returns the place that a path leads to. If the last name is a symlink, it is followed, even to a
/// target that does not exist.
fn place(held: &Held, path: &[u8]) -> Result<Place> {
    let session = &held.session;
    let (mut dir, mut name) = held.parent(path)?;
    for _ in 0..SYMLINKS_MAX {
        let target = match session.lookup(dir, &name) {
            Ok(found) if found.attr.kind == FileKind::Symlink => session.readlink(found.node)?,
            _ => return Ok(Place { dir, name }),
        };
        (dir, name) = session.walk_parent_from(dir, &target)?;
    }
    Err(Kind::SymlinkLoop.into())
}

fn in_place(held: &Held, found: &Entry, bytes: &[u8]) -> Result<()> {
    let how = OpenHow {
        truncate: true,
        ..Mode::Write.into()
    };
    let open = held.session.open_seen(&found.attr, None, how)?;
    fill(held, open, bytes)
}

/// Writes a file's content, and closes it.
fn fill(held: &Held, open: OpenId, bytes: &[u8]) -> Result<()> {
    let written = match bytes.is_empty() {
        true => Ok(()),
        false => held.session.write(open, Some(0), bytes).map(drop),
    };
    let closed = held.session.close(open);
    written.and(closed)
}

fn by_rename(held: &Held, at: &Place, found: Option<&Entry>, bytes: &[u8]) -> Result<()> {
    let session = &held.session;
    let spare = Spare::make(held, at.dir)?;
    let filled = fill(held, spare.open, bytes)
        .and_then(|()| found.map_or(Ok(()), |found| keep(held, found, spare.node)))
        .and_then(|()| {
            let flags = RenameFlags::REPLACE;
            session.rename(at.dir, &spare.name, at.dir, &at.name, flags)
        });
    filled.inspect_err(|_| {
        // Only the first error is reported.
        let _ = session.unlink(at.dir, &spare.name);
    })
}

/// A temporary file with an unused name.
struct Spare {
    name: Vec<u8>,
    node: NodeId,
    open: OpenId,
}

impl Spare {
    /// Makes a temporary file, with a name that every format can keep.
    fn make(held: &Held, dir: NodeId) -> Result<Self> {
        // Always counts from 0, so that the same calls leave the same bytes.
        for number in 0..SPARES_MAX {
            let name = format!("VOL{number:05X}.TMP").into_bytes();
            let set = held.new_file();
            match held
                .session
                .create(dir, &name, Create::New, Mode::Write, &set)
            {
                Err(e) if e.kind() == Kind::Exists => {}
                Err(e) => return Err(e),
                Ok((entry, open)) => {
                    let node = entry.node;
                    return Ok(Self { name, node, open });
                }
            }
        }
        Err(Kind::Exists.into())
    }
}

/// Copies the replaced file's attributes to `node`.
fn keep(held: &Held, found: &Entry, node: NodeId) -> Result<()> {
    let (session, caps) = (&held.session, held.session.caps());
    if caps.has(Caps::XATTRS) {
        for name in session.listxattr(found.node)? {
            let value = session.getxattr(found.node, &name)?;
            session.setxattr(node, &name, &value, SetXattr::Any)?;
        }
    }
    let attr = &found.attr;
    if caps.has(Caps::MODES) {
        // Changing the owner clears bits of the mode, so the mode comes last.
        let owner = SetAttr {
            uid: Some(attr.uid),
            gid: Some(attr.gid),
            ..SetAttr::default()
        };
        session.setattr(node, &owner)?;
    }
    let set = SetAttr {
        mode: caps.has(Caps::MODES).then_some(attr.mode),
        dos: attr.dos,
        ..SetAttr::default()
    };
    session.setattr(node, &set).map(drop)
}
