//! Tests of the driver against other implementations of FAT. A test whose tool is not
//! installed says so and passes.

mod conformance;
mod differential;
mod make;
mod names;
mod tools;
mod unix;
mod volumes;
