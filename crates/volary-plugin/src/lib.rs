//! Drivers loaded at run time, by a C table, in a separate process.
//!
//! A plug-in is a library that exports one function, `FileSystemCreate(name, config, version)`,
//! which returns a table of functions ([`abi`]; for C, `include/volary_plugin.h`). A driver that
//! works on paths exports `FileSystemCreatePaths` instead, with another table
//! ([`VolaryPathTable`](abi::VolaryPathTable)). The host then manages node ids, `..`, cookies and
//! removed files that are still open. These ids last only as long as the plug-in's process and
//! while there is room. The host keeps one node for each KiB of
//! [`Attach::memory`](volary_core::Attach::memory). It evicts those that were used longest ago,
//! which become `Stale`.
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | the table, and the types of its functions |
//! | [`Loaded`] | a table as a [`FileSystem`](volary_core::FileSystem) |
//! | `paths` | a table of paths as a file system |
//! | [`export!`], [`Driver`] | a Rust driver as a table |
//! | [`Plugins`] | opens the volume that a user names |
//! | `process` | a plug-in in a separate process, and the protocol with it (`wire`) |
//! | `library` | loads a library, and finds its function |
//! | `slot`, `names`, `convert` | contexts and listings for plug-ins; checks |
//! | `news` | changes and messages that plug-ins report |

mod convert;
mod export;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod library;
mod loaded;
mod names;
mod news;
mod paths;
mod plugins;
mod process;
mod slot;
mod wire;

pub mod abi;

pub use export::{Driver, Opening, create};
pub use loaded::Loaded;
pub use plugins::{OPTIONS, Plugins, Words, install, installed, open};
pub use process::{Helper, Remote, run_zygote};
