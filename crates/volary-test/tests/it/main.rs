//! The kit's own tests: volumes that are right pass, and each planted mistake is caught.

mod holds;
mod planted;
mod volumes;
