//! What others added to the standard, and the choice of the names that are shown. May use `disk`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `susp` | the System Use Sharing Protocol: fields behind records |
//! | `rockridge` | Rock Ridge, in such fields |
//! | `choice` | the choice between Rock Ridge's, Joliet's and plain names |
//! | `boot` | El Torito: boot images |

pub(crate) mod boot;
pub(crate) mod choice;
pub(crate) mod rockridge;
pub(crate) mod susp;
