//! The SMB server: SMB 2.1 to 3.1.1, and 2.0.2 if asked for (MS-SMB2), over TCP. `DESIGN.md` says why it is
//! done so.
//!
//! A [`Server`] serves volumes as shares to users with passwords. It is safe by
//! default: NTLMv2 only (no anonymous users, no guests), messages signed.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `wire` | bytes to checked types and back |
//! | `clock` | the clock of deadlines |
//! | `crypto` | key derivation, signing, sealing, pre-authentication integrity, hashes of passwords |
//! | `config` | what a server is told: shares and users |
//! | `auth` | SPNEGO and NTLM |
//! | `guesses` | what wrong passwords cost |
//! | `budget` | what a user may have at a time |
//! | `answer` | what requests are answered with |
//! | `client` | one client's connection and sessions, as those see it who answer its requests |
//! | `files` | requests about files, answered by the session |
//! | `ipc` | the pipe `srvsvc`, which lists shares |
//! | `conn` | connections: framing, credits, compounds, logons, trees; hands requests to `files` and `ipc` |
//! | `server` | the listener |
//!
//! Each uses only those above it in this table.
//!
//! # Threads
//!
//! A connection has one thread that reads a request, carries it out and sends
//! the reply, without handing anything over. A request that is about to wait
//! first gives the connection's turn to another thread ([`Limits::waiting`]
//! bounds how many); so requests take effect in the order in which they came,
//! but for those that wait, and for reads and writes when more is on its way.
//!
//! # Lock order
//!
//! `Register::sessions`, the tables of `Members` and the others are leaves:
//! none is held while another is taken, nor over a call into the session. The
//! turn of a connection is held over requests; the lock of its socket's sending
//! side is held over a `send`, which ends after [`Limits::send_time`], and leaves
//! are taken under it. No thread of one connection takes either of another's: it
//! leaves what it has for it in a queue (`client::sending`).
#![forbid(unsafe_code)]

mod answer;
mod auth;
mod budget;
mod client;
mod clock;
mod config;
mod conn;
mod crypto;
mod files;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod guesses;
mod ipc;
mod server;
mod wire;

pub use config::{Config, Limits, Share, User};
pub use crypto::NtHash;
pub use server::Server;
pub use wire::Dialect;
