//! What is told of a copy: failures, losses, and who hears of them. Uses no other room.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `failure` | why something was not copied, or not whole |
//! | `losses` | what a target cannot keep |
//! | `observer` | who follows a copy |

pub(crate) mod failure;
pub(crate) mod losses;
pub(crate) mod observer;
