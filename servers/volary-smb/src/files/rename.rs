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

/// The new name, and whether an existing entry may be replaced.
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
        // Some clients send paths that begin at the root.
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

/// Renames an open file or directory.
///
/// # Errors
/// `ACCESS_DENIED` without the right to delete; `MEDIA_WRITE_PROTECTED` if the volume takes no
/// changes; `ACCESS_DENIED` for the share's root, and for a directory with open files below it.
/// `ACCESS_DENIED` also if a file may not be added to the new directory, and for replacing an entry
/// that is open, a directory or read-only; `SHARING_VIOLATION`; `OBJECT_NAME_COLLISION`.
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
    // A replaced entry keeps its spelling.
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

/// Returns whether the new name replaces an entry. Checks that it may. An entry may always replace
/// itself, perhaps with another case.
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

/// Returns whether the caller may delete the entry that a new name replaces, by its owner,
/// directory and descriptor. With `spares`, a read-only entry may not be replaced.
fn may_go(setting: &Setting<'_, '_>, target: &Target, there: &Entry, spares: bool) -> bool {
    let dos = attrs::dos(&setting.call.tree.common, &there.attr);
    let dir = target.walked.dir_attr.as_ref();
    // If the rights cannot be determined, none are granted.
    let rights = granted::maximal(setting.call, dir, &there.attr).unwrap_or(0);
    rights & access::DELETE != 0 && !(spares && dos & attribute::READONLY != 0)
}

/// Opens the new name's directory for writing, as Windows does. This fails if another client has it
/// open for deletion, or does not share it for writing.
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

/// Adds a name to an open file.
///
/// # Errors
/// Those of the new path; `FILE_IS_A_DIRECTORY`; `MEDIA_WRITE_PROTECTED` if the volume takes no
/// changes; `OBJECT_NAME_COLLISION`. `ACCESS_DENIED` for any of these:
///
/// - The tree is read-only.
/// - The file's descriptor does not let the caller change attributes, or the directory's does not
///   let the caller add entries.
/// - The replaced entry is open, or may not be deleted.
/// - The file belongs to another user, and the caller may not read and write it, or it runs as
///   another user.
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

/// Checks the tree, and the descriptors of the file and of the directory, for [`link`]. The right
/// to change attributes is checked for the caller rather than the open, because Linux opens with
/// less (`smb2_create_hardlink`).
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
