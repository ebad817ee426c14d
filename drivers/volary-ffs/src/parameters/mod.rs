//! What `newfs` and `tunefs` set: values as they are given, and changing them in place. May use
//! `disk`.

pub(crate) mod tune;
pub(crate) mod values;
