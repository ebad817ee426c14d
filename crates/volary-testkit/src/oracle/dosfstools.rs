//! dosfstools: mkfs.fat and fsck.fat.

use super::{Tool, failed, run};
use std::path::Path;

/// Makes FAT volumes.
pub const MKFS: Tool = Tool {
    program: "mkfs.fat",
    package: "dosfstools",
};

/// Checks them.
pub const FSCK: Tool = Tool {
    program: "fsck.fat",
    package: "dosfstools",
};

/// Makes a volume with these options in the file, which exists and is as large
/// as the volume is to be.
///
/// # Errors
/// What mkfs.fat printed.
pub fn make(image: &Path, options: &[&str]) -> Result<(), String> {
    run(MKFS.command().args(options).arg(image)).map(drop)
}

/// Holds if fsck.fat finds nothing to mend; it writes nothing.
///
/// # Errors
/// What it printed. It ends with 0 for some of what it finds (a dirty mark,
/// a stale count of free clusters), so that counts as well.
pub fn check(image: &Path) -> Result<(), String> {
    let mut command = FSCK.command();
    let output = command
        .arg("-n")
        .arg(image)
        .output()
        .map_err(|e| e.to_string())?;
    if output.status.success() && is_clean(&String::from_utf8_lossy(&output.stdout)) {
        Ok(())
    } else {
        Err(failed(&command, &output))
    }
}

/// Returns whether there is nothing but the version and the summary.
pub(super) fn is_clean(printed: &str) -> bool {
    let lines = printed.lines().filter(|line| {
        let summary = line.contains(" files, ") && line.contains(" clusters");
        !line.starts_with("fsck.fat ") && !summary && !line.is_empty()
    });
    lines.count() == 0
}
