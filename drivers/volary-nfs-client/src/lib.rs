//! An NFS export as a volume: what FIFS has as FSNFS.
//!
//! A driver without a format on disk: each operation becomes calls of NFS version
//! 3 (RFC 1813) over TCP. `nfs://HOST[:PORT]/EXPORT[?options]` names an export;
//! [`OPTIONS`] lists what may stand after the `?` or after `-o`. With a port, NFS
//! is there, and so is MOUNT unless said otherwise; without one, the server's
//! portmapper is asked, and port 2049 tried if there is none. Times are the
//! server's: it has a clock of its own, and
//! [`Ctx::now`](volary_core::Ctx::now) is not asked.
//!
//! | module | what |
//! |---|---|
//! | `location`, `attach` | how exports are named; portmapper, MOUNT, what the server can do |
//! | `socket`, `record`, `conn`, `peer` | connections, records, who waits for which reply, calls that outlive a connection |
//! | `proto` | NFS's structures; errors in our words |
//! | `volume` | what all operations share; calls |
//! | `node`, `nodes`, `bounded` | what is known of nodes and names, and for how long |
//! | `attrs`, `names`, `hidden`, `dirs` | attributes and rights; names; open files that have none; listings |
//! | `locks`, `claims` | NLM; locks after a restart of the server |
//! | `data`, `behind`, `ahead`, `workers` | bytes that are here: written behind, read ahead |
//! | `opens`, `fs` | the opens; the `FileSystem` |
//!
//! # What is believed, and for how long
//!
//! Attributes, rights and names are believed for `cache` seconds, and less if a
//! reply says otherwise. From close to open it is exact: `close` has the server
//! have all that was written, `open` asks for the attributes anew, and what was read
//! ahead of another content is dropped. Locks are taken at the server where it has
//! NLM, and end with the open; when it was restarted, they are claimed again (`claims`).
//!
//! # Writing
//!
//! Writes are gathered, sent UNSTABLE, and kept until a COMMIT that says that the
//! server was not restarted since; if it was, they are sent again. What fails after
//! `write` has answered is told by the next `write`, `fsync` or `close` of the file.
//! With the option `sync`, and near the end of the server's room, each write is the
//! server's before it is answered.
//!
//! # Nodes
//!
//! A node's number is the server's `fileid`; a hash of its handle tells it from
//! others that have had it. So an id never means another node, but one that was
//! forgotten, because there were many others since, is `Stale`, and so is one from
//! before a restart of ours. An open file that is removed lives on under a name
//! (`.volary-nfs-…`) that is not listed here; who dies meanwhile leaves it behind.
//!
//! # What a server can do to us
//!
//! Fail, with an error. No call takes longer than `timeout`; replies are bounded by
//! what was asked for; a listing whose places come again is `Corrupt`. Memory for
//! bytes and nodes stays within [`NfsOptions::memory`], but for a few pieces of a
//! megabyte, and but for nodes that are in use.
//!
//! # Lock order
//!
//! `naming`, a node's `going`, its `io`, its `hidden`, `Claims::run`: held over calls. A node's
//! `known` and `data`, the tables, the connections: leaves, in no order, but that
//! `known` comes before `hidden` where attributes are shown; who holds `hidden` over
//! a call holds that of a node which the call is not about.
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

mod ahead;
mod attach;
mod attrs;
mod behind;
mod bounded;
mod claims;
mod conn;
mod data;
mod dirs;
mod fail;
mod fs;
mod hidden;
mod location;
mod locks;
mod names;
mod node;
mod nodes;
mod opens;
mod peer;
mod proto;
mod record;
mod socket;
mod timer;
mod volume;
mod workers;

pub use attach::attach;
pub use location::{Location, NfsOptions, OPTIONS};
