//! Benchmarks: volary beside its rivals, in one run, on this machine.
//!
//! No figure is printed that was not measured here, against something run
//! beside it: the runs of both alternate, and the medians are compared.
#![expect(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

pub mod draw;
pub mod measure;
mod needs;
pub mod paper;
pub mod peers;
pub mod report;
mod served;
pub mod workload;
