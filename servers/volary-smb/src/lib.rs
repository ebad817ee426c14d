//! The SMB server over TCP: SMB 2.1 to 3.1.1, and 2.0.2 if configured (MS-SMB2). `DESIGN.md` has
//! the reasons for the design.
//!
//! A [`Server`] serves volumes as shares to users with passwords. It is safe by
//! default: NTLMv2 only (no anonymous users, no guests), messages signed.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `wire` | converts bytes to checked types, and back |
//! | `clock` | the clock of deadlines |
//! | `crypto` | key derivation, signing, sealing, pre-authentication integrity, hashes of passwords |
//! | `config` | the configuration: shares, users and limits |
//! | `auth` | SPNEGO and NTLM |
//! | `guesses` | delays after wrong passwords |
//! | `budget` | the resources that a user has in use |
//! | `answer` | the replies to requests |
//! | `client` | a client's connection and sessions, from the view of requests' handlers |
//! | `files` | requests about files, answered by the session |
//! | `ipc` | the pipe `srvsvc`, which lists shares |
//! | `conn` | connections: framing, credits, compounds, logons, trees; calls `files` and `ipc` |
//! | `server` | the listener |
//!
//! Each uses only those above it in this table.
//!
//! # Threads
//!
//! A connection has one thread that reads a request, carries it out and sends the reply, without
//! passing anything on. A request that is about to wait first passes the connection's turn to
//! another thread ([`Limits::waiting`] bounds how many). So requests take effect in the order of
//! their arrival. Exceptions are requests that wait, and long reads and writes while more requests
//! are arriving.
//!
//! # Lock order
//!
//! `Register::sessions`, the tables of `Members` and the others are leaves. None is held while
//! another is taken, or during a call into the session.
//!
//! The turn of a connection is held while requests run. The lock of its socket's sending side is
//! held during a `send`, which ends after [`Limits::send_time`], and leaves are taken under it. A
//! thread of one connection takes neither of another connection. It puts what it has for that one
//! in a queue (`client::sending`).
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
