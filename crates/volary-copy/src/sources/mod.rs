//! Sources: what is read into the stream. May use `told`, `nodes`, `stream` and `how`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `content` | a file's data, holes and unreadable stretches |
//! | `from_host` | trees of the host |
//! | `from_volume` | trees of a volume |

pub(crate) mod from_host;
pub(crate) mod from_volume;

mod content;
