//! Calls of the host's system beyond the portable part of the standard library.
//!
//! | module | what |
//! |---|---|
//! | `unix`, `windows` | opening, reading and writing at an offset |
//! | `linux`, `plain` | holes, sectors, read-ahead, the page cache; and substitutes without these |

#[cfg(target_os = "linux")]
mod linux;
#[cfg(not(target_os = "linux"))]
mod plain;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(target_os = "linux")]
pub use linux::cached_pages;
#[cfg(target_os = "linux")]
pub(super) use linux::{holder, past_cache, punch, sector_size, will_read};
#[cfg(not(target_os = "linux"))]
pub use plain::cached_pages;
#[cfg(not(target_os = "linux"))]
pub(super) use plain::{holder, past_cache, punch, sector_size, will_read};
#[cfg(unix)]
pub(super) use unix::{kind_of, names, open, write_parts};
#[cfg(unix)]
pub(crate) use unix::{read_exact_at, write_all_at};
#[cfg(windows)]
pub(super) use windows::{kind_of, names, open, write_parts};
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
