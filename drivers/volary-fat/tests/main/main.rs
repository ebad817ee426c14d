//! Tests of the driver against other implementations of FAT. A test whose tool is not
//! installed says so and passes.

mod atari;
#[path = "../check/mod.rs"]
mod check;
mod conformance;
mod crash;
mod crossings;
mod cuts;
mod differential;
mod faults;
mod hostile;
mod ids;
mod keeping;
mod make;
mod many;
mod names;
mod oracle_read;
mod oracle_write;
mod paper;
mod raw;
mod requests;
mod samples;
mod tools;
mod tune;
mod turns;
mod unix;
mod volumes;
