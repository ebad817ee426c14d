//! Drivers loaded at run time, by a C table, in a process of their own.
//!
//! A plug-in is a library that exports one function, `FileSystemCreate(name, config, version)`,
//! which gives a table of functions ([`abi`]; for C, `include/volary_plugin.h`). A driver that is
//! asked by paths exports `FileSystemCreatePaths` instead, with a table of its own
//! ([`VolaryPathTable`](abi::VolaryPathTable)): node ids, `..`, cookies and what is removed while it
//! is open are then the host's. Ids are good for as long as the plug-in's process, and while there is
//! room for them: one node for each KiB of [`Attach::memory`](volary_core::Attach::memory), of which
//! those that were used longest ago go first, and are `Stale`.
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | the table, and all that goes through it |
//! | [`Loaded`] | a table as a [`FileSystem`](volary_core::FileSystem) |
//! | `paths` | a table that is asked by paths, as one |
//! | [`export!`], [`Driver`] | a Rust driver as a table |
//! | [`Plugins`] | from what a user writes to a volume |
//! | `process` | a plug-in in a process of its own, and what is said to it (`wire`) |
//! | `library` | loading, and finding the function |
//! | `slot`, `names`, `convert`, `news` | contexts and listings lent to plug-ins; checks; what plug-ins tell by themselves |

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
