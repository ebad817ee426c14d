//! NFSv3's structures and numbers (RFC 1813), as on the wire.

use crate::fail;
use volary_core::{Access, Error, FileKind, Kind, Result, SetAttr, SetTime, Time};
use volary_rpc::numbers::FH_MAX;
use volary_rpc::{Decoded, Garbage, Input, Output};

/// The procedures of NFS (section 3.3).
pub(crate) mod procedure {
    pub(crate) const GETATTR: u32 = 1;
    pub(crate) const SETATTR: u32 = 2;
    pub(crate) const LOOKUP: u32 = 3;
    pub(crate) const ACCESS: u32 = 4;
    pub(crate) const READLINK: u32 = 5;
    pub(crate) const READ: u32 = 6;
    pub(crate) const WRITE: u32 = 7;
    pub(crate) const CREATE: u32 = 8;
    pub(crate) const MKDIR: u32 = 9;
    pub(crate) const SYMLINK: u32 = 10;
    pub(crate) const MKNOD: u32 = 11;
    pub(crate) const REMOVE: u32 = 12;
    pub(crate) const RMDIR: u32 = 13;
    pub(crate) const RENAME: u32 = 14;
    pub(crate) const LINK: u32 = 15;
    pub(crate) const READDIR: u32 = 16;
    pub(crate) const READDIRPLUS: u32 = 17;
    pub(crate) const FSSTAT: u32 = 18;
    pub(crate) const FSINFO: u32 = 19;
    pub(crate) const PATHCONF: u32 = 20;
    pub(crate) const COMMIT: u32 = 21;
}

/// The `NFS3ERR_…` values that this driver treats specially.
pub(crate) mod status {
    pub(crate) const OK: u32 = 0;
    pub(crate) const EXIST: u32 = 17;
    pub(crate) const NOENT: u32 = 2;
    pub(crate) const BAD_COOKIE: u32 = 10003;
    pub(crate) const NOTSUPP: u32 = 10004;
    pub(crate) const JUKEBOX: u32 = 10008;
}

/// Returns the error for a status of NFS or MOUNT (section 2.6).
pub(crate) fn error_of(status: u32) -> Error {
    let kind = match status {
        1 => Kind::NotPermitted,
        status::NOENT => Kind::NotFound,
        13 => Kind::Access,
        status::EXIST => Kind::Exists,
        18 => Kind::CrossVolume,
        20 => Kind::NotDir,
        21 => Kind::IsDir,
        // BAD_COOKIE and BADTYPE are a caller's mistake too.
        22 | status::BAD_COOKIE | 10007 => Kind::Invalid,
        27 => Kind::TooBig,
        28 => Kind::NoSpace,
        30 => Kind::ReadOnly,
        31 => Kind::TooManyLinks,
        63 => Kind::NameTooLong,
        66 => Kind::NotEmpty,
        69 => Kind::Quota,
        // BADHANDLE: the export is no longer the same.
        70 | 10001 => Kind::Stale,
        19 | status::NOTSUPP => Kind::Unsupported,
        status::JUKEBOX => Kind::Busy,
        5 | 6 | 71 | 10002 | 10005 | 10006 => {
            return fail::io(format!("the server answered with its error {status}"));
        }
        _ => return fail::nonsense("status", status, "one of RFC 1813"),
    };
    kind.into()
}

/// A file handle: up to 64 bytes that only the server can interpret.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Fh {
    bytes: [u8; FH_MAX],
    len: u8,
}

impl Fh {
    pub(crate) fn new(from: &[u8]) -> Decoded<Self> {
        let mut bytes = [0; FH_MAX];
        let room = bytes.get_mut(..from.len()).ok_or(Garbage)?;
        room.copy_from_slice(from);
        let len = u8::try_from(from.len()).map_err(|_| Garbage)?;
        Ok(Self { bytes, len })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.bytes.get(..self.len.into()).unwrap_or_default()
    }

    pub(crate) fn read(input: &mut Input<'_>) -> Decoded<Self> {
        Self::new(input.opaque(FH_MAX)?)
    }

    pub(crate) fn write(&self, out: &mut Output) {
        out.opaque(self.bytes());
    }

    /// Reads a `post_op_fh3`.
    pub(crate) fn read_maybe(input: &mut Input<'_>) -> Decoded<Option<Self>> {
        Ok(if input.bool()? {
            Some(Self::read(input)?)
        } else {
            None
        })
    }
}

/// A decoded `fattr3`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Fattr {
    pub(crate) kind: FileKind,
    pub(crate) mode: u32,
    pub(crate) nlink: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) size: u64,
    pub(crate) used: u64,
    pub(crate) rdev: u64,
    pub(crate) fileid: u64,
    pub(crate) atime: Time,
    pub(crate) mtime: Time,
    pub(crate) ctime: Time,
}

impl Fattr {
    pub(crate) fn read(input: &mut Input<'_>) -> Decoded<Self> {
        let kind = kind_of(input.u32()?).ok_or(Garbage)?;
        let (mode, nlink) = (input.u32()? & 0o7777, input.u32()?);
        let (uid, gid) = (input.u32()?, input.u32()?);
        let (size, used, rdev) = (input.u64()?, input.u64()?, input.u64()?);
        input.u64()?;
        let fileid = input.u64()?;
        let times = [time(input)?, time(input)?, time(input)?];
        let [atime, mtime, ctime] = times;
        Ok(Self {
            kind,
            mode,
            nlink,
            uid,
            gid,
            size,
            used,
            rdev,
            fileid,
            atime,
            mtime,
            ctime,
        })
    }

    /// Reads a `post_op_attr`.
    pub(crate) fn read_maybe(input: &mut Input<'_>) -> Decoded<Option<Self>> {
        Ok(if input.bool()? {
            Some(Self::read(input)?)
        } else {
            None
        })
    }

    /// Returns whether the content is, by these attributes, the same as in `other`.
    pub(crate) fn is_same_content(&self, other: &Self) -> bool {
        (self.mtime, self.ctime, self.size) == (other.mtime, other.ctime, other.size)
    }
}

/// A `wcc_data`: a node's attributes before and after a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wcc {
    /// The `mtime` and `ctime` before the change.
    pub(crate) before: Option<(Time, Time)>,
    pub(crate) after: Option<Fattr>,
}

impl Wcc {
    pub(crate) fn read(input: &mut Input<'_>) -> Decoded<Self> {
        let before = if input.bool()? {
            input.u64()?;
            Some((time(input)?, time(input)?))
        } else {
            None
        };
        let after = Fattr::read_maybe(input)?;
        Ok(Self { before, after })
    }
}

/// Reads an `nfstime3`.
pub(crate) fn time(input: &mut Input<'_>) -> Decoded<Time> {
    let (secs, nanos) = (input.u32()?, input.u32()?);
    Ok(Time::new(secs.into(), nanos))
}

const KINDS: [FileKind; 7] = [
    FileKind::File,
    FileKind::Dir,
    FileKind::BlockDevice,
    FileKind::CharDevice,
    FileKind::Symlink,
    FileKind::Socket,
    FileKind::Fifo,
];

/// Returns the kind for an `ftype3`.
fn kind_of(number: u32) -> Option<FileKind> {
    let at = usize::try_from(number.checked_sub(1)?).ok()?;
    KINDS.get(at).copied()
}

/// Returns the `ftype3` of a kind.
pub(crate) fn number_of(kind: FileKind) -> u32 {
    let at = KINDS.iter().position(|&k| k == kind).unwrap_or_default();
    volary_rpc::count(at).saturating_add(1)
}

/// An `sattr3`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sattr {
    pub(crate) mode: Option<u32>,
    pub(crate) uid: Option<u32>,
    pub(crate) gid: Option<u32>,
    pub(crate) size: Option<u64>,
    atime: Option<When>,
    mtime: Option<When>,
}

/// A `set_atime` or `set_mtime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    /// The current time of the server's clock.
    Now,
    To(u32, u32),
}

impl Sattr {
    /// # Errors
    /// `Unsupported` for attributes that NFSv3 does not have: birth time and DOS attributes.
    pub(crate) fn new(set: &SetAttr) -> Result<Self> {
        if set.btime.is_some() || set.dos.is_some() {
            return Err(Kind::Unsupported.into());
        }
        Ok(Self {
            mode: set.mode.map(|mode| mode & 0o7777),
            uid: set.uid,
            gid: set.gid,
            size: set.size,
            atime: set.atime.map(when),
            mtime: set.mtime.map(when),
        })
    }

    pub(crate) fn write(&self, out: &mut Output) {
        for n in [self.mode, self.uid, self.gid] {
            out.bool(n.is_some());
            n.into_iter().for_each(|n| out.u32(n));
        }
        out.bool(self.size.is_some());
        self.size.into_iter().for_each(|n| out.u64(n));
        for time in [self.atime, self.mtime] {
            match time {
                None => out.u32(0),
                Some(When::Now) => out.u32(1),
                Some(When::To(secs, nanos)) => {
                    [2, secs, nanos].into_iter().for_each(|n| out.u32(n));
                }
            }
        }
    }

    /// Returns the size, and the other attributes.
    pub(crate) fn without_size(self) -> (Option<u64>, Self) {
        (self.size, Self { size: None, ..self })
    }

    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Converts a time. The protocol supports the years 1970 to 2106; a time beyond either end becomes
/// that end.
fn when(time: SetTime) -> When {
    match time {
        SetTime::Now => When::Now,
        SetTime::To(t) if t.secs < 0 => When::To(0, 0),
        SetTime::To(t) => match u32::try_from(t.secs) {
            Ok(secs) => When::To(secs, t.nanos),
            Err(_) => When::To(u32::MAX, 0),
        },
    }
}

/// Returns the bits of ACCESS that stand for `want` on a node of this kind.
pub(crate) fn access_bits(kind: FileKind, want: Access) -> u32 {
    const READ: u32 = 0x01;
    const LOOKUP: u32 = 0x02;
    const MODIFY: u32 = 0x04;
    const EXTEND: u32 = 0x08;
    const DELETE: u32 = 0x10;
    const EXECUTE: u32 = 0x20;
    let (write, exec) = match kind {
        FileKind::Dir => (MODIFY | EXTEND | DELETE, LOOKUP),
        _ => (MODIFY | EXTEND, EXECUTE),
    };
    [
        (Access::READ, READ),
        (Access::WRITE, write),
        (Access::EXEC, exec),
    ]
    .into_iter()
    .filter(|(one, _)| want.has(*one))
    .fold(0, |bits, (_, more)| bits | more)
}

/// Returns the part of `want` that these bits grant.
pub(crate) fn granted(kind: FileKind, want: Access, bits: u32) -> Access {
    [Access::READ, Access::WRITE, Access::EXEC]
        .into_iter()
        .filter(|&one| want.has(one))
        .filter(|&one| {
            let needs = access_bits(kind, one);
            bits & needs == needs
        })
        .fold(Access::default(), Access::and)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_node_has_its_number() {
        for kind in KINDS {
            assert_eq!(kind_of(number_of(kind)), Some(kind));
        }
        assert_eq!((kind_of(0), kind_of(8)), (None, None));
    }

    #[test]
    fn access_is_granted_by_all_of_its_bits() {
        let all = Access::READ.and(Access::WRITE).and(Access::EXEC);
        assert_eq!(granted(FileKind::Dir, all, 0x1f), all);
        let some = granted(FileKind::Dir, all, 0x0f);
        assert_eq!(some, Access::READ.and(Access::EXEC));
        assert_eq!(
            granted(FileKind::File, all, 0x0d),
            Access::READ.and(Access::WRITE)
        );
        assert_eq!(granted(FileKind::File, Access::READ, 0xff), Access::READ);
    }

    #[test]
    fn times_past_what_the_protocol_keeps_become_its_ends() {
        let to = |secs| when(SetTime::To(Time::new(secs, 5)));
        assert_eq!(to(-1), When::To(0, 0));
        assert_eq!(to(7), When::To(7, 5));
        assert_eq!(to(1 << 40), When::To(u32::MAX, 0));
    }

    #[test]
    fn every_status_is_an_error_and_unknown_ones_are_nonsense() {
        for n in (1..100).chain(10_000..10_010) {
            let known = [
                1, 2, 5, 6, 13, 17, 18, 19, 20, 21, 22, 27, 28, 30, 31, 63, 66, 69, 70, 71, 10001,
                10002, 10003, 10004, 10005, 10006, 10007, 10008,
            ];
            let e = error_of(n);
            assert_eq!(e.as_corrupt().is_none(), known.contains(&n), "{n}");
        }
    }

    #[test]
    fn handles_that_are_too_long_are_none() {
        assert!(Fh::new(&[1; 64]).is_ok());
        assert!(Fh::new(&[1; 65]).is_err());
        assert_eq!(Fh::new(b"abc").unwrap().bytes(), b"abc");
    }
}
