//! The C table: what a plug-in and its host say to each other. `include/volary_plugin.h` is made
//! from the files of this module, and their comments are what a C programmer reads.
//!
//! | module | what |
//! |---|---|
//! | `codes` | numbers: errors, kinds, abilities, flags |
//! | `data` | what functions are given, and what they answer |
//! | `table` | the table, and the function that gives one |
//! | `paths` | the same for drivers that are asked by paths |

mod codes;
mod data;
mod paths;
mod table;

pub use codes::*;
pub use data::*;
pub use paths::*;
pub use table::*;
