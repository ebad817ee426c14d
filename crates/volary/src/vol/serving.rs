//! Servers on a volume, which end when their handle is dropped.

use super::error::VolResult;
use super::held::Held;
#[cfg(any(feature = "nfs", feature = "smb"))]
use std::net::SocketAddr;
use std::sync::Arc;
use volary_core::Result;

/// How a volume is served; see [`Vol::serve`](crate::Vol::serve).
///
/// Several servers can serve a volume: they see each other's changes, opens and locks. A client has
/// the rights that the protocol gives it, not those of the program. For further options, start
/// `volary::nfs`, `volary::smb` and `volary::fuse` on [`Vol::volume`](crate::Vol::volume).
#[derive(Clone, Debug)]
pub struct Serve {
    held: Arc<Held>,
    name: String,
    read_only: bool,
}

/// A running server, which keeps the volume open. Dropping it ends the server; [`stop`](Self::stop)
/// does too, and returns errors.
pub struct Served {
    running: Option<Running>,
    #[cfg(any(feature = "nfs", feature = "smb"))]
    address: Option<SocketAddr>,
    held: Arc<Held>,
}

enum Running {
    #[cfg(feature = "fuse")]
    Mount(volary_fuse::Mounted),
    #[cfg(feature = "nfs")]
    Nfs(volary_nfs::Server),
    #[cfg(feature = "smb")]
    Smb(
        volary_smb::Server,
        std::thread::JoinHandle<std::io::Result<()>>,
    ),
}

impl Serve {
    pub(super) fn new(held: Arc<Held>) -> Self {
        Self {
            held,
            name: "volary".into(),
            read_only: false,
        }
    }

    /// Sets the name that clients see: the export `/NAME`, the share `NAME`. The default is
    /// `volary`.
    #[must_use]
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Refuses changes by clients.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Serves NFSv3 at an address; with port 0, at any free port. Only clients on this host are let
    /// in, each with its own user id, except that root becomes nobody.
    ///
    /// # Errors
    /// `Busy` for an address in use; `Access` for a port that only root may use; `Invalid` for a
    /// malformed name; `Io`.
    #[cfg(feature = "nfs")]
    pub fn nfs(&self, address: SocketAddr) -> VolResult<Served> {
        let begun = self.begin_nfs(address);
        let server = begun.map_err(|e| self.held.failed("serve", e))?;
        let address = server.addresses().first().copied();
        Ok(self.served(Running::Nfs(server), address))
    }

    #[cfg(feature = "nfs")]
    fn begin_nfs(&self, address: SocketAddr) -> Result<volary_nfs::Server> {
        /// Smaller group ids are system groups of the host, which no client can claim
        /// (login.defs(5)).
        const FIRST_GROUP: u32 = 1000;
        let mut key = [0; 16];
        let mut instance = [0; 8];
        random(&mut key)?;
        random(&mut instance)?;
        let instance = u64::from_le_bytes(instance);
        let options = volary_nfs::ServeOptions::new(address, key, instance);
        let mut export = volary_nfs::ExportOptions::new(&self.name);
        export.read_only = self.read_only;
        if matches!(self.held.source, crate::Source::Host { .. }) {
            export.system_groups = FIRST_GROUP;
        }
        let exports = vec![(Arc::clone(&self.held.volume), export)];
        volary_nfs::serve(exports, &options).map_err(|e| of_host(&e))
    }

    /// Serves SMB 2.1 to 3.1.1 at an address; with port 0, at any free port. One user can log on by
    /// a password, with the volume's user id and group. Messages are signed. They are also
    /// encrypted unless the address is a loopback one.
    ///
    /// # Errors
    /// As [`nfs`](Self::nfs); `Invalid` for an empty user name or password.
    #[cfg(feature = "smb")]
    pub fn smb(&self, address: SocketAddr, user: &str, password: &str) -> VolResult<Served> {
        let begun = self.begin_smb(address, user, password);
        let (running, address) = begun.map_err(|e| self.held.failed("serve", e))?;
        Ok(self.served(running, Some(address)))
    }

    #[cfg(feature = "smb")]
    fn begin_smb(
        &self,
        address: SocketAddr,
        user: &str,
        password: &str,
    ) -> Result<(Running, SocketAddr)> {
        use volary_core::{Cred, Error, Kind};
        if user.is_empty() || password.is_empty() {
            let words = "a user who logs on has a name and a password";
            return Err(Error::note(Kind::Invalid, words));
        }
        let listener = std::net::TcpListener::bind(address).map_err(|e| of_host(&e))?;
        let bound = listener.local_addr().map_err(|e| of_host(&e))?;
        let who = Cred::new(self.held.options.uid, self.held.options.gid);
        let volume = Arc::clone(&self.held.volume);
        let share = volary_smb::Share {
            read_only: self.read_only,
            ..volary_smb::Share::new(&self.name, volume)
        };
        let config = volary_smb::Config {
            users: vec![volary_smb::User::with_password(user, password, who)],
            shares: vec![share],
            encryption_required: !address.ip().is_loopback(),
            ..volary_smb::Config::new("VOLARY", self.held.options.clock)
        };
        let server = volary_smb::Server::new(config).map_err(|e| of_host(&e))?;
        let running = server.clone();
        let thread = std::thread::Builder::new().name("smb".into());
        let thread = thread.spawn(move || running.serve(&listener));
        let thread = thread.map_err(|e| of_host(&e))?;
        Ok((Running::Smb(server, thread), bound))
    }

    /// Mounts the volume on a directory of this host by FUSE, for the current user.
    ///
    /// # Errors
    /// `NotFound`, `NotDir`, `Access`, `Busy` for the directory; `Unsupported` if the host has no
    /// FUSE; `NotPermitted`; `Io`.
    #[cfg(feature = "fuse")]
    pub fn mount(&self, dir: impl AsRef<std::path::Path>) -> VolResult<Served> {
        use volary_fuse::{Checks, Locks, MountOptions, Stop};
        let options = MountOptions {
            read_only: self.read_only,
            // Other servers may use the volume too, so the session must check.
            checks: Checks::Session,
            locks: Locks::Session,
            ..MountOptions::default()
        };
        let volume = Arc::clone(&self.held.volume);
        let mounted = volary_fuse::serve(volume, dir.as_ref(), &options, Stop::CallBeside);
        let mounted = mounted.map_err(|e| self.held.failed("mount", e))?;
        Ok(self.served(
            Running::Mount(mounted),
            #[cfg(any(feature = "nfs", feature = "smb"))]
            None,
        ))
    }

    fn served(
        &self,
        running: Running,
        #[cfg(any(feature = "nfs", feature = "smb"))] address: Option<SocketAddr>,
    ) -> Served {
        Served {
            running: Some(running),
            #[cfg(any(feature = "nfs", feature = "smb"))]
            address,
            held: Arc::clone(&self.held),
        }
    }
}

impl Served {
    /// Returns the address of the server, with the port that it got; `None` for a mount.
    #[cfg(any(feature = "nfs", feature = "smb"))]
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Ends the server: finishes requests that have begun, and closes clients' files. The volume
    /// stays open.
    ///
    /// # Errors
    /// The error that ended it before; `Busy` for a mount in use.
    pub fn stop(mut self) -> VolResult<()> {
        let stopped = self.running.take().map_or(Ok(()), Running::stop);
        stopped.map_err(|e| self.held.failed("stop serving", e))
    }
}

impl Running {
    fn stop(self) -> Result<()> {
        match self {
            #[cfg(feature = "fuse")]
            Self::Mount(mounted) => mounted.unmount(),
            #[cfg(feature = "nfs")]
            Self::Nfs(server) => server.stop().map_err(|e| of_host(&e)),
            #[cfg(feature = "smb")]
            Self::Smb(server, thread) => {
                server.stop();
                let panicked = |_| Err(std::io::Error::other("the server's thread has panicked"));
                let ended = thread.join().unwrap_or_else(panicked);
                ended.map_err(|e| of_host(&e))
            }
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        // To see this error, a program calls `stop`.
        let _ = self.running.take().map(Running::stop);
    }
}

#[cfg(any(feature = "nfs", feature = "smb"))]
fn of_host(e: &std::io::Error) -> volary_core::Error {
    use std::io::ErrorKind;
    use volary_core::Kind;
    let kind = match e.kind() {
        ErrorKind::AddrInUse => Kind::Busy,
        ErrorKind::PermissionDenied => Kind::Access,
        ErrorKind::AddrNotAvailable | ErrorKind::InvalidInput => Kind::Invalid,
        _ => Kind::Io,
    };
    volary_core::Error::note(kind, e.to_string())
}

/// Fills `bytes` with unpredictable random bytes.
#[cfg(feature = "nfs")]
fn random(bytes: &mut [u8]) -> Result<()> {
    use std::io::Read;
    let filled = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
    filled.map_err(|e| of_host(&e))
}
