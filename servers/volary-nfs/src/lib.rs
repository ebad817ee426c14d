//! The NFS server: serves volumes over NFS version 3, on one TCP port. `DESIGN.md` explains its
//! design.
//!
//! [`serve`] listens and answers NFS (RFC 1813), MOUNT, NLM version 4, portmapper queries, and the
//! part of NSM that ends the locks of a client that restarted. The program's number decides.
//! Clients that are told the port need no portmapper.
//!
//! | room, from bottom to top | what |
//! |---|---|
//! | `status`, `timer` | kinds of error, in each protocol's numbers; the host's clock |
//! | `rpc` | a call as it arrives: records, credentials, the owner of a local client's socket |
//! | `kept` | state that even a stateless server must keep |
//! | `exports` | exported volumes, how and to which clients; file handles, and their resolution |
//! | `nfs` | the procedures of NFS |
//! | `nlm` | the lock manager, and NSM |
//! | `server` | the other programs, from a call to its reply; connections and their threads; listening |
//!
//! Each room may use those above it in this table, except that `nlm` does not use `nfs`. Its
//! `mod.rs` says what is in it.
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
//! A node's lock in `kept::order` is taken first, then the verifiers of exclusive creation. These are
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

mod exports;
mod kept;
mod nfs;
mod nlm;
mod rpc;
mod server;
mod status;
mod timer;

pub use exports::options::{ExportOptions, Squash};
pub use nlm::LockState;
pub use rpc::owner::{Database, Owner, cred_of};
pub use server::dispatch::{Answer, Way};
pub use server::listener::{Server, serve};
pub use server::options::{Limits, OnEnd, ServeOptions};
pub use server::programs::Programs;
pub use volary_rpc::Output;
pub use volary_session::Clients;
