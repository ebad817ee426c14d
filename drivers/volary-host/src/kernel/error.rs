//! Translates the host's errors into those of the project.

use rustix::io::Errno;
use volary_core::{Error, Kind};

/// Returns the error for an `errno` of the host.
pub(crate) fn from_errno(errno: Errno) -> Error {
    let kind = match errno {
        Errno::NOENT => Kind::NotFound,
        Errno::EXIST => Kind::Exists,
        Errno::NOTDIR => Kind::NotDir,
        Errno::ISDIR => Kind::IsDir,
        Errno::NOTEMPTY => Kind::NotEmpty,
        Errno::INVAL | Errno::ILSEQ | Errno::NXIO => Kind::Invalid,
        Errno::NAMETOOLONG => Kind::NameTooLong,
        Errno::MLINK => Kind::TooManyLinks,
        Errno::LOOP => Kind::SymlinkLoop,
        Errno::FBIG | Errno::OVERFLOW | Errno::TOOBIG => Kind::TooBig,
        Errno::NOSPC => Kind::NoSpace,
        Errno::DQUOT => Kind::Quota,
        Errno::ROFS => Kind::ReadOnly,
        Errno::ACCESS => Kind::Access,
        Errno::PERM => Kind::NotPermitted,
        Errno::STALE => Kind::Stale,
        Errno::DEADLK => Kind::Deadlock,
        Errno::BUSY | Errno::TXTBSY | Errno::AGAIN => Kind::Busy,
        Errno::INTR => Kind::Interrupted,
        Errno::OPNOTSUPP | Errno::NOSYS | Errno::NOTTY => Kind::Unsupported,
        Errno::NODATA => Kind::NoXattr,
        Errno::XDEV => Kind::CrossVolume,
        Errno::MFILE | Errno::NFILE => {
            let words = "too many descriptors are open; raise the limit with ulimit -n";
            return Error::note(Kind::TooManyOpen, words);
        }
        _ => return Error::io("system call", 0, 0, errno.to_string()),
    };
    kind.into()
}

/// Returns the error for a name that leads to another file system.
pub(crate) fn elsewhere() -> Error {
    let words = "another file system is there, which is no part of this volume; name it by a host: of its own";
    Error::note(Kind::CrossVolume, words)
}

/// Returns the error for a call on a node that was found before. `ENOENT` means that it is gone.
pub(crate) fn from_errno_on_node(errno: Errno) -> Error {
    match errno {
        Errno::NOENT => Kind::Stale.into(),
        errno => from_errno(errno),
    }
}
