//! The check: a corpus of damage, random damage, and cuts while it mends.

mod base;
mod copies;
mod corpus;
mod cuts;
mod damage;
mod heavy;
pub(crate) mod image;
mod modes;
mod random;
pub(crate) mod reader;
pub(crate) mod run;
mod unreadable;
