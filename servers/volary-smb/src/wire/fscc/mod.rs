//! MS-FSCC: the structures of files and file systems, as SMB carries them. Uses [`super::Out`] and
//! what else is in `wire`.

pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod le;
pub(crate) mod notify;
pub(crate) mod set;
pub(crate) mod time;
pub(crate) mod volume;
