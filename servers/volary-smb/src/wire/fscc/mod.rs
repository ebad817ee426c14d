//! MS-FSCC: the structures of files and file systems that SMB carries. Uses [`super::Out`] and the
//! rest of `wire`.

pub(crate) mod dir;
pub(crate) mod file;
pub(crate) mod le;
pub(crate) mod notify;
pub(crate) mod set;
pub(crate) mod time;
pub(crate) mod volume;
