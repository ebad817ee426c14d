//! Sinks: where the stream is written. May use `told`, `nodes`, `stream` and `how`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `target` | an existing directory, or a new name |
//! | `folder` | a directory of the host, and the nodes made in it |
//! | `helper` | a second thread that writes files of the host |
//! | `to_host`, `to_volume`, `to_output` | the sinks |

pub(crate) mod target;
pub(crate) mod to_host;
pub(crate) mod to_output;
pub(crate) mod to_volume;

mod folder;
mod helper;
