//! The kernel's requests, from who asks to the reply. Uses `kernel` and `options`.

pub(crate) mod apart;
pub(crate) mod attrs;
pub(crate) mod caller;
pub(crate) mod counts;
pub(crate) mod data;
pub(crate) mod dirs;
pub(crate) mod dispatch;
pub(crate) mod locks;
pub(crate) mod names;
pub(crate) mod reply;
pub(crate) mod server;
pub(crate) mod sessions;
pub(crate) mod signals;
pub(crate) mod waiters;
