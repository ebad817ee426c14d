//! The suite and the differential runner on the volumes that are at hand.

mod conformance;
mod differential;
mod everywhere;
mod layers;
mod readable;
