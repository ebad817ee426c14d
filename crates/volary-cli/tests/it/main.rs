//! The program as its users run it.

mod bad_input;
mod cedar;
mod claiming;
mod claims;
mod copying;
mod examples;
mod ffs;
mod flushing;
mod handles;
mod help;
mod iso9660;
mod kills;
mod layers;
mod mistakes;
mod mounting;
mod owners;
mod protect;
mod quota;
mod sandbox;
mod serving;
mod vanishing;
mod verbs;
