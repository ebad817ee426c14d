//! [`Dialect`]: the versions of SMB 2 and 3.

/// A version of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// SMB 2.0.2.
    Smb202,
    /// SMB 2.1.
    Smb210,
    /// SMB 3.0.
    Smb300,
    /// SMB 3.0.2.
    Smb302,
    /// SMB 3.1.1.
    Smb311,
}

impl Dialect {
    /// All dialects, from the oldest to the newest.
    pub const ALL: [Self; 5] = [
        Self::Smb202,
        Self::Smb210,
        Self::Smb300,
        Self::Smb302,
        Self::Smb311,
    ];

    /// Returns its number in the protocol.
    pub const fn code(self) -> u16 {
        match self {
            Self::Smb202 => 0x0202,
            Self::Smb210 => 0x0210,
            Self::Smb300 => 0x0300,
            Self::Smb302 => 0x0302,
            Self::Smb311 => 0x0311,
        }
    }
}
