//! Forin and Malan, "An MS-DOS File System for UNIX" (CMU-CS-93-196, 1993): disk utilisation, Table 2 from real volumes and
//! Figures 2–4 from the paper's formulas (section 6); Tables 3 to 7, the rates and times of MS-DOS, FFS and DosFs (sections 5
//! and 7), from real volumes on models of the paper's machines.
//!
//! | module | what |
//! |---|---|
//! | `machine` | what processors take, fitted or assumed; their disks are [`volary_sim::buffered`]'s |
//! | `volume` | a volume of volary's drivers: where things lie, what an operation writes |
//! | `kernel`, `buffers` | the paper's UNIX: buffer cache, read-ahead, delayed writes, name cache |
//! | `msdos` | MS-DOS without a cache |
//! | `today` | volary's own requests |
//! | `systems` | the file systems of the paper, on these |
//! | `runs` | the workloads, timed |

mod buffers;
pub mod cost;
mod dataset;
mod figures;
mod kernel;
mod machine;
mod msdos;
mod runs;
mod systems;
mod table2;
mod table3;
mod table4;
mod table5;
mod table67;
mod tables;
mod today;
mod volume;

pub use dataset::{DATA_BYTES, DIRS, File, dataset};
pub use table2::{Row, measure};
pub use tables::{TABLES, TIMED, tables};
