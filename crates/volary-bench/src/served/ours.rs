//! Starting volary on a directory of the host.

use super::mounts::Mounted;
use super::{Clients, PASSWORD, Running, Servers, Started, USER};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

const PORT: u16 = 14_460;
/// What the share and the export are called.
const NAME: &str = "served";

/// `volary serve --smb`.
pub(crate) fn smb(volary: &Path, dir: &Path, clients: &Clients, protect: &str) -> Result<Started> {
    let servers = serve(
        volary,
        dir,
        "--smb",
        &["--user", USER, "--protect", protect],
    )?;
    Ok((servers, clients.smb(PORT, NAME)?))
}

/// `volary serve --nfs`.
pub(crate) fn nfs(volary: &Path, dir: &Path, clients: &Clients) -> Result<Started> {
    let servers = serve(volary, dir, "--nfs", &["--squash", "none"])?;
    let export = format!("/{NAME}");
    Ok((servers, clients.nfs(PORT, PORT, &export)?))
}

fn serve(volary: &Path, dir: &Path, protocol: &str, more: &[&str]) -> Result<Box<dyn Running>> {
    let log = dir.with_extension("log");
    let served = dir.join(NAME);
    std::fs::create_dir(&served)?;
    super::open_to_all(&served)?;
    let mut command = Command::new(volary);
    command
        .arg("serve")
        .arg(format!("host:{}", served.display()))
        .arg(format!("{protocol}=127.0.0.1:{PORT}"))
        .args(more)
        .env("VOLARY_PASSWORD", PASSWORD);
    let mut servers = Servers::default();
    servers.start(&command, &log)?;
    servers.wait(PORT, &log)?;
    Ok(Box::new(servers))
}

/// `volary mount` with its defaults.
pub(crate) fn fuse(volary: &Path, dir: &Path, at: &Path, clients: &Clients) -> Result<Started> {
    let mut command = Command::new(volary);
    command
        .arg("mount")
        .arg(format!("host:{}", dir.display()))
        .arg(at);
    let mounted = Mounted::start(command, at)?;
    Ok((Box::new(mounted), clients.posix(at)?))
}
