//! Calls of the host's system beyond the portable part of the standard library.
//!
//! | module | what |
//! |---|---|
//! | `unix`, `windows` | opening, reading and writing at an offset |
//! | `linux`, `plain` | holes, sectors, read-ahead, the page cache; and substitutes without these |
//! | `mounts` | what the host has mounted |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
mod mounts;
#[cfg(not(target_os = "linux"))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::cached_pages;
#[cfg(target_os = "linux")]
pub(crate) use linux::data_in;
#[cfg(target_os = "linux")]
pub(super) use linux::{holder, past_cache, punch, sector_size, will_read};
#[cfg(target_os = "linux")]
pub(super) use mounts::mount_of;
#[cfg(not(target_os = "linux"))]
pub use plain::cached_pages;
#[cfg(not(target_os = "linux"))]
pub(crate) use plain::data_in;
#[cfg(not(target_os = "linux"))]
pub(super) use plain::{holder, mount_of, past_cache, punch, sector_size, will_read};
#[cfg(unix)]
pub(super) use unix::{kind_of, names, open, open_alone, write_parts};
#[cfg(unix)]
pub(crate) use unix::{read_exact_at, write_all_at};
#[cfg(windows)]
pub(super) use windows::{kind_of, names, open, open_alone, write_parts};
#[cfg(windows)]
pub(crate) use windows::{read_exact_at, write_all_at};

/// The kind of a file that was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    Regular,
    #[cfg_attr(windows, expect(dead_code, reason = "disks are no files here"))]
    BlockDevice,
    Directory,
    Other,
}
