//! The C table: what a plug-in and its host say to each other. `include/volary_plugin.h` is made
//! from the files of this module, and their comments are what a C programmer reads.
//!
//! | module | what |
//! |---|---|
//! | `codes` | numbers: errors, kinds, abilities, flags |
//! | `data` | what functions are given, and what they answer |
//! | `table` | the table, and the function that gives one |

mod codes;
mod data;
mod table;

pub use codes::*;
pub use data::*;
pub use table::*;
