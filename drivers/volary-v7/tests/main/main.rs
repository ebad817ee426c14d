//! Volumes of the Seventh Edition and of System V: what we make and write, what Linux does with it;
//! damaged ones.

mod conformance;
mod differential;
mod make;
mod mend;
mod oracle;
mod volumes;
