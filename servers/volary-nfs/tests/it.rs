//! The NFS server as its clients see it.

#[path = "it/claims.rs"]
mod claims;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/kept.rs"]
mod kept;
#[path = "it/kernel.rs"]
mod kernel;
#[path = "it/locks.rs"]
mod locks;
#[path = "it/parties.rs"]
mod parties;
#[path = "it/procedures.rs"]
mod procedures;
#[path = "it/programs.rs"]
mod programs;
#[path = "it/record.rs"]
mod record;
#[path = "it/restart.rs"]
mod restart;
#[path = "it/served.rs"]
mod served;

use volary_testkit::nfs::{client, wire};
