//! Disk utilisation in Forin and Malan, "An MS-DOS File System for UNIX"
//! (CMU-CS-93-196, 1993), section 6: Table 2 from real volumes, Figures 2–4
//! from the paper's formulas.

pub mod cost;
mod dataset;
mod figures;
mod table2;

pub use dataset::{DATA_BYTES, DIRS, File, dataset};
pub use figures::figures;
pub use table2::{Row, measure, table2};
