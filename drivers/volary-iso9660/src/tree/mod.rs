//! The tree: directories, and nodes made from their records. May use `disk` and `extensions`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `dir` | reads directories |
//! | `path` | the path table |
//! | `node` | makes nodes from records |
//! | `walk` | walks all directories |
//! | `links` | finds the records that are names of one file |

pub(crate) mod dir;
pub(crate) mod links;
pub(crate) mod node;
pub(crate) mod path;
pub(crate) mod walk;
