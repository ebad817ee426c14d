//! Volumes mounted on this host. Needs `/dev/fuse` and the right to mount:
//! where they are missing, the tests say so and pass, but fail with `CI` set.

#[path = "it/checks.rs"]
mod checks;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/ends.rs"]
mod ends;
#[path = "it/leases.rs"]
mod leases;
#[path = "it/locks.rs"]
mod locks;
#[path = "it/mount.rs"]
mod mount;
#[path = "it/news.rs"]
mod news;
#[path = "it/programs.rs"]
mod programs;
#[path = "it/requests.rs"]
mod requests;
#[path = "it/suites.rs"]
mod suites;
