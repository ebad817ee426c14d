//! What is held of the volume: what may be done until it is detached, node ids and generations, the
//! nodes and opens that were given out. Uses `kernel`.

pub(crate) mod attachment;
pub(crate) mod births;
pub(crate) mod ids;
pub(crate) mod listing;
pub(crate) mod nodes;
pub(crate) mod opens;
