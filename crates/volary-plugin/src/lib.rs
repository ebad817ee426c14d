//! Drivers loaded at run time, by a C table, in a process of their own.
//!
//! A plug-in is a library that exports one function, `FileSystemCreate(name, config, version)`,
//! which gives a table of functions ([`abi`]; for C, `include/volary_plugin.h`).
//!
//! | module | what |
//! |---|---|
//! | [`abi`] | the table, and all that goes through it |
//! | [`Loaded`] | a table as a [`FileSystem`](volary_core::FileSystem) |
//! | [`export!`], [`Driver`] | a Rust driver as a table |
//! | [`Plugins`] | from what a user writes to a volume |
//! | `process` | a plug-in in a process of its own, and what is said to it (`wire`) |
//! | `library` | loading, and finding the function |
//! | `slot`, `convert`, `news` | contexts and listings lent to plug-ins; checks; what plug-ins tell by themselves |

mod convert;
mod export;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod library;
mod loaded;
mod news;
mod plugins;
mod process;
mod slot;
mod wire;

pub mod abi;

pub use export::{Driver, Opening, create};
pub use loaded::Loaded;
pub use plugins::{OPTIONS, Plugins, Words, install, installed, open};
pub use process::{Helper, Remote, run_zygote};
