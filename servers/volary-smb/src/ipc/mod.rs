//! The share `IPC$`: pipes, of which `srvsvc` is the one there is.

use crate::call::{Answer, Related};
use crate::conn::Conn;
use crate::server::Shared;
use crate::wire::{Command, Status};
use std::sync::Arc;

/// What is open in a connection to `IPC$`.
#[derive(Debug)]
pub(crate) struct Pipes;

impl Pipes {
    pub(crate) fn new(_server: &Arc<Shared>) -> Self {
        Self
    }
}

/// Answers a request about pipes.
pub(crate) fn answer(
    _pipes: &Arc<Pipes>,
    _conn: &Arc<Conn>,
    _command: Command,
    _related: &mut Related,
    _message: &[u8],
) -> Answer {
    Err(Status::NOT_SUPPORTED.into())
}
