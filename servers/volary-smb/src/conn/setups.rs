//! [`Setups`]: logons in progress.

use crate::auth::Exchange;
use crate::crypto::Preauth;
use std::collections::HashMap;

/// Sessions that are being set up, or logged on to again, by id.
pub(super) type Setups = HashMap<u64, Setup>;

/// A logon in progress.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) exchange: Exchange,
    pub(super) preauth: Preauth,
}
