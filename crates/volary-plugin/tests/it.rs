//! Plug-ins as their users have them: loaded, in this process and in their own, good and bad.

#[path = "it/bad.rs"]
mod bad;
#[path = "it/bad_paths.rs"]
mod bad_paths;
#[path = "it/built.rs"]
mod built;
#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/header.rs"]
mod header;
#[path = "it/paths.rs"]
mod paths;
