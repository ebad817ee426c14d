//! The volume below names: pages of the name table, room, leaders and the batch; how a batch is
//! committed, and what a panic cut off. Uses the rooms below it and `log`.

pub(crate) mod allocation_map;
pub(crate) mod batch;
pub(crate) mod core;
pub(crate) mod cut_off;
pub(crate) mod group;
pub(crate) mod leaders;
pub(crate) mod log_state;
pub(crate) mod map_pages;
