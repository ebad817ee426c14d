//! The suite through NFS and SMB servers on a local port.

use super::plain::{LOOKS_FIRST, Plain, volume};
use crate::{Fresh, Suite};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

#[cfg(feature = "nfs")]
pub(super) fn nfs(all: &Plain) -> Suite {
    use crate::nfs::client::{Client, NAME};
    use crate::nfs::{Remote, shown, through};
    use volary_nfs::{ExportOptions, ServeOptions, Squash, serve};
    let make = Arc::clone(&all.make);
    let served = move || {
        let Fresh { fs, keep, .. } = make();
        let caps = shown(fs.caps());
        let export = ExportOptions {
            squash: Squash::None,
            ..ExportOptions::new(NAME)
        };
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = ServeOptions::new(address, [7; 16], 1);
        let server = serve(vec![(volume(fs), export)], &options).expect("a server");
        let client = Client::new(server.addresses()[0]);
        let mut fresh = Fresh::new(Arc::new(Remote::new(client, caps))).keeping(server);
        fresh.keep.extend(keep);
        fresh
    };
    through(all.suite("through nfs", Arc::new(served))).leave_out_all(&[LOOKS_FIRST])
}

#[cfg(feature = "smb")]
pub(super) fn smb(all: &Plain) -> Suite {
    use crate::Lack;
    use crate::smb::{Client, Remote, shown, through};
    use volary_core::Cred;
    use volary_smb::{Config, Server, Share, User};
    let all = &super::only::fitting(all, shown, &[Lack::TimesFinerThan(100), Lack::Links]);
    let make = Arc::clone(&all.make);
    let served = move || {
        let Fresh { fs, keep, .. } = make();
        let caps = shown(fs.caps());
        let mut config = Config::new("VOLARY", super::plain::clock);
        config.users = vec![User::with_password("tester", "pass", Cred::root())];
        config.shares = vec![Share::new("test", volume(fs))];
        let server = Serving::new(Server::new(config).expect("a server"));
        let client = Client::connect(server.address, "tester", "pass", "test", [7; 16]);
        let (client, _) = client.expect("a client");
        let mut fresh = Fresh::new(Arc::new(Remote::new(client, caps))).keeping(server);
        fresh.keep.extend(keep);
        fresh
    };
    through(all.suite("through smb", Arc::new(served))).leave_out_all(&[LOOKS_FIRST])
}

/// A server that runs until it is dropped.
#[cfg(feature = "smb")]
struct Serving {
    server: volary_smb::Server,
    address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

#[cfg(feature = "smb")]
impl Serving {
    fn new(server: volary_smb::Server) -> Self {
        let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let serving = server.clone();
        let run = move || serving.serve(&listener).expect("serving");
        Self {
            server,
            address,
            thread: Some(std::thread::spawn(run)),
        }
    }
}

#[cfg(feature = "smb")]
impl Drop for Serving {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            // The thread has already printed its panic.
            let _ = thread.join();
        }
    }
}
