//! What a program says and is told: how and what to read, what a run delivers, and its summary. Uses
//! no other room.

pub(crate) mod delivery;
pub(crate) mod options;
pub(crate) mod source;
pub(crate) mod summary;
