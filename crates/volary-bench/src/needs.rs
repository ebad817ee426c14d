//! What a comparison needs of this machine. What is not here leaves out one rival, not the run.

use anyhow::{Error, Result};
use std::fmt;
use std::path::Path;
use std::process::Command;

/// The error of a program, a library or a right that is not here. Its text names it, and what
/// brings it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lacks(String);

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Lacks {}

impl Lacks {
    /// Says in `words` what is not here.
    pub(crate) fn new(words: impl Into<String>) -> Self {
        Self(words.into())
    }
}

/// Programs, and the Debian package of each where its name is another one.
const PACKAGES: &[(&str, &str)] = &[
    ("7zz", "7zip"),
    ("cc", "gcc"),
    ("e2fsck", "e2fsprogs"),
    ("fsck.fat", "dosfstools"),
    ("fusermount3", "fuse3"),
    ("ganesha.nfsd", "nfs-ganesha nfs-ganesha-vfs"),
    ("ip", "iproute2"),
    ("losetup", "mount"),
    ("mcopy", "mtools"),
    ("mdir", "mtools"),
    ("mke2fs", "e2fsprogs"),
    ("mkfs.fat", "dosfstools"),
    ("rg", "ripgrep"),
    ("setpriv", "util-linux"),
    ("smbd", "samba"),
    ("smbpasswd", "samba-common-bin"),
    ("tsk_recover", "sleuthkit"),
];

/// Returns the Debian package that a program is in.
pub(crate) fn package(program: &str) -> &str {
    let found = PACKAGES.iter().find(|(known, _)| *known == program);
    found.map_or(program, |(_, package)| package)
}

/// # Errors
/// [`Lacks`] if the command's program is neither a file nor in a directory of `PATH`.
pub(crate) fn program(command: &Command) -> Result<()> {
    let program = Path::new(command.get_program());
    let path = std::env::var_os("PATH").unwrap_or_default();
    let is_here = match program.components().count() {
        1 => std::env::split_paths(&path).any(|dir| dir.join(program).is_file()),
        _ => program.is_file(),
    };
    if is_here {
        return Ok(());
    }
    let name = program.display().to_string();
    let brings = match name.as_str() {
        "b3sum" | "fuse-ufs" => format!("cargo install {name}"),
        name => format!("apt-get install {}", package(name)),
    };
    Err(Lacks(format!("{name} is not installed: {brings}")).into())
}

/// Sorts an error: what is not here, in words, or any other error.
///
/// # Errors
/// `e`, if it is not [`Lacks`].
pub(crate) fn lacking(e: Error) -> Result<String> {
    match e.downcast_ref::<Lacks>() {
        Some(lacks) => Ok(lacks.to_string()),
        None => Err(e),
    }
}

/// Returns the value, or `None` where something is not here.
///
/// # Errors
/// Any other.
pub(crate) fn optional<T>(result: Result<T>) -> Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) => lacking(e).map(|_| None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context;

    #[test]
    fn what_is_not_installed_is_named_with_what_brings_it() {
        assert!(program(&Command::new("sh")).is_ok());
        assert!(program(&Command::new("/bin/sh")).is_ok());
        let e = program(&Command::new("/nonexistent/fuse-ufs")).context("there");
        let words = lacking(e.unwrap_err()).unwrap();
        assert!(words.contains("not installed"), "{words}");
    }

    #[test]
    fn other_errors_stay_errors() {
        assert!(lacking(anyhow::anyhow!("broken")).is_err());
        let missing: Result<()> = Err(Lacks::new("gone").into());
        assert_eq!(optional(missing).unwrap(), None);
        assert!(optional::<()>(Err(anyhow::anyhow!("broken"))).is_err());
    }
}
