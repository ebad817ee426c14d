//! State about the volume: its abilities until it is detached, node ids and generations, and the
//! known nodes and opens. Uses `kernel`.

pub(crate) mod attachment;
pub(crate) mod births;
pub(crate) mod ids;
pub(crate) mod listing;
pub(crate) mod nodes;
pub(crate) mod opens;
