//! What the parts of an attached volume stand on: the store (layout, cache, FAT, whether changes are
//! taken) and the epoch that changes share. May use `volume`, `names` and `table`.

pub(crate) mod epoch;
pub(crate) mod store;
