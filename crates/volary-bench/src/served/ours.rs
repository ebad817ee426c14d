//! Starting volary, on a directory of the host or on what another volary serves.

use super::mounts::Mounted;
use super::{Clients, PASSWORD, Running, Servers, Started, USER, bound};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

const PORT: u16 = 14_460;
/// Where a server is that another volary is a client of.
const BELOW: u16 = 14_461;
/// What the share and the export are called.
pub(crate) const NAME: &str = "served";

/// `volary serve --smb`.
pub(crate) fn smb(volary: &Path, dir: &Path, clients: &Clients, protect: &str) -> Result<Started> {
    let volume = Volume::host(dir)?;
    let server = volume.serve_smb(volary, PORT, protect)?;
    Ok((server, clients.smb(PORT, NAME)?))
}

/// `volary serve --nfs`.
pub(crate) fn nfs(volary: &Path, dir: &Path, clients: &Clients) -> Result<Started> {
    let server = Volume::host(dir)?.serve_nfs(volary, PORT)?;
    let export = format!("/{NAME}");
    Ok((server, clients.nfs(PORT, PORT, &export)?))
}

/// `volary mount` with its defaults.
pub(crate) fn fuse(volary: &Path, dir: &Path, at: &Path, clients: &Clients) -> Result<Started> {
    fuse_with(volary, dir, at, clients, "")
}

/// `volary serve --smb` of what `volary serve --nfs` serves, with these options of `nfs://`.
pub(crate) fn smb_of_nfs(
    volary: &Path,
    dir: &Path,
    clients: &Clients,
    options: &str,
) -> Result<Started> {
    let below = Volume::host(dir)?.serve_nfs(volary, BELOW)?;
    let volume = Volume::nfs(dir, BELOW, options);
    let server = volume.serve_smb(volary, PORT, "signed")?;
    Ok((Box::new((server, below)), clients.smb(PORT, NAME)?))
}

/// `volary mount` of what `volary serve --nfs` serves, with these options of `nfs://` and of the mount.
pub(crate) fn fuse_of_nfs(
    volary: &Path,
    dir: &Path,
    at: &Path,
    clients: &Clients,
    options: &str,
    how: &str,
) -> Result<Started> {
    let below = Volume::host(dir)?.serve_nfs(volary, BELOW)?;
    let mounted = Volume::nfs(dir, BELOW, options).mount(volary, at, how)?;
    Ok((Box::new((mounted, below)), clients.posix(at)?))
}

/// `volary mount` with options of the mount.
pub(crate) fn fuse_with(
    volary: &Path,
    dir: &Path,
    at: &Path,
    clients: &Clients,
    how: &str,
) -> Result<Started> {
    let mounted = Volume::host(dir)?.mount(volary, at, how)?;
    Ok((mounted, clients.posix(at)?))
}

/// A volume as volary is told of it.
pub(crate) struct Volume {
    name: String,
    options: String,
    /// Beside this goes what its server prints.
    dir: PathBuf,
}

impl Volume {
    /// Returns a directory of the host that is made in `dir`, and named as the share is.
    ///
    /// # Errors
    /// What the host says.
    pub(crate) fn host(dir: &Path) -> Result<Self> {
        let served = dir.join(NAME);
        std::fs::create_dir(&served)?;
        super::open_to_all(&served)?;
        Ok(Self {
            name: format!("host:{}", served.display()),
            options: String::new(),
            dir: dir.to_owned(),
        })
    }

    /// Returns what is served by NFS at a port; what its server prints goes beside `dir`.
    pub(crate) fn nfs(dir: &Path, port: u16, options: &str) -> Self {
        Self {
            name: format!("nfs://127.0.0.1/{NAME}"),
            options: format!("port={port},nolock,{options}"),
            dir: dir.to_owned(),
        }
    }

    /// # Errors
    /// If it does not serve.
    pub(crate) fn serve_smb(
        &self,
        volary: &Path,
        port: u16,
        protect: &str,
    ) -> Result<Box<dyn Running>> {
        let more = ["--user", USER, "--protect", protect];
        self.serve(volary, "--smb", port, &more)
    }

    /// # Errors
    /// If it does not serve.
    pub(crate) fn serve_nfs(&self, volary: &Path, port: u16) -> Result<Box<dyn Running>> {
        self.serve(volary, "--nfs", port, &["--squash", "none"])
    }

    fn serve(
        &self,
        volary: &Path,
        protocol: &str,
        port: u16,
        more: &[&str],
    ) -> Result<Box<dyn Running>> {
        let mut command = Command::new(volary);
        command
            .arg("serve")
            .arg(&self.name)
            .arg(format!("{protocol}=127.0.0.1:{port}"))
            .args(more)
            .env("VOLARY_PASSWORD", PASSWORD);
        if !self.options.is_empty() {
            command.arg("-o").arg(self.options.trim_end_matches(','));
        }
        let log = self.dir.with_extension(format!("{port}.log"));
        let mut servers = Servers::default();
        servers.start(&command, &log)?;
        servers.wait(port, &log)?;
        Ok(Box::new(servers))
    }

    /// Mounts it at `at`, with more options.
    fn mount(&self, volary: &Path, at: &Path, how: &str) -> Result<Box<dyn Running>> {
        let mut command = Command::new(volary);
        let options = format!("{},{how}", self.options);
        command.arg("mount").arg(&self.name).arg(at);
        if !options.trim_matches(',').is_empty() {
            command.arg("-o").arg(options.trim_matches(','));
        }
        Ok(Box::new(Mounted::start(bound(&command)?, at)?))
    }
}
