//! Elements of requests and responses of CREATE (MS-SMB2 2.2.13, 2.2.14).

/// `CreateOptions`.
pub(crate) mod option {
    pub(crate) const DIRECTORY: u32 = 0x1;
    pub(crate) const WRITE_THROUGH: u32 = 0x2;
    pub(crate) const NON_DIRECTORY: u32 = 0x40;
    pub(crate) const DELETE_ON_CLOSE: u32 = 0x1000;
    pub(crate) const OPEN_REPARSE_POINT: u32 = 0x20_0000;
    /// `FILE_CREATE_TREE_CONNECTION`, `FILE_OPEN_BY_FILE_ID`, `FILE_RESERVE_OPFILTER`.
    pub(crate) const UNSUPPORTED: u32 = 0x10_2080;
    /// Bits without a meaning.
    pub(crate) const INVALID: u32 = 0xff00_0000;
    /// The bits that `FileModeInformation` has.
    pub(crate) const MODE: u32 = 0x103e;
}

/// `CreateDisposition`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Disposition {
    Supersede,
    Open,
    Create,
    OpenIf,
    Overwrite,
    OverwriteIf,
}

impl Disposition {
    pub(crate) fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Supersede,
            1 => Self::Open,
            2 => Self::Create,
            3 => Self::OpenIf,
            4 => Self::Overwrite,
            5 => Self::OverwriteIf,
            _ => return None,
        })
    }

    /// Returns whether an existing file loses its content.
    pub(crate) fn truncates(self) -> bool {
        matches!(self, Self::Supersede | Self::Overwrite | Self::OverwriteIf)
    }

    /// Returns whether a missing file is created.
    pub(crate) fn makes(self) -> bool {
        !matches!(self, Self::Open | Self::Overwrite)
    }
}

/// `ShareAccess`.
pub(crate) mod share {
    pub(crate) const READ: u32 = 1;
    pub(crate) const WRITE: u32 = 2;
    pub(crate) const DELETE: u32 = 4;
}

/// `CreateAction`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Action {
    Superseded = 0,
    Opened = 1,
    Created = 2,
    Overwritten = 3,
}
