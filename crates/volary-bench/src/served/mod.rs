//! A directory of the host, served by volary or by others, and used by one
//! client program.
//!
//! | module | what |
//! |---|---|
//! | `clients` | the programs that use the servers, and what they print |
//! | `ours` | starting volary |
//! | `guest` | a machine that vmrun boots, with Linux's own clients |
//! | `rivals` | starting Samba, nfs-ganesha and `passthrough_ll` |
//! | `mounts` | mounting, by volary and by others |
//!
//! All of it runs in a network namespace of its own: no port is taken from
//! anybody, and nfs-ganesha can have the portmapper that it asks for.

pub(crate) mod clients;
pub(crate) mod guest;
pub(crate) mod mounts;
pub(crate) mod ours;
pub(crate) mod rivals;

use crate::measure::Scratch;
use crate::needs;
use anyhow::{Context, Result, bail};
pub(crate) use clients::{Client, Clients};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The user whom SMB servers know: an ordinary one, for Samba lets root past
/// its checks; one that Debian always has.
pub(crate) const USER: &str = "games";
pub(crate) const PASSWORD: &str = "bench-password";
/// How long a server may take to answer, or to end.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server that is being run; it ends when this is dropped.
pub(crate) trait Running {}

/// Nothing is run: the directory is used as it is.
impl Running for () {}

/// The first uses the second, and ends before it.
impl Running for (Box<dyn Running>, Box<dyn Running>) {}

/// A server, and the client that uses it.
pub(crate) type Started = (Box<dyn Running>, Client);

/// Starts a server on a directory.
pub(crate) type Start<'a> = Box<dyn Fn(&Path) -> Result<Started> + 'a>;

/// A folder with the directories that are served, and all that servers keep.
pub(crate) struct Place {
    dir: TempDir,
}

impl Place {
    /// In `base`, or in memory.
    ///
    /// # Errors
    /// If it is not root's, who alone can run Samba and nfs-ganesha.
    pub(crate) fn new(base: Option<&Path>) -> Result<Self> {
        if !rustix::process::geteuid().is_root() {
            bail!("Samba and nfs-ganesha want root; run it with sudo");
        }
        enter_network()?;
        let dir = Scratch::Memory.make(base)?;
        open_to_all(dir.path())?;
        Ok(Self { dir })
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Returns a new directory to serve.
    ///
    /// # Errors
    /// What the host says.
    pub(crate) fn served(&self) -> Result<TempDir> {
        let dir = tempfile::tempdir_in(self.dir.path())?;
        open_to_all(dir.path())?;
        Ok(dir)
    }
}

/// Lets every user in: Samba acts as an ordinary one.
fn open_to_all(dir: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(dir, std::fs::Permissions::from_mode(0o777))?;
    Ok(())
}

/// Leaves the machine's network: this thread and what it starts see a loopback
/// of their own.
fn enter_network() -> Result<()> {
    use rustix::thread::UnshareFlags;
    #[expect(unsafe_code, reason = "rustix calls all kinds of unshare unsafe")]
    // SAFETY: a network namespace shares nothing that memory safety rests on.
    unsafe { rustix::thread::unshare_unsafe(UnshareFlags::NEWNET) }
        .context("a network namespace of its own (it wants root)")?;
    let mut ip = Command::new("ip");
    needs::program(&ip)?;
    let status = ip.args(["link", "set", "lo", "up"]).status();
    if !status?.success() {
        bail!("ip link set lo up failed");
    }
    Ok(())
}

/// Returns a command that is asked to end when this program does, however that comes about.
fn bound(command: &Command) -> Result<Command> {
    needs::program(command)?;
    let mut bound = Command::new("setpriv");
    needs::program(&bound)?;
    bound.args(["--pdeathsig", "TERM", "--"]);
    bound.arg(command.get_program()).args(command.get_args());
    for (key, value) in command.get_envs() {
        bound.env(key, value.unwrap_or_default());
    }
    Ok(bound)
}

/// Programs that serve; each is asked to end, last first, when this is dropped.
#[derive(Default)]
struct Servers(Vec<Child>);

impl Running for Servers {}

impl Servers {
    /// Starts a program, its output into `log`. It has a process group of its
    /// own, for smbd ends its whole group; and it ends when this program does,
    /// however that comes about.
    fn start(&mut self, command: &Command, log: &Path) -> Result<()> {
        let mut bound = bound(command)?;
        let out = std::fs::File::create(log)?;
        bound
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(out.try_clone()?)
            .stderr(out);
        let child = bound.spawn()?;
        self.0.push(child);
        Ok(())
    }

    /// Waits until something answers at `port` of the loopback.
    ///
    /// # Errors
    /// With the end of `log` if a program ends, or nothing answers in time.
    fn wait(&mut self, port: u16, log: &Path) -> Result<()> {
        let start = Instant::now();
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.0.iter_mut().any(|c| !matches!(c.try_wait(), Ok(None)));
            if ended || start.elapsed() > PATIENCE {
                let text = std::fs::read_to_string(log).unwrap_or_default();
                let tail: Vec<&str> = text.lines().rev().take(5).collect();
                bail!("nothing answers at port {port}: {tail:?}");
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

impl Drop for Servers {
    fn drop(&mut self) {
        for child in self.0.iter_mut().rev() {
            if let Some(pid) = rustix::process::Pid::from_raw(child.id().cast_signed()) {
                // One that has ended already needs no signal.
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
            }
            let start = Instant::now();
            while matches!(child.try_wait(), Ok(None)) {
                if start.elapsed() > PATIENCE {
                    let _ = child.kill();
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        }
    }
}
