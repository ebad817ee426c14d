//! Attributes of nodes.

use crate::{Cred, NodeId, Time};

/// The kind of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileKind {
    File,
    Dir,
    Symlink,
    Fifo,
    Socket,
    CharDevice,
    BlockDevice,
}

impl FileKind {
    /// Returns the `S_IFMT` bits of `st_mode`.
    pub const fn mode_bits(self) -> u32 {
        match self {
            Self::File => 0o100_000,
            Self::Dir => 0o040_000,
            Self::Symlink => 0o120_000,
            Self::Fifo => 0o010_000,
            Self::Socket => 0o140_000,
            Self::CharDevice => 0o020_000,
            Self::BlockDevice => 0o060_000,
        }
    }

    /// Returns the kind that the `S_IFMT` bits of `mode` name, if they name one.
    pub const fn from_mode(mode: u32) -> Option<Self> {
        Some(match mode & 0o170_000 {
            0o100_000 => Self::File,
            0o040_000 => Self::Dir,
            0o120_000 => Self::Symlink,
            0o010_000 => Self::Fifo,
            0o140_000 => Self::Socket,
            0o020_000 => Self::CharDevice,
            0o060_000 => Self::BlockDevice,
            _ => return None,
        })
    }
}

/// The attributes of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Attr {
    /// The node.
    pub node: NodeId,
    /// Its kind.
    pub kind: FileKind,
    /// Permission bits with set-uid, set-gid and sticky: 12 bits.
    pub mode: u32,
    /// The number of its names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// For devices: major number in the upper half, minor in the lower.
    pub rdev: u64,
    /// Length of the content in bytes.
    pub size: u64,
    /// Bytes that it occupies on the volume.
    pub allocated: u64,
    /// The preferred size of reads and writes, in bytes.
    pub io_size: u32,
    /// Last access.
    pub atime: Time,
    /// Last change of the content.
    pub mtime: Time,
    /// Last change of content or attributes.
    pub ctime: Time,
    /// Birth, if the format keeps it.
    pub btime: Option<Time>,
    /// Grows with every change of content or attributes while the volume is
    /// attached.
    pub change: u64,
    /// DOS attributes, if the format keeps them: read-only 1, hidden 2, system 4, archive 0x20.
    pub dos: Option<u8>,
}

impl Attr {
    /// Returns whether mode, owner and group grant all of `want`. Root may do everything, but may
    /// execute a file only if somebody may.
    pub fn permits(&self, cred: &Cred, want: Access) -> bool {
        if cred.is_root() {
            let runs = self.kind == FileKind::Dir || self.mode & 0o111 != 0;
            return runs || !want.has(Access::EXEC);
        }
        let shift = if cred.uid == self.uid {
            6
        } else if cred.in_group(self.gid) {
            3
        } else {
            0
        };
        Access((self.mode >> shift & 0o7) as u8).has(want)
    }
}

/// A time to set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetTime {
    /// The time of the call.
    Now,
    /// This time, rounded down to the resolution of the format.
    To(Time),
}

/// Attributes to change; `None` leaves one as it is. When a node is made, the driver's defaults
/// stand in for `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SetAttr {
    /// Permission bits: 12 bits.
    pub mode: Option<u32>,
    /// Owner.
    pub uid: Option<u32>,
    /// Group.
    pub gid: Option<u32>,
    /// Size: content past it is cut off, and a gap before it reads as zeros.
    pub size: Option<u64>,
    /// Last access.
    pub atime: Option<SetTime>,
    /// Last change of the content.
    pub mtime: Option<SetTime>,
    /// Birth.
    pub btime: Option<SetTime>,
    /// DOS attributes; see [`Attr::dos`].
    pub dos: Option<u8>,
}

impl SetAttr {
    /// Returns a change of the permission bits alone.
    pub fn mode(mode: u32) -> Self {
        Self {
            mode: Some(mode),
            ..Self::default()
        }
    }
    /// Returns a change of the size alone.
    pub fn size(size: u64) -> Self {
        Self {
            size: Some(size),
            ..Self::default()
        }
    }
    /// Returns permission bits, owner and group, as for a new node.
    pub fn owned(mode: u32, uid: u32, gid: u32) -> Self {
        Self {
            mode: Some(mode),
            uid: Some(uid),
            gid: Some(gid),
            ..Self::default()
        }
    }
}

/// A set of kinds of access, as in `access(2)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Access(pub u8);

impl Access {
    /// Execute a file, walk through a directory.
    pub const EXEC: Self = Self(1);
    /// Write.
    pub const WRITE: Self = Self(2);
    /// Read.
    pub const READ: Self = Self(4);

    /// Returns the union of both sets.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
    /// Returns whether the set contains all of `other`.
    pub const fn has(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }
}
