//! Share modes: what an open is used for, and what it lets others do.

use std::ops::BitOr;
use volary_core::Mode;

/// Rights in share modes: a set of [`READ`](Self::READ), [`WRITE`](Self::WRITE),
/// [`DELETE`](Self::DELETE) and [`OTHER`](Self::OTHER).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(pub u8);

impl Rights {
    /// No rights: an open for attributes alone.
    pub const NONE: Self = Self(0);
    /// To read the content (or list a directory).
    pub const READ: Self = Self(1);
    /// To change the content.
    pub const WRITE: Self = Self(2);
    /// To remove or rename the node.
    pub const DELETE: Self = Self(4);
    /// `READ`, `WRITE` and `DELETE`.
    pub const ALL: Self = Self(7);
    /// Access beyond attributes, but none of the three: it conflicts with no share mode, but breaks
    /// others' leases as the three do.
    pub const OTHER: Self = Self(8);

    /// Returns whether all of `rights` are set.
    pub const fn has(self, rights: Self) -> bool {
        self.0 & rights.0 == rights.0
    }
}

impl BitOr for Rights {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl From<Mode> for Rights {
    fn from(mode: Mode) -> Self {
        match mode {
            Mode::Read => Self::READ,
            Mode::Write => Self::WRITE,
            Mode::ReadWrite => Self::READ | Self::WRITE,
        }
    }
}

/// An open's share mode. Two opens of one node are compatible if each allows what the other wants;
/// one that wants nothing is compatible with all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// The rights that the open uses.
    pub wants: Rights,
    /// The rights that other opens may use meanwhile.
    pub allows: Rights,
}

impl Share {
    /// Returns whether two opens with these share modes are compatible.
    pub const fn goes_with(self, other: Self) -> bool {
        let (mine, theirs) = (self.wants.0 & Rights::ALL.0, other.wants.0 & Rights::ALL.0);
        let go = self.allows.has(Rights(theirs)) && other.allows.has(Rights(mine));
        go || mine == 0 || theirs == 0
    }
}

/// The share mode of a POSIX open: wants what the mode says, allows all.
impl From<Mode> for Share {
    fn from(mode: Mode) -> Self {
        Self {
            wants: mode.into(),
            allows: Rights::ALL,
        }
    }
}
