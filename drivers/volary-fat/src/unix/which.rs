//! The UNIX extension that a volume has.

/// Which UNIX extension is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unix {
    /// None.
    Off,
    /// Today's.
    Today,
    /// The paper's.
    Paper,
}
