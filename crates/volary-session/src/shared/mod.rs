//! State that the sessions of a volume share: events, leases, share modes, locks, the uses of
//! nodes, the open table. Uses `options` and `caller`.

pub(crate) mod events;
pub(crate) mod how;
pub(crate) mod leases;
pub(crate) mod locks;
pub(crate) mod opens;
pub(crate) mod sharing;
pub(crate) mod uses;
