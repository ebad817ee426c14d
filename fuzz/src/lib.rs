//! Fuzz targets: an input is a list of changes to a good volume and of
//! operations on it, so that most of it reaches past the first check; or changes to
//! what clients once sent to a server.
//!
//! Each target promises: no panic, no hang (every request to the device takes
//! fuel), no growth past 32 MiB + 2 x the image ([`heap::Bounded`]).
//! `fuzz/run TARGET RUNS` runs one under libFuzzer; `tests/smoke.rs` runs each
//! on inputs from seeds.

pub mod cedar;
pub mod crypt;
pub mod ext4;
pub mod fat;
pub mod ffs;
pub mod fuse;
pub mod heap;
pub mod input;
pub mod iso;
pub mod nfs;
pub mod nfs_client;
pub mod ntfs;
pub mod overlay;
pub mod parts;
pub mod plugin;
pub mod qcow2;
pub mod smb;
pub mod users;
pub mod v7;
mod volume;
