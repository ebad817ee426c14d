//! The check: a corpus of damage, random damage, and cuts while it mends.

mod base;
mod corpus;
mod cuts;
mod damage;
mod heavy;
mod image;
mod modes;
mod random;
mod reader;
mod run;
mod unreadable;
