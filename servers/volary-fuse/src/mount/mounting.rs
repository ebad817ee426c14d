//! Mounts on a directory, by a system call or by the set-uid program of the FUSE package.

use crate::mount::held::Held;
use crate::mount::passing::receive_byte;
use crate::mount::point::MountPoint;
use crate::options::{Checks, MountOptions};
use fuser::{Config, MountOption, SessionACL};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use volary_core::{Error, Kind, Result};

/// Returns the configuration of the FUSE library.
pub(crate) fn config(
    source: &str,
    read_only: bool,
    options: &MountOptions,
    threads: usize,
) -> Config {
    let pick = |yes: bool, then: MountOption, otherwise: MountOption| {
        if yes { then } else { otherwise }
    };
    let mut all = vec![
        // A comma in the name would begin another option.
        MountOption::FSName(shown(source)),
        MountOption::Subtype("volary".into()),
        pick(read_only, MountOption::RO, MountOption::RW),
        pick(options.suid, MountOption::Suid, MountOption::NoSuid),
        pick(options.dev, MountOption::Dev, MountOption::NoDev),
        pick(options.exec, MountOption::Exec, MountOption::NoExec),
    ];
    // This applies even to root's own mounts: a process of root may lack the right to override
    // modes, or act for others (`setfsuid`), as servers do.
    if options.checks == Checks::Kernel {
        all.push(MountOption::DefaultPermissions);
    }
    let mut config = Config::default();
    config.mount_options = all;
    config.acl = if options.allow_other {
        SessionACL::All
    } else {
        SessionACL::Owner
    };
    config.n_threads = Some(threads);
    config.clone_fd = threads > 1;
    config
}

/// Returns the flags of the mount, which a remount must repeat.
pub(crate) fn mount_flags(read_only: bool, options: &MountOptions) -> MountFlags {
    let mut flags = MountFlags::empty();
    flags.set(MountFlags::RDONLY, read_only);
    flags.set(MountFlags::NOSUID, !options.suid);
    flags.set(MountFlags::NODEV, !options.dev);
    flags.set(MountFlags::NOEXEC, !options.exec);
    flags
}

pub(crate) fn cannot_mount(error: &io::Error) -> Error {
    let words = error.to_string();
    if words.contains("user_allow_other") {
        let words = "option 'allow_other' needs the line 'user_allow_other' in /etc/fuse.conf";
        return Error::note(Kind::NotPermitted, words);
    }
    let line = words.lines().next().unwrap_or_default();
    let line = line.split(" (os error").next().unwrap_or_default().trim();
    let is_refused = error.kind() == io::ErrorKind::PermissionDenied
        || ["EPERM", "Operation not permitted"]
            .iter()
            .any(|word| line.contains(word));
    if is_refused {
        let words = "the kernel refuses the mount; use sudo, or in a container add the capability \
             SYS_ADMIN";
        return Error::note(Kind::NotPermitted, words);
    }
    // The library lists its arguments first. The kernel's answer comes last.
    let line = match line.strip_prefix("Error calling mount()") {
        Some(rest) => rest.rsplit(": ").next().unwrap_or(rest),
        None => line,
    };
    Error::note(Kind::Io, format!("cannot mount: {line}"))
}

/// Mounts on the directory that was checked, even if its name leads elsewhere by now. Returns the
/// descriptor that delivers the kernel's requests.
///
/// # Errors
/// Those of [`serve`](crate::serve), after the check of the mount point.
pub(crate) fn mount_on(
    point: &MountPoint,
    source: &str,
    flags: MountFlags,
    config: &Config,
) -> Result<OwnedFd> {
    let device = match &point.held {
        Some(held) => mount_by_itself(held, source, flags, config),
        None => Ok(None),
    };
    device
        .and_then(|device| device.map_or_else(|| mount_by_helper(&point.path, config), Ok))
        .map_err(|e| cannot_mount(&e))
}

/// Mounts by a system call. Returns `None` if this process may not mount.
fn mount_by_itself(
    held: &Held,
    source: &str,
    flags: MountFlags,
    config: &Config,
) -> io::Result<Option<OwnedFd>> {
    let device = rustix::fs::open("/dev/fuse", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    let mut data = format!(
        "fd={},rootmode={:o},user_id={},group_id={}",
        device.as_raw_fd(),
        held.mode()?,
        rustix::process::getuid().as_raw(),
        rustix::process::getgid().as_raw(),
    );
    if config
        .mount_options
        .contains(&MountOption::DefaultPermissions)
    {
        data.push_str(",default_permissions");
    }
    if config.acl != SessionACL::Owner {
        data.push_str(",allow_other");
    }
    let data = CString::new(data)?;
    let point = held.below().ok_or(io::ErrorKind::NotFound)?;
    match mount(shown(source), point, "fuse", flags, data.as_c_str()) {
        Ok(()) => Ok(Some(device)),
        Err(Errno::PERM) => Ok(None),
        Err(e) => Err(e.into()),
    }
}

/// Returns the source in the form of a table of mounts, without characters that would end a field.
fn shown(source: &str) -> String {
    source.replace([',', '\\'], "_")
}

/// Mounts by the set-uid program of the FUSE package. The program gets a socket, and sends the
/// descriptor of the mount back over it.
fn mount_by_helper(point: &Path, config: &Config) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let mut helper = Command::new("fusermount3");
    helper
        .args(["-o", &words(config), "--"])
        .arg(point)
        .env("_FUSE_COMMFD", "0")
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::piped());
    let child = helper.spawn()?;
    // The command holds the other end of the socket, so it must be dropped.
    drop(helper);
    let came = receive_byte(ours.as_fd());
    let output = child.wait_with_output()?;
    match came {
        Ok((_, Some(device))) => Ok(device),
        _ => Err(io::Error::other(
            String::from_utf8_lossy(&output.stderr).into_owned(),
        )),
    }
}

/// Returns the options in the form of fusermount3.
fn words(config: &Config) -> String {
    let mut words: Vec<String> = config.mount_options.iter().map(word).collect();
    if config.acl != SessionACL::Owner {
        words.push("allow_other".into());
    }
    words.join(",")
}

fn word(option: &MountOption) -> String {
    match option {
        MountOption::FSName(name) => format!("fsname={name}"),
        MountOption::Subtype(name) => format!("subtype={name}"),
        MountOption::DefaultPermissions => "default_permissions".into(),
        other => format!("{other:?}").to_ascii_lowercase(),
    }
}
