//! One directory: its slots as records, where they lie, and the index of its names. May use
//! `volume`, `names`, `unix`, `table` and `base`.

pub(crate) mod dir;
pub(crate) mod index;
pub(crate) mod slots;
