//! Looking at a volume that is not attached: walking it, and what that tells, as facts, as a map and
//! byte by byte. May use `volume`, `names`, `unix`, `table` and `directory`.

pub mod dump;
pub mod info;
pub mod map;
pub mod walk;
