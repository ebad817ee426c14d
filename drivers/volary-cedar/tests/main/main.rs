//! Tests of the driver as a whole.

mod conformance;
mod damage;
mod differential;
mod figures;
mod layers;
mod pieces;
mod quiet;
mod remote;
mod sectors;
mod sums;
mod versions;
mod volumes;
