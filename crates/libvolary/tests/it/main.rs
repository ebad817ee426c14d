//! The library as C has it: its header, and programs that are linked with it.

mod header;
mod linked;
