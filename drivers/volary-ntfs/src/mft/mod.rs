//! The master file table: the places of its records, and their content. May use `disk`.

pub(crate) mod record;
pub(crate) mod records;
pub(crate) mod table;
