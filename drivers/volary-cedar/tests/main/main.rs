//! Tests of the driver as a whole.

mod conformance;
mod differential;
mod layers;
mod quiet;
mod volumes;
