//! The server beside clients that are not ours.

#[path = "it/conformance.rs"]
mod conformance;
#[path = "it/files.rs"]
mod files;
#[path = "it/limits.rs"]
mod limits;
#[path = "it/links.rs"]
mod links;
#[path = "it/linux.rs"]
mod linux;
#[path = "it/python.rs"]
mod python;
#[path = "it/searches.rs"]
mod searches;
#[path = "it/served.rs"]
mod served;
#[path = "it/smbclient.rs"]
mod smbclient;
#[path = "it/users.rs"]
mod users;
