//! The lock on an image: many processes may read it, or one may write it.

use super::sys;
use std::fs::{File, TryLockError};
use std::io::ErrorKind;
use std::ops::Deref;
use std::path::Path;
use std::time::Duration;
use volary_core::{Error, Kind, Result};

/// How often a held lock is tried again, and the pause after each try: two seconds in all. The
/// server of a mount ends a moment after the mount is gone.
const TRIES: u32 = 100;
const PAUSE: Duration = Duration::from_millis(20);

/// A file that may be locked. Dropping it releases the lock explicitly, because a fork of this
/// process also has the file open, and would keep the lock.
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
        // The lock belongs to the process that opened the file.
        if self.process == std::process::id() {
            // If this fails, the lock ends when the file is closed.
            let _ = self.file.unlock();
        }
    }
}

/// Locks `file`. Waits up to two seconds for another process to release it.
///
/// # Errors
/// `Busy`, naming the process that holds the lock if the host tells it.
pub(super) fn lock(file: &File, read_only: bool) -> Result<()> {
    when_free(file, || {
        let taken = match read_only {
            true => file.try_lock_shared(),
            false => file.try_lock(),
        };
        match taken {
            Ok(()) => Ok(Some(())),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(e)) if has_no_locks(&e) => Ok(Some(())),
            Err(TryLockError::Error(e)) => Err(Error::note(Kind::Io, e.to_string())),
        }
    })
}

/// Opens the block device that `found` is, for writing and for nobody else: the host refuses it
/// while it is mounted or in use by a device above it. Waits as [`lock`] does.
///
/// # Errors
/// `Busy`; `Io`.
pub(super) fn claim(path: &Path, found: &File) -> Result<File> {
    when_free(found, || match sys::open_alone(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::ResourceBusy => Ok(None),
        Err(e) => Err(Error::note(Kind::Io, e.to_string())),
    })
}

/// Calls `take` until it returns something. Waits up to two seconds for the process that has
/// `file`.
///
/// # Errors
/// `Busy`, naming that process if the host tells it; those of `take`.
fn when_free<T>(file: &File, take: impl Fn() -> Result<Option<T>>) -> Result<T> {
    for _ in 0..TRIES {
        if let Some(taken) = take()? {
            return Ok(taken);
        }
        // If this process holds the lock itself, waiting is useless.
        if sys::holder(file) == Some(std::process::id()) {
            break;
        }
        pause();
    }
    Err(Error::note(Kind::Busy, held_by(sys::holder(file))))
}

/// Returns whether the file system has no locks, which is no reason to refuse the file.
fn has_no_locks(e: &std::io::Error) -> bool {
    // `ENOLCK` has no `ErrorKind` of its own.
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
