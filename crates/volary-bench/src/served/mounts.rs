//! FUSE mounts of volary and of its rivals.

use crate::measure::program;
use crate::needs;
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to mount or to end.
const PATIENCE: Duration = Duration::from_secs(10);

/// A mounted volume; unmounted when it is dropped, at the latest.
pub(crate) struct Mounted {
    server: Option<Child>,
    dir: PathBuf,
}

impl Mounted {
    /// Starts `command`, which stays in the foreground, and waits until `dir`
    /// is a mount.
    pub(crate) fn start(mut command: Command, dir: &Path) -> Result<Self> {
        needs::program(&command)?;
        needs::program(&unmount(dir))?;
        fs::create_dir_all(dir)?;
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let server = command
            .spawn()
            .with_context(|| format!("cannot run {command:?}"))?;
        let mut mounted = Self {
            server: Some(server),
            dir: dir.to_owned(),
        };
        let start = Instant::now();
        while !is_mount(dir)? {
            let ended = mounted
                .server
                .as_mut()
                .map(Child::try_wait)
                .transpose()?
                .flatten();
            if ended.is_some() || start.elapsed() > PATIENCE {
                bail!("did not mount: {command:?}");
            }
            std::thread::yield_now();
        }
        Ok(mounted)
    }

    /// Unmounts and waits for the server to end: everything is on the device.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<()> {
        let Some(mut server) = self.server.take() else {
            return Ok(());
        };
        let status = unmount(&self.dir).status()?;
        if !status.success() {
            server.kill()?;
        }
        server.wait()?;
        Ok(())
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // The benchmark has failed already if this is the first try.
        let _ = self.unmount();
    }
}

/// Returns the command that unmounts a FUSE mount.
fn unmount(dir: &Path) -> Command {
    let mut command = Command::new("fusermount3");
    command.arg("-u").arg(dir);
    command
}

/// An image that the host itself mounts, through a loop device; unmounted when it
/// is dropped, at the latest.
pub(crate) struct Looped {
    dir: Option<PathBuf>,
    /// A device that does not go with the mount.
    device: Option<PathBuf>,
}

impl Looped {
    /// # Errors
    /// If it is not root's to do, or the host cannot.
    pub(crate) fn start(image: &Path, dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let mut mount = Command::new("mount");
        program(mount.args(["-o", "loop"]).arg(image).arg(dir), &[0])?;
        Ok(Self {
            dir: Some(dir.to_owned()),
            device: None,
        })
    }

    /// Mounts an image that nothing changes, and whose content the host keeps in memory once and
    /// not twice.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub(crate) fn read_only(image: &Path, dir: &Path) -> Result<Self> {
        fs::create_dir_all(dir)?;
        let mut attach = Command::new("losetup");
        needs::program(&attach)?;
        attach.args(["--show", "--find", "--read-only", "--direct-io=on"]);
        let made = attach.arg(image).output()?;
        if !made.status.success() {
            bail!("no loop device for {}", image.display());
        }
        let name = String::from_utf8_lossy(&made.stdout).trim().to_owned();
        let mut looped = Self {
            dir: None,
            device: Some(PathBuf::from(&name)),
        };
        let mut mount = Command::new("mount");
        program(mount.args(["-o", "ro"]).arg(name).arg(dir), &[0])?;
        looped.dir = Some(dir.to_owned());
        Ok(looped)
    }

    /// Returns where it is mounted.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Unmounts: everything is in the image.
    pub(crate) fn stop(mut self) -> Result<()> {
        self.unmount()
    }

    fn unmount(&mut self) -> Result<()> {
        let unmounted = match self.dir.take() {
            Some(dir) => program(Command::new("umount").arg(dir), &[0]).map(drop),
            None => Ok(()),
        };
        let detached = match self.device.take() {
            Some(device) => {
                let mut detach = Command::new("losetup");
                program(detach.arg("--detach").arg(device), &[0]).map(drop)
            }
            None => Ok(()),
        };
        unmounted.and(detached)
    }
}

impl Drop for Looped {
    fn drop(&mut self) {
        // The benchmark has failed already if this is the first try.
        let _ = self.unmount();
    }
}

/// Returns whether another file system begins at `dir`.
fn is_mount(dir: &Path) -> Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let above = dir.parent().unwrap_or(dir);
    Ok(fs::metadata(dir)?.dev() != fs::metadata(above)?.dev())
}
