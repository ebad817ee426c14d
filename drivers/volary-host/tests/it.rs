//! The driver on the host's own file systems.

#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/escape.rs"]
mod escape;
#[path = "it/fresh.rs"]
mod fresh;
#[path = "it/host.rs"]
mod host;
#[path = "it/ids.rs"]
mod ids;
#[path = "it/own.rs"]
mod own;
#[path = "it/side.rs"]
mod side;
#[path = "it/together.rs"]
mod together;
