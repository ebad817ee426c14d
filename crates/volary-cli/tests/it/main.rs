//! The program as its users run it.

mod bad_input;
mod cedar;
mod claims;
mod copying;
mod examples;
mod ffs;
mod flushing;
mod fsctl;
mod handles;
mod iso9660;
mod kills;
mod layers;
mod mounting;
mod protect;
mod quota;
mod sandbox;
mod serving;
mod suites;
mod vanishing;
mod verbs;
