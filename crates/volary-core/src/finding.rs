//! [`Finding`]: what a check, or a driver at work, found wrong with a volume.

/// How bad a [`Finding`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Note,
    /// A power cut can leave this, and preen mends it.
    Crash,
    /// Damage.
    Damage,
}

/// Something that a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// A stable code, listed in the driver's `FORMAT.md`: `cross-link`.
    pub code: &'static str,
    /// How bad.
    pub severity: Severity,
    /// The file or directory concerned, as an absolute path.
    pub path: Option<Vec<u8>>,
    /// Where on the device, in bytes.
    pub offset: Option<u64>,
    /// What is wrong, in a sentence without a full stop at its end.
    pub message: String,
    /// What mending does, in the same form; "" if nothing can mend it.
    pub repair: String,
}
