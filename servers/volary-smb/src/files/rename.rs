//! `FileRenameInformation`, `FileRenameInformationEx` and `FileLinkInformation`.

use super::create::granted;
use super::names::Path;
use super::path::{self, Walked};
use super::security::stored;
use super::setting::Setting;
use super::{access, attrs};
use crate::answer::Failure;
use crate::wire::Status;
use crate::wire::fscc::file::attribute;
use crate::wire::fscc::set;
use volary_core::{Entry, FileKind, Kind, NodeId, RenameFlags};
use volary_session::{Rights, Share};

/// Flags of `FileRenameInformationEx`.
const REPLACE: u32 = 0x1;
const POSIX: u32 = 0x2;
const IGNORE_READ_ONLY: u32 = 0x40;

/// Where the new name leads, and whether what is there may be replaced.
struct Target {
    dir: NodeId,
    name: Vec<u8>,
    walked: Walked,
    flags: u32,
}

impl Setting<'_, '_> {
    fn target(&self, extended: bool) -> Result<Target, Failure> {
        let new = set::new_name(self.buf, extended).ok_or(Status::INFO_LENGTH_MISMATCH)?;
        if new.root != 0 || new.name.is_empty() {
            return Err(Status::INVALID_PARAMETER.into());
        }
        // Some clients begin at the root.
        let name = new.name.strip_prefix(b"\\\0").unwrap_or(new.name);
        let parsed = Path::parse(name)?;
        let name = parsed
            .components
            .last()
            .ok_or(Status::OBJECT_NAME_INVALID)?
            .clone();
        let wanted = |looked_at| self.call.check_search(looked_at);
        let walked = path::walk(
            &self.session,
            &self.call.tree.common,
            &parsed,
            self.call.link.dialect(),
            path::Search::new(&wanted),
        )?;
        Ok(Target {
            dir: walked.dir.ok_or(Status::OBJECT_NAME_INVALID)?,
            name,
            walked,
            flags: new.flags,
        })
    }
}

/// Renames what is open.
///
/// # Errors
/// `ACCESS_DENIED` without the right to delete; `MEDIA_WRITE_PROTECTED` if the volume takes no changes;
/// `ACCESS_DENIED` for a directory with something open below it, and for replacing what is open, a
/// directory or read-only; `OBJECT_NAME_COLLISION`.
pub(super) fn rename(setting: &Setting<'_, '_>, extended: bool) -> Result<(), Failure> {
    let target = setting.target(extended)?;
    let (session, file) = (&setting.session, setting.file);
    file.need_any(access::DELETE)?;
    setting.call.tree.check_volume_writable()?;
    if file.path.lock().is_root() {
        return Err(Status::ACCESS_DENIED.into());
    }
    if file.is_dir() && session.free_below(file.node)? {
        return Err(Status::ACCESS_DENIED.into());
    }
    let root = setting.call.tree.common.root_session();
    let dir = root.getattr(target.dir)?;
    stored::check_add(&root, &dir, session.cred(), file.is_dir())?;
    let flags = replaces(setting, &target)?;
    let there = target.walked.entry.as_ref();
    let is_same = there.is_some_and(|there| there.node == file.node);
    check_parent(setting, target.dir)?;
    // What is there keeps its spelling if it is replaced.
    let name = match flags {
        RenameFlags::REPLACE if !is_same => target.walked.name(),
        _ => &target.name,
    };
    session
        .rename_open(file.open, target.dir, name, flags)
        .map_err(|e| match e.kind() {
            Kind::Invalid => Status::SHARING_VIOLATION.into(),
            Kind::IsDir | Kind::NotDir | Kind::NotEmpty => Status::ACCESS_DENIED.into(),
            _ => Failure::from(e),
        })?;
    let mut to = target.walked.path.clone();
    if let Some(last) = to.last_mut() {
        *last = name.to_vec();
    }
    let from = file.path.lock().components();
    let common = &setting.call.tree.common;
    common.moved(file, &from, &to);
    let by = setting.call.tree.by();
    common.watches.renamed(by, &from, &to, file.kind);
    Ok(())
}

/// Returns whether what the new name leads to may be, and is to be, replaced. What is renamed is its own
/// replacement, in perhaps another case.
fn replaces(setting: &Setting<'_, '_>, target: &Target) -> Result<RenameFlags, Failure> {
    let Some(there) = target.walked.entry else {
        return Ok(RenameFlags::KEEP);
    };
    if there.node == setting.file.node {
        return Ok(RenameFlags::REPLACE);
    }
    if target.flags & REPLACE == 0 {
        return Err(Status::OBJECT_NAME_COLLISION.into());
    }
    let session = &setting.session;
    let open = session.open_count_of(there.node) > 0 && target.flags & POSIX == 0;
    let spares = target.flags & IGNORE_READ_ONLY == 0;
    if there.attr.kind == FileKind::Dir || open || !may_go(setting, target, &there, spares) {
        return Err(Status::ACCESS_DENIED.into());
    }
    Ok(RenameFlags::REPLACE)
}

/// Returns whether the caller may delete what a new name is to replace: has the right to, as its owner,
/// directory and descriptor give it. What is read-only stays, if that `spares` it.
fn may_go(setting: &Setting<'_, '_>, target: &Target, there: &Entry, spares: bool) -> bool {
    let dos = attrs::dos(&setting.call.tree.common, &there.attr);
    let dir = target.walked.dir_attr.as_ref();
    // What cannot be told is not granted.
    let rights = granted::maximal(setting.call, dir, &there.attr).unwrap_or(0);
    rights & access::DELETE != 0 && !(spares && dos & attribute::READONLY != 0)
}

/// The directory that a name comes into is opened for that, as Windows does: one that another has
/// open for deleting, or does not share for writing, takes none.
///
/// # Errors
/// `SHARING_VIOLATION`.
fn check_parent(setting: &Setting<'_, '_>, dir: NodeId) -> Result<(), Failure> {
    let share = Share {
        wants: Rights::WRITE,
        allows: Rights::READ | Rights::WRITE,
    };
    let session = &setting.session;
    let open = session.open_bare(dir, None, share)?;
    // Opened to look only: there is nothing that ending it could lose.
    let _ = session.close(open);
    Ok(())
}

/// Gives what is open one more name.
///
/// # Errors
/// Those of the new path; `FILE_IS_A_DIRECTORY`; `MEDIA_WRITE_PROTECTED` if the volume takes no
/// changes; `ACCESS_DENIED` in a tree without changes, and if the file's descriptor does not let the
/// caller change attributes, or the directory's not add;
/// `OBJECT_NAME_COLLISION`; `ACCESS_DENIED` for replacing what is open, or may not be deleted, and
/// for a file of another that the caller may not read and write, or that runs as another.
pub(super) fn link(setting: &Setting<'_, '_>) -> Result<(), Failure> {
    let target = setting.target(false)?;
    let (session, file) = (&setting.session, setting.file);
    if file.is_dir() {
        return Err(Status::FILE_IS_A_DIRECTORY.into());
    }
    check_link(setting, &target)?;
    match target.walked.entry {
        None => {
            session.link(file.node, target.dir, &target.name)?;
        }
        Some(_) if target.flags & REPLACE == 0 => return Err(Status::OBJECT_NAME_COLLISION.into()),
        Some(there) if there.node == file.node => return Ok(()),
        Some(there) => {
            let open = session.open_count_of(there.node) > 0;
            if there.attr.kind == FileKind::Dir || open || !may_go(setting, &target, &there, true) {
                return Err(Status::ACCESS_DENIED.into());
            }
            let make = || session.link(file.node, target.dir, &target.name);
            session.replacing(target.dir, target.walked.name(), make)?;
        }
    }
    let tree = setting.call.tree;
    let watches = &tree.common.watches;
    watches.made(tree.by(), &target.walked.path, file.kind);
    Ok(())
}

/// What [`link`] asks of the tree, and of the descriptors of the file and of the directory. The right
/// to change attributes is the caller's, not the open's: Linux opens for less (`smb2_create_hardlink`).
///
/// # Errors
/// `MEDIA_WRITE_PROTECTED`; `ACCESS_DENIED`.
fn check_link(setting: &Setting<'_, '_>, target: &Target) -> Result<(), Failure> {
    let tree = setting.call.tree;
    tree.check_volume_writable()?;
    let (root, cred) = (tree.common.root_session(), setting.session.cred());
    let attr = root.getattr(setting.file.node)?;
    if tree.is_read_only() || !stored::allows(&root, &attr, cred, access::WRITE_ATTRIBUTES) {
        return Err(Status::ACCESS_DENIED.into());
    }
    let dir = root.getattr(target.dir)?;
    Ok(stored::check_add(&root, &dir, cred, false)?)
}
