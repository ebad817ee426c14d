//! The master file table: where its records lie, and what a record holds. May use `disk`.

pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod table;
