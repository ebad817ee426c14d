//! Feeds the server with arbitrary bytes in the place of a kernel's requests. It must neither panic
//! nor take long.

use crate::options::MountOptions;
use crate::requests::apart::Served;
use crate::requests::server::Server;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use volary_session::Volume;

/// Serves a volume with one thread. The other end of the socket `kernel` sends a kernel's requests,
/// each as one message. Returns when that end is closed, or sends a malformed request.
///
/// # Panics
/// If a thread of the server panicked.
pub fn serve(volume: &Arc<Volume>, kernel: OwnedFd, options: &MountOptions) {
    let client = volume.client();
    let server = Server::new(Arc::clone(volume), client, options, 1);
    let waiters = Arc::clone(&server.waiters);
    let (acl, config) = (fuser::SessionACL::All, fuser::Config::default());
    let session = fuser::Session::from_fd(Served(Arc::new(server)), kernel, acl, config);
    let served = session.and_then(fuser::Session::run);
    waiters.end();
    let panicked = served.is_err_and(|e| e.to_string().contains("panicked"));
    assert!(!panicked, "the server panicked");
}
