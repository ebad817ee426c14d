//! SESSION_SETUP (MS-SMB2 3.3.5.5).

use super::compound::Broken;
use super::work::Worker;
use super::{Conn, Logon};
use crate::wire::Header;
use std::sync::Arc;

/// Sessions that are being set up.
#[derive(Debug, Default)]
pub(super) struct Setups;

pub(super) fn answer(
    _conn: &Arc<Conn>,
    _worker: &Worker,
    _sealed: Option<&Arc<Logon>>,
    _header: &Header,
    _message: &[u8],
) -> Result<(), Broken> {
    Err(Broken)
}
