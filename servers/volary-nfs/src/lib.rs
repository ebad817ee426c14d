//! The NFS server: volumes, over NFS version 3, on one TCP port. `DESIGN.md` says why it is done so.
//!
//! [`serve`] listens and answers NFS (RFC 1813), MOUNT, NLM version 4, what a
//! portmapper would say, and the part of NSM that ends the locks of a client that
//! restarted: the program's number decides. No portmapper is needed by clients
//! that are told the port.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `status`, `timer` | kinds of error, in each protocol's numbers; the host's clock |
//! | `rpc`, `record` | calls, credentials, replies, and records; the wire itself is `volary-rpc`'s |
//! | `owner`, `call` | whose socket a client of this host calls by; who calls |
//! | `options` | what is exported, how, to whom |
//! | `fh` | file handles and their seals |
//! | `opens`, `order`, `exclusive`, `stable`, `dupes`, `recent`, `mounts` | what a server without state must keep all the same |
//! | `export`, `exports` | one volume, as it is exported; all, and the handles that lead there |
//! | `nfs`, `nlm` | the procedures of NFS; the lock manager |
//! | `programs` | all that there is to call, and what it keeps |
//! | `mount`, `portmap` | the other programs |
//! | `dispatch` | from a call to its answer |
//! | `conn`, `server` | a connection and its threads; listen |
//!
//! # Who is believed
//!
//! A client's word says who calls (`AUTH_SYS`), in clear. Of this host's own clients only root
//! is believed, and who runs the server: the calls of anybody else are theirs, whatever they
//! say, for the kernel tells whose socket they come from ([`Owner`]). Of others, anybody who
//! reaches the port can claim to be anybody. So a server should listen on this host only, unless
//! the network is trusted; see [`Clients`] and [`Squash`]. Handles cannot be guessed,
//! but who has seen one can use it.
//!
//! # What outlives a restart
//!
//! Handles do, on volumes whose node ids are stable, if the key is kept
//! ([`ServeOptions::key`]). On others a client gets `ESTALE` and must mount again.
//! Locks do if it is kept who has any ([`ServeOptions::locks`]): those clients are
//! told of the restart and claim them again. The verifiers of exclusive creation do
//! not. Writes that were not
//! committed are known by their verifier, and clients write them again.
//!
//! # Lock order
//!
//! A node's place in `order`, then the verifiers of exclusive creation: these are
//! held over calls to the session, and so is a waiter's claim in `nlm`. All others
//! (the open table, the lock table, remembered calls, the crew of a connection) are
//! leaves.
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
