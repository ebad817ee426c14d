//! Which version of a program is here.

use crate::needs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Programs of rivals whose name is another one.
const PROGRAMS: &[(&str, &str)] = &[
    ("7-Zip", "7zz"),
    ("mtools", "mcopy"),
    ("nfs-ganesha", "ganesha.nfsd"),
    ("passthrough_ll", "fusermount3"),
    ("ripgrep", "rg"),
    ("samba", "smbd"),
    ("sleuthkit", "tsk_recover"),
];

/// Rivals that are the kernel's.
const KERNELS: &[&str] = &["ext4 on loop", "in sequence"];

/// Programs that print libfuse's version for their own.
const OF_LIBFUSE: &[&str] = &["fuse2fs"];

/// Returns the version of a rival, as its program says or, if that does not tell, its Debian package; `None` of what is
/// no program.
pub(super) fn of(rival: &str) -> Option<String> {
    // A rival's name may say how it ran: `samba, both signed`, `tar --sort=inode`.
    let name = rival.split([',', '-']).next().unwrap_or(rival).trim();
    if KERNELS.contains(&name) {
        return None;
    }
    let known = |(known, _): &&(&str, &str)| *known == name || *known == rival;
    let program = PROGRAMS
        .iter()
        .find(known)
        .map_or(name, |(_, program)| program);
    match OF_LIBFUSE.contains(&program) {
        true => packaged(program),
        false => says(program).or_else(|| packaged(program)),
    }
}

/// Returns the first line of what a program says of its version.
fn says(program: &str) -> Option<String> {
    let output = output(Command::new(program).arg("--version"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let line = text.lines().map(str::trim).find(|line| !line.is_empty())?;
    let tells = output.status.success() && line.contains(|c: char| c.is_ascii_digit());
    tells.then(|| line.to_owned())
}

/// Returns the version of a program's Debian package.
fn packaged(program: &str) -> Option<String> {
    let package = needs::package(program);
    let output = output(Command::new("dpkg-query").args(["-W", "-f", "${Version}", package]))?;
    let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !version.is_empty()).then(|| format!("{package} {version}"))
}

fn output(command: &mut Command) -> Option<Output> {
    command.stdin(Stdio::null()).output().ok()
}

/// Returns what volary's program says, with the commit of the work tree that it lies in, if it does.
pub(super) fn volary(program: &Path) -> String {
    let version = says(&program.display().to_string()).unwrap_or_default();
    match program.parent().and_then(commit) {
        Some(commit) => format!("{version}, commit {commit}"),
        None => version,
    }
}

fn commit(dir: &Path) -> Option<String> {
    let mut git = Command::new("git");
    git.arg("-C").arg(dir);
    let output = output(git.args(["describe", "--always", "--dirty", "--abbrev=12"]))?;
    let commit = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !commit.is_empty()).then_some(commit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_of_the_program_that_ran() {
        // Each by another way.
        let tar = of("tar --sort=inode").unwrap();
        assert!(tar.starts_with("tar (GNU tar)"), "{tar}");
        assert_eq!(of("tar"), Some(tar));
        for none in [
            "in sequence",
            "in sequence, direct",
            "ext4 on loop",
            "no such rival",
        ] {
            assert_eq!(of(none), None, "{none}");
        }
        assert_eq!(volary(Path::new("/nonexistent/volary")), "");
    }
}
