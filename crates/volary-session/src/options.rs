//! [`VolumeOptions`]: how a volume is to be used.

use std::time::Duration;
use volary_core::{Error, Time};

/// How a volume is to be used; see [`Volume::new`](crate::Volume::new).
#[derive(Clone, Debug)]
pub struct VolumeOptions {
    /// What it is called: the share or export name, a word for messages.
    pub name: String,
    /// Tells the time of each call.
    pub clock: fn() -> Time,
    /// The callers' kernel has checked access already (a FUSE mount with
    /// `default_permissions`): it is not checked again. What calls do to modes
    /// and groups beside what they ask for is done all the same.
    pub trust: bool,
    /// How long the holder of a lease may take to give it up.
    pub lease_timeout: Duration,
    /// How much there may be of what callers can make at will.
    pub limits: Limits,
    /// When changes are made durable that nobody asks for.
    pub commit: Commit,
    /// Hears the volume's name, and of the first commit that failed of those which the
    /// volume makes by itself, and of the next first one once such a commit has succeeded.
    /// It must not call the volume.
    pub commit_failed: fn(&str, &Error),
}

impl VolumeOptions {
    /// Returns options by which access is checked here, with leases of 35 s, the usual limits,
    /// [`Commit::AsVolume`], and nobody to tell when a commit fails.
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

/// How much there may be at once of what callers can make at will.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Opens of the volume. Opening one more fails with `TooManyOpen`.
    pub opens: usize,
    /// Byte-range locks, and as many whole-file locks; past that, `Quota`.
    pub locks: usize,
    /// Of these, one user's, by number; past that, `Quota`.
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

/// When a volume makes changes durable that nobody asks it to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Commit {
    /// By a thread that the volume starts: within the time that the file system says
    /// ([`FileSystem::commit_time`](volary_core::FileSystem::commit_time)).
    #[default]
    AsVolume,
    /// By a thread as well: so long after a change at the latest.
    Within(Duration),
    /// Never: no thread is started. For programs that drive time themselves, and want
    /// the same bytes of the same calls.
    WhenAsked,
}
