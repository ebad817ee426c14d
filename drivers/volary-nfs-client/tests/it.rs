//! The driver on servers of several kinds.

#[path = "it/claims.rs"]
mod claims;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/differential.rs"]
mod differential;
#[path = "it/export.rs"]
mod export;
#[path = "it/fake.rs"]
mod fake;
#[path = "it/ganesha.rs"]
mod ganesha;
#[path = "it/hidden.rs"]
mod hidden;
#[path = "it/hostile.rs"]
mod hostile;
#[path = "it/served.rs"]
mod served;
#[path = "it/side.rs"]
mod side;
