//! The exported volumes, and the way from a file handle to a node of one. May use `rpc` and `kept`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `options` | how a volume is exported, and to which clients |
//! | `fh` | file handles and their seals |
//! | `export` | one exported volume, with what is kept for it |
//! | `resolve` | all exports; resolves file handles |

pub(crate) mod export;
pub(crate) mod fh;
pub(crate) mod options;
pub(crate) mod resolve;
