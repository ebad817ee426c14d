//! The mount point: its checks, and unmounting.

use crate::mount::held::Held;
use crate::mount::mountinfo::mounted_on;
use rustix::fs::{Access, AtFlags, CWD, Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, UnmountFlags, mount_remount, unmount};
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use volary_core::{Error, Kind, Result};

const DEVICE: &str = "/dev/fuse";

/// The bit of a directory's mode by which only owners can remove names (the sticky bit).
const STICKY: u32 = 0o1000;

/// A directory that a volume can be mounted on.
#[derive(Clone, Debug)]
pub(crate) struct MountPoint {
    /// Absolute, without symlinks.
    pub(crate) path: PathBuf,
    /// Whether the directory was still covered by the mount of a server that was killed. That mount
    /// has been removed.
    pub(crate) was_dead: bool,
    /// Whether the directory has entries, which the mount hides.
    pub(crate) hides: bool,
    /// The descriptors to mount and unmount by. `None` if an attendant has them.
    pub(crate) held: Option<Arc<Held>>,
}

impl MountPoint {
    /// Checks `path`. The directory may have entries, which are hidden while the volume is mounted.
    ///
    /// # Errors
    /// In this order, each with one line that says what to do:
    ///
    /// - `NotFound`
    /// - `NotDir`
    /// - `Access` for a path that cannot be followed
    /// - `Busy` if something is mounted there
    /// - `Access` for a directory that this user may not write
    /// - `Unsupported` if the host has no FUSE
    /// - `NotPermitted` without the rights to mount
    pub(crate) fn check(path: &Path) -> Result<Self> {
        let shown = volary_core::escape(path.as_os_str().as_bytes());
        let was_dead = free(path)?;
        let path = fs::canonicalize(path).map_err(|e| unusable(&shown, &e))?;
        let facts = fs::metadata(&path).map_err(|e| unusable(&shown, &e))?;
        if !facts.is_dir() {
            let words =
                format!("mount point {shown} is not a directory; give an existing directory");
            return Err(Error::note(Kind::NotDir, words));
        }
        if let Some(line) = mounted_on(&path) {
            let words = format!(
                "mount point {shown} is in use ({} is mounted there); unmount it, or give another directory",
                line.kind
            );
            return Err(Error::note(Kind::Busy, words));
        }
        let held = Held::open(&path).map_err(|e| unusable(&shown, &e))?;
        check_rights(&path, &facts, &shown)?;
        check_fuse()?;
        let hides = fs::read_dir(&path).is_ok_and(|mut all| all.next().is_some());
        Ok(Self {
            path,
            was_dead,
            hides,
            held: Some(Arc::new(held)),
        })
    }

    /// Returns a path to what is mounted here, even if directories above are replaced.
    fn place(&self) -> PathBuf {
        let held = self.held.as_ref();
        held.map_or_else(|| self.path.clone(), |held| held.mounted())
    }

    /// Remounts with `nosymfollow`, for which `fuser` has no option.
    ///
    /// # Errors
    /// `NotPermitted` if this user may not do so.
    pub(crate) fn forbid_symlinks(&self, flags: MountFlags) -> Result<()> {
        let flags = flags | MountFlags::BIND | MountFlags::NOSYMFOLLOW;
        mount_remount(self.place(), flags, "").map_err(|_| {
            Error::note(
                Kind::NotPermitted,
                "option 'nosymfollow' can be set by root only",
            )
        })
    }

    /// Sets how far the kernel reads ahead, in KiB. Returns false if this user may not set it.
    pub(crate) fn set_read_ahead(&self, size: u32) -> bool {
        let Some(line) = mounted_on(&self.path) else {
            return false;
        };
        let place = format!("/sys/class/bdi/{}/read_ahead_kb", line.device);
        fs::write(place, size.to_string()).is_ok()
    }

    /// Returns the number of this mount's FUSE connection.
    pub(crate) fn connection(&self) -> Option<u32> {
        let line = mounted_on(&self.path)?;
        line.device.split_once(':')?.1.parse().ok()
    }

    /// Ends a connection at once. Users of the mount get errors.
    pub(crate) fn abort(connection: u32) {
        // Without fusectl the connection cannot be aborted. It then ends when the mount's users are
        // done.
        let _ = fs::write(format!("/sys/fs/fuse/connections/{connection}/abort"), "1");
    }

    /// Unmounts.
    ///
    /// # Errors
    /// `Busy` if it is in use. With `lazy` this does not happen: the mount is detached from its
    /// directory at once, and ends with its last user.
    pub(crate) fn unmount(&self, lazy: bool) -> Result<()> {
        let flags = if lazy {
            UnmountFlags::DETACH
        } else {
            UnmountFlags::empty()
        };
        match unmount(self.place(), flags | UnmountFlags::NOFOLLOW) {
            // `EINVAL` means that somebody else has unmounted it.
            Ok(()) | Err(Errno::INVAL) => Ok(()),
            Err(Errno::PERM) => self.unmount_by_helper(lazy),
            Err(Errno::BUSY) => Err(self.busy()),
            Err(e) => Err(Error::note(
                Kind::Io,
                format!("cannot unmount {}: {e}", self.shown()),
            )),
        }
    }

    /// Unmounts for ordinary users, by the set-uid program of the FUSE package.
    fn unmount_by_helper(&self, lazy: bool) -> Result<()> {
        let mut helper = Command::new("fusermount3");
        helper
            .args(["-u", "-q"])
            .args(lazy.then_some("-z"))
            .arg("--")
            .arg(&self.path);
        let status = helper.stdin(Stdio::null()).stderr(Stdio::null()).status();
        match status {
            Ok(status) if status.success() || mounted_on(&self.path).is_none() => Ok(()),
            Ok(_) => Err(self.busy()),
            Err(_) => Err(no_helper()),
        }
    }

    fn busy(&self) -> Error {
        let words = format!(
            "{} is in use; end the programs that use it ('fuser -vm {}' lists them)",
            self.shown(),
            self.shown()
        );
        Error::note(Kind::Busy, words)
    }

    fn shown(&self) -> String {
        volary_core::escape(self.path.as_os_str().as_bytes()).to_string()
    }
}

fn unusable(shown: &impl std::fmt::Display, error: &io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::NotFound => {
            let words = format!("mount point {shown} does not exist; make the directory first");
            Error::note(Kind::NotFound, words)
        }
        io::ErrorKind::NotADirectory => {
            let words =
                format!("mount point {shown} is not a directory; give an existing directory");
            Error::note(Kind::NotDir, words)
        }
        _ => Error::note(
            Kind::Access,
            format!("mount point {shown} cannot be used: {error}"),
        ),
    }
}

/// Removes the mount of a killed server from `path`. Returns whether there was one.
///
/// # Errors
/// `Busy` if it cannot be removed.
pub fn free(path: &Path) -> Result<bool> {
    let dead = is_dead(path);
    if dead {
        leave_dead(path)?;
    }
    Ok(dead)
}

/// Returns whether a server was killed while it was mounted there.
fn is_dead(path: &Path) -> bool {
    let gone = Some(Errno::NOTCONN.raw_os_error());
    matches!(fs::metadata(path), Err(e) if e.raw_os_error() == gone)
}

/// Removes the mount of a killed server.
///
/// # Errors
/// `Busy` if it cannot be removed.
fn leave_dead(path: &Path) -> Result<()> {
    let path = absolute_without_last(path);
    let shown = volary_core::escape(path.as_os_str().as_bytes());
    let held = Held::open_parent(&path).map_err(|e| unusable(&shown, &e))?;
    if !is_dead(&held.mounted()) {
        return Ok(());
    }
    let dead = MountPoint {
        path,
        was_dead: true,
        hides: false,
        held: Some(Arc::new(held)),
    };
    dead.unmount(true).map_err(|_| {
        let words = format!(
            "mount point {} is left over from a server that was killed; run 'fusermount3 -u {}' and try again",
            dead.shown(),
            dead.shown()
        );
        Error::note(Kind::Busy, words)
    })
}

/// Makes `path` absolute, and resolves symlinks in all but its last component. A dead mount there
/// cannot be accessed.
fn absolute_without_last(path: &Path) -> PathBuf {
    let last = match path.components().next_back() {
        Some(Component::Normal(name)) => name,
        _ => OsStr::new("."),
    };
    let parent = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    fs::canonicalize(parent)
        .unwrap_or_else(|_| parent.to_path_buf())
        .join(last)
}

/// Checks that this user may write the directory. The set-uid program requires this of ordinary
/// users too.
///
/// # Errors
/// `Access`.
fn check_rights(path: &Path, facts: &fs::Metadata, shown: &impl std::fmt::Display) -> Result<()> {
    let user = rustix::process::geteuid();
    let is_sticky = facts.mode() & STICKY != 0;
    let may_write = rustix::fs::accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).is_ok();
    if user.is_root() || may_write && !(is_sticky && facts.uid() != user.as_raw()) {
        return Ok(());
    }
    let words = format!(
        "mount point {shown} belongs to user {}; give a directory that you may write, or use sudo",
        facts.uid()
    );
    Err(Error::note(Kind::Access, words))
}

/// Checks that this user can use FUSE.
///
/// # Errors
/// `Unsupported` without `/dev/fuse`, or a driver behind it; `NotPermitted` if it cannot be opened,
/// or an ordinary user has no set-uid program to mount with.
fn check_fuse() -> Result<()> {
    const NONE: &str = "this host has no /dev/fuse; load the kernel's fuse module ('modprobe fuse'), or in a \
         container pass the device in";
    let unsupported = |words: &str| Err(Error::note(Kind::Unsupported, words));
    match fs::metadata(DEVICE) {
        Ok(facts) if facts.file_type().is_char_device() => {}
        _ => return unsupported(NONE),
    }
    match rustix::fs::open(DEVICE, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()) {
        Ok(_) => {}
        Err(Errno::ACCESS | Errno::PERM) => {
            let words = "no permission to open /dev/fuse; have root let users in ('chmod 666 /dev/fuse'), use \
                 sudo, or in a container pass the device in";
            return Err(Error::note(Kind::NotPermitted, words));
        }
        Err(Errno::NODEV | Errno::NXIO) => {
            return unsupported(
                "nothing serves /dev/fuse; load the kernel's fuse module ('modprobe fuse')",
            );
        }
        Err(e) => {
            let words = format!("/dev/fuse cannot be opened: {}", io::Error::from(e).kind());
            return unsupported(&words);
        }
    }
    if !rustix::process::geteuid().is_root() && !has_helper() {
        return Err(no_helper());
    }
    Ok(())
}

fn has_helper() -> bool {
    let mut helper = Command::new("fusermount3");
    helper
        .arg("-V")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    helper.status().is_ok()
}

fn no_helper() -> Error {
    let words = "only root can mount without fusermount3; install the package fuse3";
    Error::note(Kind::NotPermitted, words)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(path: &Path) -> (Kind, String) {
        let error = MountPoint::check(path).unwrap_err();
        (error.kind(), error.to_string())
    }

    #[test]
    fn a_mount_point_that_is_not_there_is_said_so_in_one_line() {
        let (kind, words) = refusal(Path::new("/nonexistent/place"));
        assert_eq!(kind, Kind::NotFound);
        assert_eq!(
            words,
            "mount point /nonexistent/place does not exist; make the directory first"
        );
    }

    #[test]
    fn a_file_is_no_mount_point_nor_is_what_would_be_in_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        assert_eq!(refusal(file.path()).0, Kind::NotDir);
        assert_eq!(refusal(&file.path().join("x")).0, Kind::NotDir);
    }

    #[test]
    fn a_place_where_something_is_mounted_is_in_use() {
        let (kind, words) = refusal(Path::new("/proc"));
        assert_eq!(kind, Kind::Busy);
        assert!(
            words.starts_with("mount point /proc is in use (proc is mounted there)"),
            "{words}"
        );
    }

    #[test]
    fn the_last_part_of_a_dead_mount_point_is_not_looked_at() {
        assert_eq!(
            absolute_without_last(Path::new("/proc/self/../x")),
            Path::new("/proc/x")
        );
    }
}
