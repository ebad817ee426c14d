//! Oracles: other people's programs that make, read and check the same images,
//! and what they say as values that can be compared ([`Tree`](crate::tree::Tree)).
//!
//! | module | program | it |
//! |---|---|---|
//! | [`dissect`] | dissect.ffs, in Python | reads |
//! | [`dosfstools`] | mkfs.fat, fsck.fat | makes and checks |
//! | [`mtools`] | mcopy, mattrib and others | writes and reads |
//! | [`ntfs`] | mkntfs, ntfs-3g | makes, writes and reads |
//! | [`sleuthkit`] | fls, icat, istat | reads |
//! | [`vm`] | vmrun: Linux's own driver in a guest | writes and reads |
//! | [`python`] | clients of servers, in Python | asks servers |
//! | [`host`] | nothing: a directory of the host | is what they copy from and to |
//!
//! All run in UTC and in a UTF-8 locale. A test that needs one asks first
//! ([`have`]). If a program is missing, the test prints that it is skipped. Where
//! the environment has `CI=true`, it fails and names the package to install.

pub mod dissect;
pub mod dosfstools;
pub mod host;
mod listed;
pub mod mtools;
pub mod ntfs;
pub mod python;
pub mod sleuthkit;
pub mod vm;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A program and the Debian package that it comes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tool {
    /// Its name.
    pub program: &'static str,
    /// `apt-get install` this.
    pub package: &'static str,
}

/// Makes ext2, ext3 and ext4.
pub const MKE2FS: Tool = Tool {
    program: "mke2fs",
    package: "e2fsprogs",
};
/// Makes NTFS.
pub const MKNTFS: Tool = Tool {
    program: "mkntfs",
    package: "ntfs-3g",
};
/// Mounts NTFS.
pub const NTFS_3G: Tool = Tool {
    program: "ntfs-3g",
    package: "ntfs-3g",
};
/// Makes ISO 9660.
pub const GENISOIMAGE: Tool = Tool {
    program: "genisoimage",
    package: "genisoimage",
};

impl Tool {
    /// Returns where it is, if it is there.
    pub fn find(self) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
        places
            .map(|dir| dir.join(self.program))
            .find(|file| file.is_file())
    }

    /// Returns a run of it, in UTC and in UTF-8.
    ///
    /// # Panics
    /// If it is not there: see [`have`].
    pub fn command(self) -> Command {
        let program = self.find().unwrap_or_else(|| panic!("{}", missing(self)));
        let mut command = Command::new(program);
        command.env("TZ", "UTC").env("LC_ALL", "C.UTF-8");
        command
    }
}

/// Copies a program to where it is run from. A process of its own writes it: a program that another
/// thread starts meanwhile holds this process' open files for a moment, and Linux runs nothing
/// that is open for writing (`ETXTBSY`).
///
/// # Panics
/// If it cannot be copied.
pub fn install(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    let copied = copied.expect("cp runs");
    assert!(copied.success(), "{} is not copied", from.display());
}

/// Returns whether all of these are there. If not, the test that asks should end.
///
/// # Panics
/// If one is missing where `CI` is `true`, naming the package.
pub fn have(tools: &[Tool]) -> bool {
    let gone = tools.iter().find(|tool| tool.find().is_none());
    gone.is_none_or(|tool| {
        skip(&missing(*tool));
        false
    })
}

/// Says that the test of this thread is skipped, and why.
///
/// # Panics
/// Where `CI` is `true`.
fn skip(why: &str) {
    assert!(std::env::var("CI").as_deref() != Ok("true"), "{why}");
    let thread = std::thread::current();
    println!("skipped: {}: {why}", thread.name().unwrap_or("a test"));
}

fn missing(tool: Tool) -> String {
    format!(
        "{} is missing: apt-get install {}",
        tool.program, tool.package
    )
}

/// Runs to the end and gives what was printed.
///
/// # Errors
/// What the program printed, if it failed.
fn run(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command
        .output()
        .map_err(|e| format!("{}: {e}", command.get_program().display()))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(failed(command, &output))
    }
}

fn failed(command: &Command, output: &Output) -> String {
    format!(
        "{} ended with {}:\n{}{}",
        command.get_program().display(),
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    )
}

#[cfg(test)]
mod tests;
