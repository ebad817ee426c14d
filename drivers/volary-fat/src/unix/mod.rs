//! The UNIX extension in an entry: today's layout and the paper's, the table of owners, and what
//! device nodes hold. May use `volume`.

pub(crate) mod devices;
pub(crate) mod owner;
pub(crate) mod paper;
pub(crate) mod today;
pub(crate) mod which;
