//! Clients and readers in Python.

use super::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns a Python that has impacket and smbprotocol, two SMB clients that share no code
/// with Samba's: where `cargo xtask tools` installs them, or the system's. `None`,
/// with a line that says so, where there is none.
///
/// # Panics
/// If there is none where `CI` is `true`.
pub fn with_smb_clients() -> Option<PathBuf> {
    having("impacket, smbprotocol")
}

/// Returns a Python that has dissect.ffs, which [`dissect`](super::dissect) runs; found in the same
/// way.
///
/// # Panics
/// If there is none where `CI` is `true`.
pub fn with_dissect_ffs() -> Option<PathBuf> {
    having("dissect.ffs")
}

fn having(modules: &str) -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python3");
    let found = [own, PathBuf::from("python3")]
        .into_iter()
        .find(|python| has_modules(python, modules));
    if found.is_none() {
        skip(&format!("no Python with {modules}: cargo xtask tools"));
    }
    found
}

fn has_modules(python: &Path, modules: &str) -> bool {
    let mut command = Command::new(python);
    command.arg("-c").arg(format!("import {modules}"));
    command.output().is_ok_and(|out| out.status.success())
}
