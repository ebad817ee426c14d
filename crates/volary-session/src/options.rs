//! [`VolumeOptions`]: how a volume is to be used.

use std::time::Duration;
use volary_core::{Error, Time};

/// How a volume is to be used; see [`Volume::new`](crate::Volume::new).
#[derive(Clone, Debug)]
pub struct VolumeOptions {
    /// The volume's name for messages: that of the share or export.
    pub name: String,
    /// Returns the time; called once per operation.
    pub clock: fn() -> Time,
    /// The callers' kernel has checked access already (a FUSE mount with `default_permissions`), so
    /// it is not checked again. Side effects of calls on modes and groups happen all the same.
    pub trust: bool,
    /// How long the holder of a lease may take to give it up.
    pub lease_timeout: Duration,
    /// Bounds for resources that callers can take at will.
    pub limits: Limits,
    /// When changes are committed that nobody asks to make durable.
    pub commit: Commit,
    /// Called with the volume's name and an error when a commit by the volume itself fails. It is
    /// not called again until such a commit has succeeded. It must not call the volume.
    pub commit_failed: fn(&str, &Error),
}

impl VolumeOptions {
    /// Returns options with access checks, leases of 35 s, the default limits,
    /// [`Commit::AsVolume`], and no report of failed commits.
    pub fn new(name: impl Into<String>, clock: fn() -> Time) -> Self {
        Self {
            name: name.into(),
            clock,
            trust: false,
            lease_timeout: Duration::from_secs(35),
            limits: Limits::default(),
            commit: Commit::default(),
            commit_failed: |_, _| (),
        }
    }
}

/// Bounds for resources that callers can take at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Opens of the volume. Opening one more fails with `TooManyOpen`.
    pub opens: usize,
    /// Byte-range locks, and separately whole-file locks; past that, `Quota`.
    pub locks: usize,
    /// Locks of one user, by number, of each kind; past that, `Quota`.
    pub user_locks: usize,
    /// Leases of the volume; past that none is granted.
    pub leases: usize,
    /// Leases of one client; past that none is granted.
    pub client_leases: usize,
    /// Callers that wait for locks or leases; past that, `Busy`.
    pub waiting: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            opens: 1 << 20,
            locks: 1 << 20,
            user_locks: 1 << 18,
            leases: 1 << 18,
            client_leases: 1 << 16,
            waiting: 1 << 12,
        }
    }
}

/// When a volume commits changes that nobody asks to make durable.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// By a thread that the volume starts, within the file system's
    /// [`commit_time`](volary_core::FileSystem::commit_time).
    #[default]
    AsVolume,
    /// By such a thread, at the latest this long after a change.
    Within(Duration),
    /// Never: no thread is started. For programs that drive time themselves, and need the same
    /// calls to give the same bytes.
    WhenAsked,
}
