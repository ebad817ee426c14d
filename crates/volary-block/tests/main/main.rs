//! Tests of the block crate through its public face.

mod cache_faults;
mod cache_model;
mod cache_requests;
mod cache_threads;
#[path = "../../src/seeded.rs"]
mod seeded;
