//! The lock on an image: many may read it, or one may write it.

use super::sys;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::ops::Deref;
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

impl Drop for Locked {
    fn drop(&mut self) {
        // The lock is that of the process which opened the file.
        if self.process == std::process::id() {
            // Without it the lock ends when the file is closed.
            let _ = self.file.unlock();
        }
    }
}

/// Locks `file`. Waits up to two seconds for another process to give it up.
///
/// # Errors
/// `Busy`, naming the process that has it where the host says which.
pub(super) fn lock(file: &File, read_only: bool) -> Result<()> {
    for _ in 0..TRIES {
        let taken = match read_only {
            true => file.try_lock_shared(),
            false => file.try_lock(),
        };
        match taken {
            Ok(()) => return Ok(()),
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(e)) if has_no_locks(&e) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(Error::note(Kind::Io, e.to_string())),
        }
        // Nobody else gives up what this process holds.
        if sys::holder(file) == Some(std::process::id()) {
            break;
        }
        pause();
    }
    Err(Error::note(Kind::Busy, held_by(sys::holder(file))))
}

/// A file system without locks is no reason to refuse.
fn has_no_locks(e: &std::io::Error) -> bool {
    // ENOLCK has no kind of its own.
    let is_short = cfg!(target_os = "linux") && e.raw_os_error() == Some(37);
    is_short || matches!(e.kind(), ErrorKind::Unsupported | ErrorKind::InvalidInput)
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
