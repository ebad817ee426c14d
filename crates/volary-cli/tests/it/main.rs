//! The program as its users run it.

mod bad_input;
mod cedar;
mod cedar_pieces;
mod claims;
mod copying;
mod damaged;
mod examples;
mod ffs;
mod flushing;
mod full_disk;
mod handles;
mod hostile;
mod iso9660;
mod keeping;
mod kills;
mod layers;
mod mounting;
mod naming;
mod protect;
mod quota;
mod replicas;
mod sandbox;
mod serving;
mod suites;
mod vanishing;
mod verbs;
