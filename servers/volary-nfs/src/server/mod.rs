//! The server: from a connection, through the program that is called, to the reply. May use all
//! other rooms.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `options` | the options of a server, and its limits |
//! | `programs` | all programs that can be called, and their state |
//! | `mount`, `portmap` | MOUNT, and the portmapper's answers |
//! | `dispatch` | from a call to its reply |
//! | `conn` | a connection and its threads |
//! | `listener` | listens, and owns the connections |

pub(crate) mod dispatch;
pub(crate) mod listener;
pub(crate) mod options;
pub(crate) mod programs;

mod conn;
mod mount;
mod portmap;
