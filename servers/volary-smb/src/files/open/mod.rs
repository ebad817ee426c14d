//! What is open: of each open its [`File`], of each connection to a share its [`Tree`], of each share
//! what its trees have in common. Requests come with the rooms above; this one may use `client` and,
//! of its neighbours, names, rights and what is remembered of nodes.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `scan`, `claim` | how far a directory was listed; by what an open is found again |
//! | `watch` | a directory that a client watches |
//! | `breaker` | tells a client of broken oplocks and leases |
//! | `table` | one open, and those of a tree |
//! | `durables` | opens that outlive their connection |
//! | `watches` | who is told of changes on a share |
//! | `common` | what the trees of a share have in common |
//! | `tree` | a session's connection to a share |
//! | `ending` | the end of all that |

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
