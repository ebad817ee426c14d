//! For servers: which clients are admitted, as which users, how many, and what to do when there is
//! no room. Does not know volumes.

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
