//! Error codes for clients: one row for every [`Kind`].

use crate::answer::Failure;
use crate::wire::Status;
use volary_core::{Error, Kind};

/// Returns the code for a kind of error.
pub(crate) fn status(kind: Kind) -> Status {
    match kind {
        Kind::NotFound => Status::OBJECT_NAME_NOT_FOUND,
        Kind::Exists => Status::OBJECT_NAME_COLLISION,
        Kind::NotDir => Status::NOT_A_DIRECTORY,
        Kind::IsDir => Status::FILE_IS_A_DIRECTORY,
        Kind::NotEmpty => Status::DIRECTORY_NOT_EMPTY,
        Kind::Invalid | Kind::TooBig => Status::INVALID_PARAMETER,
        Kind::NameTooLong => Status::NAME_TOO_LONG,
        Kind::TooManyLinks => Status::TOO_MANY_LINKS,
        Kind::SymlinkLoop => Status::IO_REPARSE_TAG_INVALID,
        // NTFS and Samba return this for quotas too. QUOTA_EXCEEDED concerns a process.
        Kind::NoSpace | Kind::Quota => Status::DISK_FULL,
        Kind::ReadOnly => Status::MEDIA_WRITE_PROTECTED,
        Kind::Access | Kind::NotPermitted => Status::ACCESS_DENIED,
        Kind::Stale => Status::FILE_CLOSED,
        Kind::Locked => Status::FILE_LOCK_CONFLICT,
        Kind::Deadlock => Status::POSSIBLE_DEADLOCK,
        Kind::Busy | Kind::Sharing => Status::SHARING_VIOLATION,
        Kind::TooManyOpen => Status::TOO_MANY_OPENED_FILES,
        Kind::DeletePending => Status::DELETE_PENDING,
        Kind::Interrupted => Status::CANCELLED,
        Kind::Unsupported => Status::NOT_SUPPORTED,
        Kind::NoXattr => Status::NONEXISTENT_EA_ENTRY,
        Kind::CrossVolume => Status::NOT_SAME_DEVICE,
        Kind::Io => Status::IO_DEVICE_ERROR,
        Kind::Corrupt => Status::FILE_CORRUPT_ERROR,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        status(error.kind()).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told_as_an_error() {
        for kind in Kind::ALL {
            assert!(status(kind).is_error(), "{kind:?}");
        }
    }
}
