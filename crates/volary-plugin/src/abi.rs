//! The C table: the interface between a plug-in and its host. `include/volary_plugin.h` is
//! generated from the files of this module, and C programmers read their comments there.
//!
//! | module | what |
//! |---|---|
//! | `codes` | constants: errors, kinds, abilities, flags |
//! | `data` | the arguments and results of functions |
//! | `table` | the table, and the function that returns one |
//! | `paths` | the same for drivers that work on paths |

mod codes;
mod data;
mod paths;
mod table;

pub use codes::*;
pub use data::*;
pub use paths::*;
pub use table::*;
