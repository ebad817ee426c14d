//! [`Caller`]: who calls.

use crate::config::Config;
use std::net::IpAddr;

/// Who calls, and what of.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) config: &'a Config,
    pub(super) user: &'a str,
    pub(super) peer: IpAddr,
}
