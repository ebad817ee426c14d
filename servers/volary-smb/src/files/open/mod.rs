//! Open files. There is a [`File`] for each open, a [`Tree`] for each connection to a share, and
//! shared state for the trees of each share. Requests are in the rooms above. This room may use
//! `client`, and of its neighbours names, rights and cached facts about nodes.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `scan`, `claim` | the state of a listing; what identifies an open |
//! | `watch` | a directory that a client watches |
//! | `breaker` | tells a client of broken oplocks and leases |
//! | `table` | an open, and those of a tree |
//! | `durables` | opens that outlive their connection |
//! | `watches` | reports changes on a share |
//! | `common` | the shared state of one share's trees |
//! | `tree` | a session's connection to a share |
//! | `ending` | closes all of these |

mod breaker;
mod claim;
mod common;
mod durables;
mod ending;
mod scan;
mod table;
mod tree;
mod watch;
mod watches;

pub(crate) use breaker::{Breaker, READ, Way, bits_of_level, level, level_of_bits, oplock_body};
pub(crate) use claim::{Claim, CreateName};
pub(crate) use common::Common;
pub(crate) use durables::{Named, Pending};
pub(crate) use ending::{end, end_durable, end_durables, end_tree, tell_deletion};
pub(crate) use scan::Scan;
pub(crate) use table::{File, FileTable, SEQUENCES};
pub(crate) use tree::{ACCESS_ALL, ACCESS_READ, Tree};
pub(crate) use watch::{Watch, filter};
