//! Reparse points (MS-FSCC 2.1.2). Only symlinks are supported.

use super::access;
use super::create::granted;
use super::fsctl::Asked;
use super::names::{component, to_wtf8};
use super::open::File;
use super::path::{put_target, shown_target};
use super::security::stored;
use crate::answer::Failure;
use crate::files::call::Call;
use crate::wire::fscc::file::TAG_SYMLINK;
use crate::wire::fscc::le::{slice_at, u16_at, u32_at};
use crate::wire::{Out, Status};
use volary_core::{Attr, Caps, FileKind, NodeId, SetAttr};

const RELATIVE: u32 = 1;

/// Answers `FSCTL_GET_REPARSE_POINT`.
///
/// # Errors
/// `NOT_A_REPARSE_POINT`.
pub(super) fn get(call: &Call<'_>, file: &File, asked: &Asked<'_>) -> Result<Vec<u8>, Failure> {
    if file.kind != FileKind::Symlink {
        return Err(Status::NOT_A_REPARSE_POINT.into());
    }
    let target = call.tree.session.readlink(file.node)?;
    let (relative, target) = shown_target(&target);
    let mut out = Out::new();
    out.u32(TAG_SYMLINK);
    out.len16(target.len().saturating_mul(2).saturating_add(12))
        .u16(0);
    put_target(&mut out, relative, &target);
    if out.len() > asked.max {
        return Err(Status::BUFFER_TOO_SMALL.into());
    }
    Ok(out.done())
}

/// Answers `FSCTL_SET_REPARSE_POINT`: turns a new, empty file or directory into a symlink. Its
/// entry is replaced by one for a new symlink, which has another file id. The open stays with the
/// former node until it is closed.
///
/// # Errors
/// `ACCESS_DENIED` if it was opened for neither writing data nor attributes;
/// `IO_REPARSE_TAG_INVALID` for other kinds; `NOT_SUPPORTED`; `IO_REPARSE_DATA_INVALID`, also for a
/// node that is not empty; `FILE_DELETED`; `ACCESS_DENIED` if the caller may not delete it, or not
/// add a file in its place; `DIRECTORY_NOT_EMPTY`.
pub(super) fn set(call: &Call<'_>, file: &File, input: &[u8]) -> Result<Vec<u8>, Failure> {
    let session = call.waiting();
    file.need_any(access::WRITE_DATA | access::WRITE_ATTRIBUTES)?;
    if u32_at(input, 0).ok_or(Status::IO_REPARSE_DATA_INVALID)? != TAG_SYMLINK {
        return Err(Status::IO_REPARSE_TAG_INVALID.into());
    }
    if !session.caps().has(Caps::SYMLINKS) {
        return Err(Status::NOT_SUPPORTED.into());
    }
    let target = target(input).ok_or(Status::IO_REPARSE_DATA_INVALID)?;
    let attr = session.getattr_open(file.open)?;
    if !is_plain(attr.kind) || (attr.kind == FileKind::File && attr.size != 0) {
        return Err(Status::IO_REPARSE_DATA_INVALID.into());
    }
    let (dir, name) = session.place(file.open).ok_or(Status::FILE_DELETED)?;
    check_replace(call, dir, &attr)?;
    let make = || session.symlink(dir, &name, &target, &SetAttr::mode(0o777));
    session.replacing_any(dir, &name, make)?;
    Ok(Vec::new())
}

/// Checks that the caller may delete the node, and add a file to its directory, by owners, modes
/// and descriptors.
///
/// # Errors
/// `ACCESS_DENIED`.
fn check_replace(call: &Call<'_>, dir: NodeId, attr: &Attr) -> Result<(), Failure> {
    let root = call.tree.common.root_session();
    let dir = root.getattr(dir)?;
    if granted::maximal(call, Some(&dir), attr)? & access::DELETE == 0 {
        return Err(Status::ACCESS_DENIED.into());
    }
    Ok(stored::check_add(
        &root,
        &dir,
        call.tree.session.cred(),
        false,
    )?)
}

/// Answers `FSCTL_DELETE_REPARSE_POINT` with a refusal, because a symlink is never anything else.
///
/// # Errors
/// `NOT_A_REPARSE_POINT`; `IO_REPARSE_TAG_MISMATCH`; `NOT_SUPPORTED`.
pub(super) fn delete(_call: &Call<'_>, file: &File, input: &[u8]) -> Result<Vec<u8>, Failure> {
    if file.kind != FileKind::Symlink {
        return Err(Status::NOT_A_REPARSE_POINT.into());
    }
    if u32_at(input, 0) != Some(TAG_SYMLINK) {
        return Err(Status::IO_REPARSE_TAG_MISMATCH.into());
    }
    Err(Status::NOT_SUPPORTED.into())
}

/// Returns the target in a symlink's data (MS-FSCC 2.1.2.4), with `/` between components.
fn target(input: &[u8]) -> Option<Vec<u8>> {
    let data = input.get(8..)?;
    let (offset, len) = (u16_at(data, 0)?, u16_at(data, 2)?);
    let relative = u32_at(data, 8)? & RELATIVE != 0;
    let name = slice_at(data.get(12..)?, offset.into(), len.into())?;
    let name = to_wtf8(name)?;
    // An absolute path names a drive of the client, and not a place on the volume.
    if name.is_empty() || !relative {
        return None;
    }
    let part = |part: &[u8]| match part {
        b"." | b".." | b"" => Some(part.to_vec()),
        name => component(name).ok(),
    };
    let parts: Option<Vec<Vec<u8>>> = name.split(|b| *b == b'\\').map(part).collect();
    Some(parts?.join(&b'/'))
}

/// Returns whether the node is of a kind that can become a symlink: a file or directory.
fn is_plain(kind: FileKind) -> bool {
    matches!(kind, FileKind::File | FileKind::Dir)
}
