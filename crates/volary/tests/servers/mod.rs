//! Servers of one volume, each on a port of its own.
#![allow(dead_code, reason = "each test program needs some of it")]

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::SystemTime;
use volary::nfs::{ExportOptions, ServeOptions, Squash};
use volary::{Cred, LeaseKey, Time, Volume};

#[expect(clippy::disallowed_methods, reason = "tests run by the host's clock")]
pub(crate) fn clock() -> Time {
    SystemTime::now().into()
}

/// Ends when it is dropped.
pub(crate) struct SmbServer {
    server: volary::smb::Server,
    pub(crate) address: SocketAddr,
    thread: Option<JoinHandle<()>>,
}

impl Drop for SmbServer {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            // A panic there is reported by the thread itself.
            let _ = thread.join();
        }
    }
}

impl SmbServer {
    /// Returns the key under which sessions know a lease of `tester`'s.
    pub(crate) fn lease_key(&self, client: [u8; 16], key: [u8; 16]) -> LeaseKey {
        self.server.lease_key("tester", client, key)
    }

    /// Returns whether it has not ended by itself.
    pub(crate) fn runs(&self) -> bool {
        !self.thread.as_ref().is_some_and(JoinHandle::is_finished)
    }
}

/// Exports it as `test`.
pub(crate) fn serve_nfs(volume: &Arc<Volume>) -> volary::nfs::Server {
    let export = ExportOptions {
        squash: Squash::None,
        ..ExportOptions::new("test")
    };
    let options = ServeOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)), [7; 16], 1);
    volary::nfs::serve(vec![(Arc::clone(volume), export)], &options).unwrap()
}

/// Shares it as `test`, with `tester`, whose password is `pass`, who is root there.
pub(crate) fn serve_smb(volume: &Arc<Volume>) -> SmbServer {
    serve_smb_as(volume, Cred::root())
}

/// Shares a volume as `serve_smb` does; `tester` is this user there.
pub(crate) fn serve_smb_as(volume: &Arc<Volume>, cred: Cred) -> SmbServer {
    let mut config = volary::smb::Config::new("VOLARY", clock);
    let user = volary::smb::User::with_password("tester", "pass", cred);
    config.users.push(user);
    config
        .shares
        .push(volary::smb::Share::new("test", Arc::clone(volume)));
    let server = volary::smb::Server::new(config).unwrap();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let serving = server.clone();
    let thread = thread::spawn(move || serving.serve(&listener).unwrap());
    SmbServer {
        server,
        address,
        thread: Some(thread),
    }
}
