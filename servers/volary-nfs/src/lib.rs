//! The NFS server: serves volumes over NFS version 3, on one TCP port. `DESIGN.md` explains its
//! design.
//!
//! [`serve`] listens and answers NFS (RFC 1813), MOUNT, NLM version 4, portmapper queries, and the
//! part of NSM that ends the locks of a client that restarted. The program's number decides.
//! Clients that are told the port need no portmapper.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `status`, `timer` | kinds of error, in each protocol's numbers; the host's clock |
//! | `rpc`, `record` | calls, credentials, replies, and records; the wire itself is `volary-rpc`'s |
//! | `owner`, `call` | the owner of a local client's socket; the caller of a call |
//! | `options` | what is exported, how, to which clients |
//! | `fh` | file handles and their seals |
//! | `opens`, `order`, `exclusive`, `stable`, `dupes`, `recent`, `mounts` | state that even a stateless server must keep |
//! | `export`, `exports` | one exported volume; all of them, and the resolution of file handles |
//! | `nfs`, `nlm` | the procedures of NFS; the lock manager |
//! | `programs` | all programs that can be called, and their state |
//! | `mount`, `portmap` | the other programs |
//! | `dispatch` | from a call to its reply |
//! | `conn`, `server` | a connection and its threads; listening |
//!
//! # Which callers are believed
//!
//! A client says in clear text who calls (`AUTH_SYS`). On this host, only clients of root, and of
//! the user who runs the server, are believed. All other calls count as made by the owner of the
//! client's socket, as the kernel tells it, whatever they say ([`Owner`]). On other hosts, anybody
//! who reaches the port can claim to be anybody. So a server should listen on this host only,
//! unless the network is trusted; see [`Clients`] and [`Squash`]. Handles cannot be guessed, but
//! anybody who has seen one can use it.
//!
//! # What survives a restart
//!
//! Handles do, on volumes with persistent node ids, if the key is kept ([`ServeOptions::key`]). On
//! others a client gets `ESTALE` and must mount again. Locks do if their holders are recorded
//! ([`ServeOptions::locks`]): those clients are told of the restart and reclaim them. The verifiers
//! of exclusive creation do not. Uncommitted writes are recognized by their verifier, and clients
//! write them again.
//!
//! # Lock order
//!
//! A node's lock in `order` is taken first, then the verifiers of exclusive creation. These are
//! held over calls to the session, and so is a waiter's claim in `nlm`. All others (the open table,
//! the lock table, remembered calls, the crew of a connection) are leaves.
#![forbid(unsafe_code)]
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing
    )
)]

mod call;
mod conn;
mod dispatch;
mod dupes;
mod exclusive;
mod export;
mod exports;
mod fh;
mod mount;
mod mounts;
mod nfs;
mod nlm;
mod opens;
mod options;
mod order;
mod owner;
mod portmap;
mod programs;
mod recent;
mod record;
mod rpc;
mod server;
mod stable;
mod status;
mod timer;

pub use dispatch::{Answer, Way};
pub use nlm::LockState;
pub use options::{ExportOptions, Limits, OnEnd, ServeOptions, Squash};
pub use owner::{Database, Owner, cred_of};
pub use programs::Programs;
pub use server::{Server, serve};
pub use volary_rpc::Output;
pub use volary_session::Clients;
