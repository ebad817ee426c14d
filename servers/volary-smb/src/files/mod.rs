//! Requests about files: what the session is asked for, and how its answers are
//! told.
//!
//! | module | what |
//! |---|---|
//! | `create` | CREATE: the request, its contexts, the rights it gets, what it makes |
//! | `io` | CLOSE, FLUSH, READ, WRITE |
//! | `lock` | LOCK |
//! | `oplock` | oplocks and leases: asked for, broken, acknowledged |
//! | `durable` | opens that outlive their connection, and requests that come twice |
//! | `directory` | QUERY_DIRECTORY |
//! | `notify` | CHANGE_NOTIFY |
//! | `query`, `set`, `setting`, `rename` | QUERY_INFO and SET_INFO |
//! | `ioctl`, `fsctl`, `copychunk`, `reparse`, `passed` | IOCTL |
//! | `table`, `common` | what is open in a tree, and what the trees of a share have in common |
//! | `names`, `wildcard`, `short`, `path` | names, patterns and the way to a node |
//! | `known` | what is remembered of nodes and names, until news makes it wrong |
//! | `access`, `security`, `attrs`, `ea` | rights, descriptors and attributes |
//! | `status` | what clients are told went wrong |
//!
//! # Lock order
//!
//! The locks here (a tree's table, a share's files, the fields of a [`table::File`], a watch) are
//! leaves but for `File::scan`, which is held over the reading of the directory so that two
//! requests on one open take turns.

mod access;
mod attrs;
mod call;
mod common;
mod copychunk;
mod create;
mod directory;
mod durable;
mod ea;
mod ending;
mod fsctl;
mod io;
mod ioctl;
mod known;
mod lock;
mod names;
mod notify;
mod oplock;
mod passed;
mod path;
mod query;
mod rename;
mod reparse;
mod security;
mod set;
mod setting;
mod short;
mod status;
mod table;
mod tree;
mod wildcard;

pub(crate) use call::Call;
pub(crate) use common::Common;
#[cfg(test)]
pub(crate) use create::contexts::emit as contexts_of;
pub(crate) use create::create;
pub(crate) use directory::query_directory;
pub(crate) use ending::{end_durables, end_tree};
pub(crate) use io::{close, flush, read, write};
pub(crate) use ioctl::ioctl;
pub(crate) use lock::lock;
pub(crate) use notify::change_notify;
pub(crate) use oplock::oplock_break;
pub(crate) use query::query_info;
pub(crate) use set::set_info;
pub(crate) use table::FileTable;
pub(crate) use tree::{ACCESS_ALL, ACCESS_READ, Tree};
