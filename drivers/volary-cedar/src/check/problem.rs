//! What is wrong, and what mends it.

use volary_core::{Finding, Severity};

/// What mends a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fix {
    /// Build the name table anew.
    Salvage,
    /// Recovery as every attaching does it.
    Recover,
    /// Write the root pages.
    Roots,
    /// Write one copy of a page of the name table.
    Copy(usize, u32),
    /// Make a root directory.
    Root,
    /// Save the map.
    Map,
    /// Destroy a node without a name.
    Nameless(u64),
    /// Write a leader.
    Leader(u64),
    /// Take a cell away.
    Remove(Vec<u8>),
    /// Put a cell.
    Put(Vec<u8>, Vec<u8>),
    /// Set the number of names.
    Links(u64, u32),
    /// Take the content away.
    Empty(u64),
    /// Make size and pages agree.
    Size(u64),
    /// Take the checksums of data away.
    Sums(u64),
    /// Turn a remote's node into one of the volume's own.
    Own(u64),
    /// Turn a node into a remote's node without local content.
    Away(u64),
    /// Put an entry into the root.
    Adopt(Vec<u8>),
}

/// Something wrong, and what mends it.
pub(crate) struct Problem {
    pub(crate) finding: Finding,
    pub(crate) fix: Fix,
}

/// Returns a finding without a path.
pub(super) fn finding(
    code: &'static str,
    severity: Severity,
    message: String,
    repair: &str,
) -> Finding {
    Finding {
        code,
        severity,
        path: None,
        offset: None,
        message,
        repair: repair.into(),
    }
}
