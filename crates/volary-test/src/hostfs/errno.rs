//! Translates errors of the host.

use rustix::io::Errno;
use volary_core::{Error, Kind};

/// Converts an errno.
pub(super) fn from_errno(errno: Errno) -> Error {
    let kind = match errno {
        Errno::NOENT => Kind::NotFound,
        Errno::EXIST => Kind::Exists,
        Errno::NOTDIR => Kind::NotDir,
        Errno::ISDIR => Kind::IsDir,
        Errno::NOTEMPTY => Kind::NotEmpty,
        Errno::INVAL | Errno::ILSEQ => Kind::Invalid,
        Errno::NAMETOOLONG => Kind::NameTooLong,
        Errno::MLINK => Kind::TooManyLinks,
        Errno::LOOP => Kind::SymlinkLoop,
        Errno::FBIG | Errno::OVERFLOW => Kind::TooBig,
        Errno::NOSPC => Kind::NoSpace,
        Errno::DQUOT => Kind::Quota,
        Errno::ROFS => Kind::ReadOnly,
        Errno::ACCESS => Kind::Access,
        Errno::PERM => Kind::NotPermitted,
        Errno::STALE => Kind::Stale,
        Errno::AGAIN => Kind::Locked,
        Errno::DEADLK => Kind::Deadlock,
        Errno::BUSY | Errno::TXTBSY => Kind::Busy,
        Errno::INTR => Kind::Interrupted,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY => Kind::Unsupported,
        Errno::NODATA => Kind::NoXattr,
        Errno::XDEV => Kind::CrossVolume,
        _ => return Error::io("system call", 0, 0, errno.to_string()),
    };
    kind.into()
}
