//! The lock on an image: many may read it, or one may write it.

use rustix::fs::{FlockOperation, fstat, major, minor};
use rustix::io::Errno;
use std::fs::File;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;
use volary_core::{Error, Kind, Result};

/// How often a lock that another has is tried again, and how long after each try:
/// two seconds in all. A server ends a moment after its mount is gone.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A file that may be locked. Dropped, it gives the lock back: a fork of this process, which has the file open as well,
/// would keep it as long as it lives.
pub(super) struct Locked {
    file: File,
    process: u32,
}

impl Locked {
    pub(super) fn new(file: File) -> Self {
        Self {
            file,
            process: std::process::id(),
        }
    }
}

impl Deref for Locked {
    type Target = File;

    fn deref(&self) -> &File {
        &self.file
    }
}

impl AsFd for Locked {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock is that of the process which opened the file.
        if self.process == std::process::id() {
            // Without it the lock ends when the file is closed.
            let _ = rustix::fs::flock(&self.file, FlockOperation::Unlock);
        }
    }
}

/// Locks `file`. Waits up to two seconds for another process to give it up.
///
/// # Errors
/// `Busy`, naming the process that has it where the host says which.
pub(super) fn lock(file: &File, read_only: bool) -> Result<()> {
    let how = match read_only {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    for _ in 0..TRIES {
        match rustix::fs::flock(file, how) {
            Err(Errno::AGAIN) => {}
            // A file system without locks is no reason to refuse.
            Ok(()) | Err(Errno::NOLCK | Errno::NOTSUP | Errno::NOSYS | Errno::INVAL) => {
                return Ok(());
            }
            Err(e) => return Err(Error::note(Kind::Io, std::io::Error::from(e).to_string())),
        }
        // Nobody else gives up what this process holds.
        if holder(file) == Some(std::process::id()) {
            break;
        }
        pause();
    }
    Err(Error::note(Kind::Busy, held_by(holder(file))))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the kernel tells nobody when a lock is free"
)]
fn pause() {
    std::thread::sleep(PAUSE);
}

fn held_by(holder: Option<u32>) -> String {
    let who = match holder {
        Some(id) if id == std::process::id() => "this process".to_owned(),
        Some(id) => match std::fs::read_to_string(format!("/proc/{id}/comm")) {
            Ok(name) => {
                let name = volary_core::escape(name.trim_end().as_bytes()).to_string();
                format!("process {id} ({name})")
            }
            Err(_) => format!("process {id}"),
        },
        None => "another process".to_owned(),
    };
    format!("in use by {who}; wait for it, or unmount it")
}

/// Returns the process that holds a lock on `file`, where the host says which.
fn holder(file: &File) -> Option<u32> {
    let stat = fstat(file).ok()?;
    let table = std::fs::read_to_string("/proc/locks").ok()?;
    let (major, minor) = (major(stat.st_dev), minor(stat.st_dev));
    holder_in(&table, &format!("{major:02x}:{minor:02x}:{}", stat.st_ino))
}

/// Finds the holder of a lock in the text of `/proc/locks`: `1: FLOCK ADVISORY WRITE 4711 08:01:123
/// 0 EOF`. Those that wait have a `->` after the number.
fn holder_in(table: &str, file: &str) -> Option<u32> {
    table.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        if words.next() != Some("FLOCK") {
            return None;
        }
        let id = words.nth(2)?;
        let is_it = words.next() == Some(file);
        // A process of another namespace has no number here.
        id.parse().ok().filter(|id| is_it && *id > 0)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_the_one_of_a_lock_on_that_file() {
        let table = "\
1: POSIX  ADVISORY  WRITE 11 08:01:5 0 EOF
2: FLOCK  ADVISORY  WRITE 12 08:01:6 0 EOF
3: FLOCK  ADVISORY  READ 0 08:01:7 0 EOF
4: FLOCK  ADVISORY  WRITE 13 08:01:5 0 EOF
4: -> FLOCK  ADVISORY  WRITE 14 08:01:8 0 EOF
";
        let found = [5, 6, 7, 8].map(|file| holder_in(table, &format!("08:01:{file}")));
        assert_eq!(found, [Some(13), Some(12), None, None]);
    }
}
