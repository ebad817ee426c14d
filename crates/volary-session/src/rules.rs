//! Permission rules: pure functions of attributes and credentials, as in POSIX.1, and as in Linux
//! where POSIX leaves a choice.

use volary_core::{Attr, Cred, FileKind, Kind, Name, Result, SetAttr, SetTime};

/// Set-user-id on execution.
pub(crate) const SET_UID: u32 = 0o4000;
/// Set-group-id on execution; on a directory, new entries inherit its group.
pub(crate) const SET_GID: u32 = 0o2000;
/// On a directory: only an entry's owner removes it.
pub(crate) const STICKY: u32 = 0o1000;
const GROUP_EXEC: u32 = 0o010;

/// Returns whether the caller is the node's owner or root.
pub(crate) fn owns(attr: &Attr, cred: &Cred) -> bool {
    cred.is_root() || cred.uid == attr.uid
}

/// Returns whether a sticky directory keeps the caller from removing this entry.
pub(crate) fn sticks(dir: &Attr, entry: &Attr, cred: &Cred) -> bool {
    dir.mode & STICKY != 0 && !owns(dir, cred) && !owns(entry, cred)
}

/// Checks that the caller may make these changes. A size needs write access on the node (`writes`)
/// unless `sizes` says that the right to change it is known to exist.
///
/// # Errors
/// In this order: `NotPermitted` for an owner, group, mode, birth time, DOS attributes and times
/// that only the owner sets; `Access` for a size, and for both times set to now, if the caller may
/// not write.
pub(crate) fn check_change(
    attr: &Attr,
    cred: &Cred,
    set: &SetAttr,
    sizes: bool,
    writes: impl FnOnce() -> Result<bool>,
) -> Result<()> {
    let owner = owns(attr, cred);
    let gives_away = set.uid.is_some_and(|uid| uid != attr.uid) && !cred.is_root();
    let foreign_group = set
        .gid
        .is_some_and(|gid| gid != attr.gid && !cred.is_root() && !cred.in_group(gid));
    let asks_owner = set.uid.is_some()
        || set.gid.is_some()
        || set.mode.is_some()
        || set.btime.is_some()
        || set.dos.is_some();
    if gives_away || foreign_group || (asks_owner && !owner) {
        return Err(Kind::NotPermitted.into());
    }
    let times = set.atime.is_some() || set.mtime.is_some();
    let touch = set.atime == Some(SetTime::Now) && set.mtime == Some(SetTime::Now);
    if times && !touch && !owner {
        return Err(Kind::NotPermitted.into());
    }
    let needs_write = (set.size.is_some() && !sizes) || (touch && !owner);
    if needs_write && !writes()? {
        return Err(Kind::Access.into());
    }
    Ok(())
}

/// Returns the change with its side effects on the mode. A new owner or group, or a new size by a
/// caller other than root, takes set-uid and set-gid from any node but a directory. A caller
/// outside the group cannot set set-gid.
pub(crate) fn with_side_effects(attr: &Attr, cred: &Cred, set: &SetAttr) -> SetAttr {
    let mut set = *set;
    let gid = set.gid.unwrap_or(attr.gid);
    if let Some(mode) = &mut set.mode {
        if !cred.is_root() && !cred.in_group(gid) {
            *mode &= !SET_GID;
        }
        return set;
    }
    let chown = set.uid.is_some() || set.gid.is_some();
    let resize = set.size.is_some() && !cred.is_root();
    if attr.kind != FileKind::Dir && (chown || resize) {
        set.mode = without_set_id(attr.mode);
    }
    set
}

/// Returns the mode without set-uid and set-gid, if it has either. Set-gid without execution by the
/// group stays: it marks mandatory locks.
pub(crate) fn without_set_id(mode: u32) -> Option<u32> {
    let mut plain = mode & !SET_UID;
    if mode & GROUP_EXEC != 0 {
        plain &= !SET_GID;
    }
    (plain != mode).then_some(plain)
}

/// Returns `set` with the owner and group of a new node filled in: the caller's, or the directory's
/// group if that has set-gid. A new directory inherits set-gid. Values in `set` have precedence.
pub(crate) fn for_new(dir: &Attr, cred: &Cred, kind: FileKind, set: &SetAttr) -> SetAttr {
    let mut set = *set;
    let inherits = dir.mode & SET_GID != 0;
    set.uid.get_or_insert(cred.uid);
    let gid = *set
        .gid
        .get_or_insert(if inherits { dir.gid } else { cred.gid });
    if let Some(mode) = &mut set.mode {
        if kind == FileKind::Dir {
            if inherits {
                *mode |= SET_GID;
            }
        } else if !cred.is_root() && !cred.in_group(gid) {
            *mode &= !SET_GID;
        }
    }
    set
}

/// Returns whether the caller may give a new node this owner and group.
pub(crate) fn may_own(dir: &Attr, cred: &Cred, set: &SetAttr) -> bool {
    cred.is_root()
        || (set.uid.is_none_or(|uid| uid == cred.uid)
            && set
                .gid
                .is_none_or(|gid| cred.in_group(gid) || gid == dir.gid))
}

/// Checks the name of an entry.
///
/// # Errors
/// `NotFound` if it is empty, `dots` for `.` and `..`, `Invalid` with `/` or
/// NUL in it, `NameTooLong` past `name_max` bytes.
pub(crate) fn checked_name(name: &[u8], dots: Kind, name_max: u16) -> Result<Name<'_>> {
    let checked = Name::new(name).map_err(|bad| match bad {
        volary_core::BadName::Empty => Kind::NotFound,
        volary_core::BadName::Dots => dots,
        volary_core::BadName::Byte => Kind::Invalid,
    })?;
    if name.len() > usize::from(name_max) {
        return Err(Kind::NameTooLong.into());
    }
    Ok(checked)
}
