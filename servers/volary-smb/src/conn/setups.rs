//! [`Setups`]: logons on their way.

use crate::auth::Exchange;
use crate::crypto::Preauth;
use std::collections::HashMap;

/// Sessions that are being set up, or logged on to again, by id.
pub(super) type Setups = HashMap<u64, Setup>;

/// One of them.
#[derive(Debug)]
pub(super) struct Setup {
    pub(super) exchange: Exchange,
    pub(super) preauth: Preauth,
}
