//! Maps each kind of error to a status of each protocol.

use volary_core::{Error, Kind};

/// A status of NFSv3 (RFC 1813, section 2.6) or of MOUNT, which has the same
/// numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u32);

impl Status {
    pub(crate) const OK: Self = Self(0);
    pub(crate) const PERM: Self = Self(1);
    pub(crate) const NOENT: Self = Self(2);
    pub(crate) const IO: Self = Self(5);
    pub(crate) const ACCES: Self = Self(13);
    pub(crate) const EXIST: Self = Self(17);
    pub(crate) const XDEV: Self = Self(18);
    pub(crate) const NOTDIR: Self = Self(20);
    pub(crate) const ISDIR: Self = Self(21);
    pub(crate) const INVAL: Self = Self(22);
    pub(crate) const FBIG: Self = Self(27);
    pub(crate) const NOSPC: Self = Self(28);
    pub(crate) const ROFS: Self = Self(30);
    pub(crate) const MLINK: Self = Self(31);
    pub(crate) const NAMETOOLONG: Self = Self(63);
    pub(crate) const NOTEMPTY: Self = Self(66);
    pub(crate) const DQUOT: Self = Self(69);
    pub(crate) const STALE: Self = Self(70);
    pub(crate) const BADHANDLE: Self = Self(10001);
    pub(crate) const NOT_SYNC: Self = Self(10002);
    pub(crate) const BAD_COOKIE: Self = Self(10003);
    pub(crate) const NOTSUPP: Self = Self(10004);
    pub(crate) const TOOSMALL: Self = Self(10005);
    pub(crate) const SERVERFAULT: Self = Self(10006);
    pub(crate) const BADTYPE: Self = Self(10007);
    pub(crate) const JUKEBOX: Self = Self(10008);
}

impl From<Kind> for Status {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NotFound => Self::NOENT,
            Kind::Exists => Self::EXIST,
            Kind::NotDir => Self::NOTDIR,
            Kind::IsDir => Self::ISDIR,
            Kind::NotEmpty => Self::NOTEMPTY,
            // The protocol has no status for a symlink loop or for extended attributes.
            Kind::Invalid | Kind::SymlinkLoop | Kind::NoXattr => Self::INVAL,
            Kind::NameTooLong => Self::NAMETOOLONG,
            Kind::TooManyLinks => Self::MLINK,
            Kind::TooBig => Self::FBIG,
            Kind::NoSpace => Self::NOSPC,
            Kind::Quota => Self::DQUOT,
            Kind::ReadOnly => Self::ROFS,
            // A node may be in use for long: the caller is told at once, and need not wait.
            Kind::Access | Kind::Busy | Kind::Sharing | Kind::DeletePending => Self::ACCES,
            Kind::NotPermitted => Self::PERM,
            Kind::Stale => Self::STALE,
            // Try again later; `Interrupted` means that the server is going down.
            Kind::Locked | Kind::TooManyOpen | Kind::Interrupted => Self::JUKEBOX,
            Kind::Deadlock => Self::SERVERFAULT,
            Kind::Unsupported => Self::NOTSUPP,
            Kind::CrossVolume => Self::XDEV,
            Kind::Io | Kind::Corrupt => Self::IO,
        }
    }
}

impl From<Error> for Status {
    fn from(e: Error) -> Self {
        e.kind().into()
    }
}

/// A status of NLM version 4 (`nlm4_stats`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockStatus(pub(crate) u32);

impl LockStatus {
    pub(crate) const GRANTED: Self = Self(0);
    pub(crate) const DENIED: Self = Self(1);
    pub(crate) const NO_LOCKS: Self = Self(2);
    pub(crate) const BLOCKED: Self = Self(3);
    pub(crate) const GRACE: Self = Self(4);
    pub(crate) const DEADLOCK: Self = Self(5);
    pub(crate) const READ_ONLY: Self = Self(6);
    pub(crate) const STALE: Self = Self(7);
    pub(crate) const TOO_BIG: Self = Self(8);
    pub(crate) const FAILED: Self = Self(9);
}

impl From<Kind> for LockStatus {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Locked
            | Kind::Access
            | Kind::NotPermitted
            | Kind::Sharing
            | Kind::DeletePending => Self::DENIED,
            Kind::Quota | Kind::NoSpace | Kind::Busy | Kind::TooManyOpen => Self::NO_LOCKS,
            Kind::Deadlock => Self::DEADLOCK,
            Kind::ReadOnly => Self::READ_ONLY,
            Kind::Stale | Kind::NotFound => Self::STALE,
            Kind::TooBig => Self::TOO_BIG,
            Kind::Exists
            | Kind::NotDir
            | Kind::IsDir
            | Kind::NotEmpty
            | Kind::Invalid
            | Kind::NameTooLong
            | Kind::TooManyLinks
            | Kind::SymlinkLoop
            | Kind::Interrupted
            | Kind::Unsupported
            | Kind::NoXattr
            | Kind::CrossVolume
            | Kind::Io
            | Kind::Corrupt => Self::FAILED,
        }
    }
}

impl From<Error> for LockStatus {
    fn from(e: Error) -> Self {
        e.kind().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_error_looks_like_success() {
        for kind in Kind::ALL {
            assert_ne!(Status::from(kind), Status::OK, "{kind:?}");
            assert_ne!(LockStatus::from(kind), LockStatus::GRANTED, "{kind:?}");
        }
    }
}
