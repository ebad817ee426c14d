//! Requests about files: translates them into calls of the session, and its results into replies.
//! May use `client` and all below it. `conn` passes a [`Call`] in, and nothing here knows of
//! `conn`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `status` | error codes for clients |
//! | `names`, `wildcard`, `short` | names and patterns |
//! | `access`, `security`, `ea` | rights, descriptors and extended attributes |
//! | `known` | cached facts about nodes and names, until news invalidates them |
//! | `open` | opens, and notifications of changes and breaks |
//! | `call` | a request, with all that its handler may use |
//! | `attrs`, `path` | attributes, and the way to a node |
//! | `oplock` | oplocks and leases: their keys, and acknowledgements of breaks |
//! | `create` | CREATE: the request, its contexts, the rights granted, the nodes created |
//! | `io` | CLOSE, FLUSH, READ, WRITE |
//! | `lock`, `directory`, `notify` | LOCK, QUERY_DIRECTORY, CHANGE_NOTIFY |
//! | `query`, `set`, `setting`, `rename` | QUERY_INFO and SET_INFO |
//! | `ioctl`, `fsctl`, `copychunk`, `reparse`, `passed` | IOCTL |
//!
//! # Lock order
//!
//! The locks here are a tree's table, a share's files, the fields of an [`open::File`], and a
//! watch. All are leaves, except `File::scan`. It is held while the directory is read, so that two
//! requests on one open take turns.

mod access;
mod attrs;
mod call;
mod copychunk;
mod create;
mod directory;
mod ea;
mod fsctl;
mod io;
mod ioctl;
mod known;
mod lock;
mod names;
mod notify;
mod open;
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
mod wildcard;

pub(crate) use call::Call;
#[cfg(test)]
pub(crate) use create::contexts::emit as contexts_of;
pub(crate) use create::create;
pub(crate) use directory::query_directory;
pub(crate) use io::{close, flush, read, write};
pub(crate) use ioctl::ioctl;
pub(crate) use lock::lock;
pub(crate) use notify::change_notify;
pub(crate) use open::{ACCESS_ALL, ACCESS_READ, Common, FileTable, Tree, end_durables, end_tree};
pub(crate) use oplock::oplock_break;
pub(crate) use query::query_info;
pub(crate) use set::set_info;
