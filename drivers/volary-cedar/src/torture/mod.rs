//! Power cuts: every state that a cut may leave of scripts is recovered, checked
//! and held to what the script was promised; and mistakes that are planted are
//! caught by that.

mod caught;
mod cuts;
mod remote;
pub(crate) mod script;
mod subject;
mod sums;
