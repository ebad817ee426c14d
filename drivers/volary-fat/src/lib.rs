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

pub mod chars;
pub mod codepage;
pub mod dump;
pub mod info;
pub mod long;
pub mod make;
pub mod map;
pub mod names;
pub mod ondisk;
pub mod options;
pub mod owner;
pub mod paper;
pub mod short;
pub mod slots;
pub mod time;
pub mod unix;
pub mod volume;
pub mod walk;
