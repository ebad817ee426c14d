//! Which errno each kind of error becomes, in one table.

use fuser::Errno;
use volary_core::{Error, Kind};

/// Returns the errno for a kind. What keeps a caller off because of another's share mode
/// or deletion is called as Linux's own SMB client calls it.
pub(crate) fn errno(kind: Kind) -> Errno {
    match kind {
        Kind::NotFound | Kind::DeletePending => Errno::ENOENT,
        Kind::Exists => Errno::EEXIST,
        Kind::NotDir => Errno::ENOTDIR,
        Kind::IsDir => Errno::EISDIR,
        Kind::NotEmpty => Errno::ENOTEMPTY,
        Kind::Invalid => Errno::EINVAL,
        Kind::NameTooLong => Errno::ENAMETOOLONG,
        Kind::TooManyLinks => Errno::EMLINK,
        Kind::SymlinkLoop => Errno::ELOOP,
        Kind::TooBig => Errno::EFBIG,
        Kind::NoSpace => Errno::ENOSPC,
        Kind::Quota => Errno::EDQUOT,
        Kind::ReadOnly => Errno::EROFS,
        Kind::Access => Errno::EACCES,
        Kind::NotPermitted => Errno::EPERM,
        Kind::Stale => Errno::ESTALE,
        Kind::Locked => Errno::EAGAIN,
        Kind::Deadlock => Errno::EDEADLK,
        Kind::Sharing | Kind::Busy => Errno::EBUSY,
        Kind::TooManyOpen => Errno::ENFILE,
        Kind::Interrupted => Errno::EINTR,
        Kind::Unsupported => Errno::EOPNOTSUPP,
        Kind::NoXattr => Errno::ENODATA,
        Kind::CrossVolume => Errno::EXDEV,
        Kind::Io => Errno::EIO,
        // "Structure needs cleaning": what Linux's own file systems answer.
        Kind::Corrupt => Errno::from_i32(rustix::io::Errno::UCLEAN.raw_os_error()),
    }
}

/// Returns the errno for an error of a call that POSIX wants answered with EPERM on a
/// volume that cannot do it: `link`, `symlink`, `mknod`.
pub(crate) fn errno_of_maker(error: &Error) -> Errno {
    match error.kind() {
        Kind::Unsupported => Errno::EPERM,
        kind => errno(kind),
    }
}

/// Returns the errno for an error of a call where POSIX says EINVAL for what the volume
/// cannot do: flags of `rename`.
pub(crate) fn errno_of_flags(error: &Error) -> Errno {
    match error.kind() {
        Kind::Unsupported => Errno::EINVAL,
        kind => errno(kind),
    }
}

/// Returns the errno for an error of `setxattr`, which calls a value that is too large
/// by another number.
pub(crate) fn errno_of_xattr(error: &Error) -> Errno {
    match error.kind() {
        Kind::TooBig => Errno::E2BIG,
        Kind::NameTooLong => Errno::ERANGE,
        kind => errno(kind),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_kind_has_an_errno_of_its_own() {
        let mut seen = HashMap::new();
        let shared = [Kind::Sharing, Kind::DeletePending];
        for kind in Kind::ALL {
            if shared.contains(&kind) {
                continue;
            }
            if let Some(other) = seen.insert(errno(kind).code(), kind) {
                panic!("{kind:?} and {other:?} have the same errno");
            }
        }
    }

    #[test]
    fn what_a_volume_cannot_make_is_not_permitted() {
        assert_eq!(errno_of_maker(&Kind::Unsupported.into()), Errno::EPERM);
        assert_eq!(errno_of_maker(&Kind::Exists.into()), Errno::EEXIST);
    }
}
