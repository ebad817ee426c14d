//! [`Caller`]: who makes a call.

use crate::config::Config;
use std::net::IpAddr;

/// Who makes a call, and the configuration that it concerns.
#[derive(Clone, Copy, Debug)]
pub(super) struct Caller<'a> {
    pub(super) config: &'a Config,
    pub(super) user: &'a str,
    pub(super) peer: IpAddr,
}
