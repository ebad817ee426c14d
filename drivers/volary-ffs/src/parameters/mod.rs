//! What `newfs` and `tunefs` set: the values of options, and changes of parameters in place. May
//! use `disk`.

pub(crate) mod tune;
pub(crate) mod values;
