//! What a session can do, one module per subject. Uses `volume`, `session`, `rules` and `shared`.

pub(crate) mod acls;
pub(crate) mod ahead;
pub(crate) mod deletion;
pub(crate) mod grace;
pub(crate) mod io;
pub(crate) mod leasing;
pub(crate) mod listing;
pub(crate) mod locking;
pub(crate) mod names;
pub(crate) mod nodes;
pub(crate) mod removal;
pub(crate) mod replacing;
pub(crate) mod set_xattr;
pub(crate) mod walk;
pub(crate) mod xattrs;
