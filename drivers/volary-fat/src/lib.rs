//! FAT12, FAT16 and FAT32, with VFAT's long names and DosFs's UNIX extension
//! (Forin and Malan, "An MS-DOS File System for UNIX", CMU-CS-93-196, 1993).
#![forbid(unsafe_code)]

pub mod ondisk;
pub mod volume;
