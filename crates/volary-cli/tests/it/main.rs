//! The program as its users run it.

mod bad_input;
mod cedar;
mod claims;
mod copying;
mod examples;
mod ffs;
mod flushing;
mod handles;
mod iso9660;
mod kills;
mod layers;
mod mounting;
mod protect;
mod quota;
mod sandbox;
mod serving;
mod vanishing;
mod verbs;
mod writers;
