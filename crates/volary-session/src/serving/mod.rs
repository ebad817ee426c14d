//! For servers: who is let in, as whom, how many, and what to do when no more can be. Knows no volume.

#[cfg(unix)]
pub(crate) mod accepting;
pub(crate) mod clients;
#[cfg(unix)]
pub(crate) mod linger;
pub(crate) mod party;
pub(crate) mod pool;
#[cfg(target_os = "linux")]
pub(crate) mod sock_diag;
pub(crate) mod users;
