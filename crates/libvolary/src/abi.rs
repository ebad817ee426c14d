//! Structures and constants of the C interface.

use std::ffi::{c_char, c_int, c_void};
use volary::{Attr, FileKind, Kind};

/// An open volume. 0 stands for none.
pub type VolaryVol = u64;

/// An open file. 0 stands for none.
pub type VolaryFile = u64;

/// A walk through a directory, or a tree. 0 stands for none.
pub type VolaryWalk = u64;

/// A running server. 0 stands for none.
pub type VolaryServer = u64;

/// Error codes: functions return the negative of one of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
#[expect(missing_docs, reason = "the names say it")]
pub enum VolaryError {
    NotFound = 1,
    Exists = 2,
    NotDir = 3,
    IsDir = 4,
    NotEmpty = 5,
    /// The request makes no sense: a null pointer, a text that is not UTF-8 but must be, an unknown
    /// option.
    Invalid = 6,
    NameTooLong = 7,
    TooManyLinks = 8,
    SymlinkLoop = 9,
    TooBig = 10,
    NoSpace = 11,
    Quota = 12,
    ReadOnly = 13,
    Access = 14,
    NotPermitted = 15,
    /// A handle that is not open, or no more; a file that is gone.
    Stale = 16,
    Locked = 17,
    Deadlock = 18,
    Sharing = 19,
    DeletePending = 20,
    Busy = 21,
    TooManyOpen = 22,
    Interrupted = 23,
    Unsupported = 24,
    NoXattr = 25,
    CrossVolume = 26,
    Io = 27,
    Corrupt = 28,
    /// A bug in volary. The operation may have been done in part.
    Panic = 99,
}

impl From<Kind> for VolaryError {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::NotFound => Self::NotFound,
            Kind::Exists => Self::Exists,
            Kind::NotDir => Self::NotDir,
            Kind::IsDir => Self::IsDir,
            Kind::NotEmpty => Self::NotEmpty,
            Kind::Invalid => Self::Invalid,
            Kind::NameTooLong => Self::NameTooLong,
            Kind::TooManyLinks => Self::TooManyLinks,
            Kind::SymlinkLoop => Self::SymlinkLoop,
            Kind::TooBig => Self::TooBig,
            Kind::NoSpace => Self::NoSpace,
            Kind::Quota => Self::Quota,
            Kind::ReadOnly => Self::ReadOnly,
            Kind::Access => Self::Access,
            Kind::NotPermitted => Self::NotPermitted,
            Kind::Stale => Self::Stale,
            Kind::Locked => Self::Locked,
            Kind::Deadlock => Self::Deadlock,
            Kind::Sharing => Self::Sharing,
            Kind::DeletePending => Self::DeletePending,
            Kind::Busy => Self::Busy,
            Kind::TooManyOpen => Self::TooManyOpen,
            Kind::Interrupted => Self::Interrupted,
            Kind::Unsupported => Self::Unsupported,
            Kind::NoXattr => Self::NoXattr,
            Kind::CrossVolume => Self::CrossVolume,
            Kind::Io => Self::Io,
            Kind::Corrupt => Self::Corrupt,
        }
    }
}

/// How to open or make a volume. Set all of it to zeros first, then `size`: a zero is the default.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct VolaryOptions {
    /// `sizeof(VolaryOptions)`.
    pub size: usize,
    /// The kind of volume, if it should not be recognised automatically: `ffs`.
    pub kind: *const c_char,
    /// Options of the format, separated by commas.
    pub options: *const c_char,
    /// Layers over the volume, one a line, the lowest first.
    pub layers: *const c_char,
    /// Bound on the memory for caches, in bytes.
    pub memory: u64,
    /// The label of a new volume.
    pub label: *const c_char,
    /// Options of the format for a new volume, separated by commas.
    pub make_options: *const c_char,
    /// If not zero, the seed of a new volume's serial number.
    pub seed: u64,
    /// If not zero, opens the volume for changes.
    pub writes: c_int,
    /// If not zero, makes the new volume over an existing file.
    pub overwrites: c_int,
}

/// Attributes of a file.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct VolaryStat {
    /// Length in bytes.
    pub size: u64,
    /// Bytes that it occupies on the volume.
    pub allocated: u64,
    /// The number of its node.
    pub ino: u64,
    /// Seconds since 1970 of the last access.
    pub atime: i64,
    /// Seconds since 1970 of the last change of its content.
    pub mtime: i64,
    /// Seconds since 1970 of the last change of content or attributes.
    pub ctime: i64,
    /// The rest of `atime`, in nanoseconds.
    pub atime_nanos: u32,
    /// The rest of `mtime`, in nanoseconds.
    pub mtime_nanos: u32,
    /// The rest of `ctime`, in nanoseconds.
    pub ctime_nanos: u32,
    /// Its type and its permission bits, as in `st_mode`. 0 if the file is damaged: all other
    /// fields are then 0 too.
    pub mode: u32,
    /// The number of its names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// DOS attributes, or 256 if the format has none: read-only 1, hidden 2, system 4, archive 32.
    pub dos: u32,
}

/// The value of `dos` for a format without DOS attributes.
const NO_DOS: u32 = 256;

impl From<&Attr> for VolaryStat {
    fn from(attr: &Attr) -> Self {
        Self {
            size: attr.size,
            allocated: attr.allocated,
            ino: attr.node.ino.get(),
            atime: attr.atime.secs,
            mtime: attr.mtime.secs,
            ctime: attr.ctime.secs,
            atime_nanos: attr.atime.nanos,
            mtime_nanos: attr.mtime.nanos,
            ctime_nanos: attr.ctime.nanos,
            mode: FileKind::mode_bits(attr.kind) | attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            dos: attr.dos.map_or(NO_DOS, u32::from),
        }
    }
}

/// How full a volume is, in bytes.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct VolarySpace {
    /// The volume's capacity for files.
    pub size: u64,
    /// The free space.
    pub free: u64,
    /// The size of its blocks.
    pub block: u32,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum VolaryHow {
    /// To read an existing file.
    Read = 0,
    /// To write a file, which is made, or emptied if it exists.
    Write = 1,
    /// To write a new file, which must not exist.
    New = 2,
    /// To read and write an existing file.
    Update = 3,
    /// To read and write a file, which is made if it does not exist.
    UpdateOrNew = 4,
    /// To append to a file, which is made if it does not exist.
    Append = 5,
}

/// What a check may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum VolaryCheck {
    /// Write nothing.
    Look = 0,
    /// Mend what a power cut can leave.
    Preen = 1,
    /// Mend everything.
    Mend = 2,
}

/// Takes one finding of a check: a code, a path or null, and a message. The texts are valid until
/// it returns.
pub type VolaryFinding = Option<
    unsafe extern "C" fn(
        context: *mut c_void,
        code: *const c_char,
        path: *const c_char,
        message: *const c_char,
    ),
>;
