//! Maps each kind of error to an errno, in one table.

use fuser::Errno;
use volary_core::{Error, Kind};

/// Returns the errno for a kind. Errors about share modes and pending deletions get the same errno
/// as in Linux's own SMB client.
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
        // "Structure needs cleaning": what Linux's own file systems return.
        Kind::Corrupt => Errno::from_i32(rustix::io::Errno::UCLEAN.raw_os_error()),
    }
}

/// Returns the errno for `link`, `symlink` and `mknod`. POSIX requires `EPERM` on a volume that
/// does not support these.
pub(crate) fn errno_of_maker(error: &Error) -> Errno {
    match error.kind() {
        Kind::Unsupported => Errno::EPERM,
        kind => errno(kind),
    }
}

/// Returns the errno for flags of `rename`. POSIX requires `EINVAL` for flags that the volume does
/// not support.
pub(crate) fn errno_of_flags(error: &Error) -> Errno {
    match error.kind() {
        Kind::Unsupported => Errno::EINVAL,
        kind => errno(kind),
    }
}

/// Returns the errno for `setxattr`, which has its own one for a value that is too large.
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
