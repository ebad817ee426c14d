//! Servers and mounts: each has threads of its own.

use crate::error::{Failure, run};
use crate::own::Own;
use pyo3::prelude::*;
use rustix::process::{getegid, geteuid};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::thread::JoinHandle;
use volary::fuse::{MountOptions, Mounted, Stop};
use volary::nfs::{Clients, ExportOptions, ServeOptions, Squash};
use volary::smb::{Config, Share, User};
use volary::{Cred, Kind, Options, Time, Vol};

/// A running server, or two of them.
struct Running {
    nfs: Option<volary::nfs::Server>,
    smb: Option<Smb>,
    /// The volume is there as long as it is served.
    _vol: Vol,
}

/// An SMB server and the thread on which it listens.
struct Smb {
    server: volary::smb::Server,
    listening: Option<JoinHandle<std::io::Result<()>>>,
}

impl Smb {
    fn stop(mut self) -> Result<(), Failure> {
        let Some(listening) = self.end() else {
            return Ok(());
        };
        let died = || Failure::new(Kind::Io, "the SMB server's thread has panicked");
        let ended = listening.join().map_err(|_| died())?;
        ended.map_err(|e| of_host("serve by SMB", &e))
    }

    fn end(&mut self) -> Option<JoinHandle<std::io::Result<()>>> {
        self.server.stop();
        self.listening.take()
    }
}

impl Drop for Smb {
    fn drop(&mut self) {
        if let Some(listening) = self.end() {
            let _ = listening.join();
        }
    }
}

/// A volume that is served.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Server {
    running: Own<Running>,
    nfs: Option<SocketAddr>,
    smb: Option<SocketAddr>,
}

/// What is served, where and to whom.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Serving {
    name: String,
    nfs: Option<String>,
    smb: Option<String>,
    write: bool,
    squash: String,
    clients: Vec<String>,
    users: Vec<(String, String)>,
    key: [u8; 16],
    instance: u64,
}

impl Server {
    /// Begins to serve.
    ///
    /// # Errors
    /// `Invalid` for addresses and words that are none; the host's for listening.
    pub(crate) fn begin(vol: &Vol, how: &Serving) -> Result<Self, Failure> {
        let mut running = Running {
            nfs: None,
            smb: None,
            _vol: vol.clone(),
        };
        let clients = clients(&how.clients)?;
        let (mut nfs, mut smb) = (None, None);
        if let Some(listen) = &how.nfs {
            let server = begin_nfs(vol, how, address(listen)?, clients.clone())?;
            nfs = server.addresses().first().copied();
            running.nfs = Some(server);
        }
        if let Some(listen) = &how.smb {
            let (server, at) = begin_smb(vol, how, address(listen)?, clients)?;
            smb = Some(at);
            running.smb = Some(server);
        }
        let running = Own::new(running);
        Ok(Self { running, nfs, smb })
    }
}

fn begin_nfs(
    vol: &Vol,
    how: &Serving,
    listen: SocketAddr,
    clients: Vec<Clients>,
) -> Result<volary::nfs::Server, Failure> {
    let squash = match how.squash.as_str() {
        "root" => Squash::Root,
        "none" => Squash::None,
        "all" => Squash::All,
        other => {
            let words = format!("squash is '{other}', expected root, none or all");
            return Err(Failure::new(Kind::Invalid, words));
        }
    };
    let export = ExportOptions {
        read_only: !how.write,
        squash,
        clients,
        ..ExportOptions::new(how.name.as_str())
    };
    let options = ServeOptions::new(listen, how.key, how.instance);
    let served = volary::nfs::serve(vec![(Arc::clone(vol.volume()), export)], &options);
    served.map_err(|e| of_host("serve by NFS", &e))
}

fn begin_smb(
    vol: &Vol,
    how: &Serving,
    listen: SocketAddr,
    clients: Vec<Clients>,
) -> Result<(Smb, SocketAddr), Failure> {
    let failed = |e: std::io::Error| of_host("serve by SMB", &e);
    let mut config = Config::new("volary", now);
    config.shares.push(Share {
        read_only: !how.write,
        clients,
        ..Share::new(&how.name, Arc::clone(vol.volume()))
    });
    let (uid, gid) = (geteuid().as_raw(), getegid().as_raw());
    let users = how.users.iter();
    config.users = users
        .map(|(name, password)| User::with_password(name, password, Cred::new(uid, gid)))
        .collect();
    let server = volary::smb::Server::new(config).map_err(failed)?;
    let listener = TcpListener::bind(listen).map_err(failed)?;
    let at = listener.local_addr().map_err(failed)?;
    let serving = server.clone();
    let thread = std::thread::Builder::new().name("volary-smb".into());
    let listening = thread
        .spawn(move || serving.serve(&listener))
        .map_err(failed)?;
    let listening = Some(listening);
    Ok((Smb { server, listening }, at))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the server's clock is the host's"
)]
fn now() -> Time {
    std::time::SystemTime::now().into()
}

fn address(text: &str) -> Result<SocketAddr, Failure> {
    let found = text.to_socket_addrs().map(|mut all| all.next());
    match found {
        Ok(Some(address)) => Ok(address),
        _ => {
            let words = format!("'{text}' is no address; write HOST:PORT");
            Err(Failure::new(Kind::Invalid, words))
        }
    }
}

fn clients(texts: &[String]) -> Result<Vec<Clients>, Failure> {
    texts
        .iter()
        .map(|text| text.parse().map_err(Failure::from))
        .collect()
}

fn of_host(doing: &str, e: &std::io::Error) -> Failure {
    let kind = match e.kind() {
        std::io::ErrorKind::PermissionDenied => Kind::Access,
        std::io::ErrorKind::AddrInUse => Kind::Busy,
        std::io::ErrorKind::InvalidInput => Kind::Invalid,
        _ => Kind::Io,
    };
    Failure::new(kind, format!("cannot {doing}: {e}"))
}

#[pymethods]
impl Server {
    /// Returns the address at which NFS is served: host and port.
    #[getter]
    fn nfs(&self) -> Option<(String, u16)> {
        self.nfs.map(|at| (at.ip().to_string(), at.port()))
    }

    /// Returns the address at which SMB is served: host and port.
    #[getter]
    fn smb(&self) -> Option<(String, u16)> {
        self.smb.map(|at| (at.ip().to_string(), at.port()))
    }

    /// Stops; at the second call nothing happens.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        run(py, || {
            let taken = self.running.take();
            let Some(Running { nfs, smb, _vol }) = taken else {
                return Ok(());
            };
            let nfs = nfs.map_or(Ok(()), |server| {
                server.stop().map_err(|e| of_host("serve by NFS", &e))
            });
            let smb = smb.map_or(Ok(()), Smb::stop);
            nfs.and(smb)
        })
    }
}

/// A volume that is mounted.
#[pyclass(frozen, module = "volary._volary")]
pub(crate) struct Mount {
    mounted: Own<(Arc<Mounted>, Vol)>,
    path: Vec<u8>,
}

impl Mount {
    /// Mounts a volume on a directory.
    ///
    /// # Errors
    /// As [`volary::fuse::serve`]; `Invalid` for options.
    pub(crate) fn begin(vol: Vol, dir: &Path, options: &str, write: bool) -> Result<Self, Failure> {
        let mut given = Options::parse(options);
        let mut how = MountOptions::from_options(&mut given)?;
        given.check_known(MountOptions::SPECS)?;
        how.read_only |= !write;
        let volume = Arc::clone(vol.volume());
        let mounted = volary::fuse::serve(volume, dir, &how, Stop::CallBeside)?;
        let path = mounted.path().as_os_str().as_bytes().to_vec();
        let mounted = Own::new((Arc::new(mounted), vol));
        Ok(Self { mounted, path })
    }
}

#[pymethods]
impl Mount {
    /// Returns where it is mounted.
    #[getter]
    fn path(&self) -> &[u8] {
        &self.path
    }

    /// Unmounts; at the second call nothing happens. In use, it fails, and stays mounted unless `lazily`.
    fn unmount(&self, py: Python<'_>, lazily: bool) -> PyResult<()> {
        run(py, || {
            let Ok(mounted) = self.mounted.with(|(mounted, _)| Ok(Arc::clone(mounted))) else {
                return Ok(());
            };
            let unmounted = match lazily {
                true => mounted.unmount_lazily(),
                false => mounted.unmount(),
            };
            if !matches!(&unmounted, Err(e) if e.kind() == Kind::Busy) {
                drop(self.mounted.take());
            }
            Ok(unmounted?)
        })
    }
}
