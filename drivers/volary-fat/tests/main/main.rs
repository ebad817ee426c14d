//! Tests of the driver against other implementations of FAT. A test whose tool is not
//! installed says so and passes.

mod make;
mod names;
mod suite;
mod tools;
mod unix;
