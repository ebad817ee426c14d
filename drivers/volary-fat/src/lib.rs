//! FAT12, FAT16 and FAT32, with VFAT's long names and DosFs's UNIX extension
//! (Forin and Malan, "An MS-DOS File System for UNIX", CMU-CS-93-196, 1993).
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

mod alloc;
mod attached;
mod attrs;
mod badsect;
mod births;
pub mod chars;
pub mod check;
pub mod codepage;
mod commit;
mod copies;
mod create;
mod devices;
mod dir;
pub mod dump;
mod entries;
mod epoch;
mod fat;
mod file;
mod fs;
mod halves;
mod hash;
mod index;
pub mod info;
mod joins;
mod keys;
mod links;
pub mod long;
pub mod make;
pub mod map;
mod marks;
pub mod names;
mod node;
pub mod ondisk;
mod opens;
pub mod options;
pub mod owner;
mod owners;
pub mod paper;
mod parents;
mod readdir;
mod recover;
mod remove;
mod rename;
mod replica;
mod reserve;
mod runs;
mod segments;
pub mod short;
pub mod slots;
mod store;
mod table;
pub mod time;
mod tree;
mod tune;
mod twofold;
pub mod unix;
pub mod volume;
pub mod walk;

pub use fat::{FAT, Fat};
