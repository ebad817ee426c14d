//! Share modes: what an open is used for, and what it lets others do.

use std::ops::BitOr;
use volary_core::Mode;

/// Rights that share modes speak of: a set of [`READ`](Self::READ),
/// [`WRITE`](Self::WRITE) and [`DELETE`](Self::DELETE), and [`OTHER`](Self::OTHER)
/// ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rights(pub u8);

impl Rights {
    /// None: an open for attributes alone.
    pub const NONE: Self = Self(0);
    /// To read what it holds (or list it).
    pub const READ: Self = Self(1);
    /// To change what it holds.
    pub const WRITE: Self = Self(2);
    /// To take away or change its name.
    pub const DELETE: Self = Self(4);
    /// All three.
    pub const ALL: Self = Self(7);
    /// More than to look at attributes, but none of the three: no share mode
    /// speaks of it, but it takes away others' leases as the three do.
    pub const OTHER: Self = Self(8);

    /// Returns whether all of `rights` are in it.
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

/// An open's share mode. Two opens of one node go together if each allows what
/// the other wants; one that wants nothing goes together with all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// What it is used for.
    pub wants: Rights,
    /// What others may do meanwhile.
    pub allows: Rights,
}

impl Share {
    /// Returns whether both can be at once.
    pub const fn goes_with(self, other: Self) -> bool {
        let (mine, theirs) = (self.wants.0 & Rights::ALL.0, other.wants.0 & Rights::ALL.0);
        let go = self.allows.has(Rights(theirs)) && other.allows.has(Rights(mine));
        go || mine == 0 || theirs == 0
    }
}

/// As POSIX callers open: wants what the mode says, allows all.
impl From<Mode> for Share {
    fn from(mode: Mode) -> Self {
        Self {
            wants: mode.into(),
            allows: Rights::ALL,
        }
    }
}
