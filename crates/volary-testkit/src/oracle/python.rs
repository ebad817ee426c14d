//! Clients in Python.

use super::skip;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A Python that has impacket and smbprotocol, two SMB clients that share no code
/// with Samba's: where `cargo xtask tools` installs them, or the system's. `None`,
/// with a line that says so, where there is none.
///
/// # Panics
/// If there is none where `CI` is `true`.
pub fn with_smb_clients() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/python/bin/python3");
    let found = [own, PathBuf::from("python3")]
        .into_iter()
        .find(|python| has_modules(python));
    if found.is_none() {
        skip("no Python with impacket and smbprotocol: cargo xtask tools");
    }
    found
}

fn has_modules(python: &Path) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import impacket, smbprotocol"]);
    command.output().is_ok_and(|out| out.status.success())
}
