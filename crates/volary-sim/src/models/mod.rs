//! Models of disks in virtual time. May use `disks`.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `spinning` | a device whose requests take the time of a modelled disk |
//! | `seek`, `hard`, `flash` | rotating disks as in the Cedar paper, hard disks since 2000, devices without moving parts |
//! | `buffered` | disks of about 1990, with a buffer that reads ahead |
//! | `preset` | modelled disks by name |
//! | `watched` | a modelled disk that logs its requests |

pub mod buffered;
pub mod flash;
pub mod hard;
pub mod preset;
pub mod seek;

pub(crate) mod spinning;
pub(crate) mod watched;
