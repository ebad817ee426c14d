//! The key of file handles: kept in a file, so that clients go on after a restart;
//! and beside it, which of them have locks.

use crate::exit::{Done, Fail, words};
use crate::log::warn;
use crate::sandbox::RunAs;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::geteuid;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use volary::nfs::LockState;

const LEN: usize = 16;

/// The key, and where it is kept, if it is.
pub(super) struct Kept {
    pub(super) key: [u8; LEN],
    pub(super) path: Option<PathBuf>,
}

/// Returns the key in the file, which is made if it is missing and belongs to the user that the
/// server runs as. With no file named, that is `volary/nfs.key` in the user's state directory; if it
/// cannot be made there, warns and returns a key for this run only.
///
/// # Errors
/// Of a file that was named, or of its directory, where that user must be able to write the list of
/// clients that have locks.
pub(super) fn obtain(named: Option<&Path>, run_as: &RunAs) -> Done<Kept> {
    let kept = |path: &Path| {
        let key = read_or_make(path)?;
        let path = Some(path.to_owned());
        Ok(Kept { key, path })
    };
    if let Some(path) = named {
        run_as
            .give(path, Some(LEN as u64))
            .map_err(|e| of_file(path, &e))?;
        return run_as.meanwhile(|| {
            may_write(directory(path), run_as)?;
            kept(path).map_err(|e| of_file(path, &e))
        });
    }
    let Some(path) = usual(run_as) else {
        warn("no home directory to keep a key in: clients must mount again after a restart");
        return for_this_run();
    };
    run_as.meanwhile(|| {
        kept(&path).or_else(|e| {
            let line = of_file(&path, &e).line;
            warn(&format!("{line}: clients must mount again after a restart"));
            for_this_run()
        })
    })
}

/// Returns the directory that a file is in.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(dir) if !dir.as_os_str().is_empty() => dir,
        _ => Path::new("."),
    }
}

/// # Errors
/// Of the command line, for a directory in which this process may not make files.
fn may_write(dir: &Path, run_as: &RunAs) -> Done {
    use rustix::fs::{Access, AtFlags, CWD, accessat};
    use rustix::io::Errno;
    let Some(name) = run_as.name() else {
        return Ok(());
    };
    let mode = Access::WRITE_OK | Access::EXEC_OK;
    match accessat(CWD, dir, mode, AtFlags::EACCESS) {
        Err(Errno::ACCESS) => {
            let shown = volary::escape(dir.as_os_str().as_bytes());
            Err(Fail::usage(format!(
                "{shown}: --run-as {name} may not write there, and which clients have locks is \
                 kept beside the key; make it that user's, or give another --key"
            )))
        }
        // Making the key reports any other error.
        _ => Ok(()),
    }
}

fn for_this_run() -> Done<Kept> {
    let key = random().map_err(|e| Fail::host("random numbers", e))?;
    Ok(Kept { key, path: None })
}

impl Kept {
    /// Returns the directory in which it is kept, and which clients have locks.
    pub(super) fn directory(&self) -> Option<&Path> {
        self.path.as_deref().map(directory)
    }

    /// Returns which clients have locks, kept beside the key, one file for each address: the
    /// key's name with the address and `.locks`. `None` without a place for the key,
    /// and where the port is any that is free: nobody finds the next run there.
    ///
    /// # Errors
    /// Of the file.
    pub(super) fn locks(
        &self,
        address: SocketAddr,
        grace: Duration,
        run_as: &RunAs,
    ) -> Done<Option<Arc<LockState>>> {
        let Some(path) = self.path.as_ref().filter(|_| address.port() != 0) else {
            return Ok(None);
        };
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{address}.locks"));
        let path = PathBuf::from(name);
        run_as.give(&path, None).map_err(|e| of_file(&path, &e))?;
        let open = || LockState::open(&path, grace).map_err(|e| of_file(&path, &e));
        Ok(Some(Arc::new(run_as.meanwhile(open)?)))
    }
}

fn of_file(path: &Path, e: &io::Error) -> Fail {
    let shown = volary::escape(path.as_os_str().as_bytes());
    Fail::usage(format!("{shown}: {}", words(e)))
}

fn usual(run_as: &RunAs) -> Option<PathBuf> {
    if let Some(home) = run_as.home() {
        return Some(home.join(".local/state/volary/nfs.key"));
    }
    let dir = |name| std::env::var_os(name).filter(|v| !v.is_empty());
    let state = dir("XDG_STATE_HOME")
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(dir("HOME")?).join(".local/state")))?;
    Some(state.join("volary/nfs.key"))
}

fn read_or_make(path: &Path) -> io::Result<[u8; LEN]> {
    match read(path) {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            if let Some(dir) = path.parent() {
                // New directories of the user's state are closed to others.
                let mut how = fs::DirBuilder::new();
                how.recursive(true).mode(0o700).create(dir)?;
            }
            make(path)
        }
        read => read,
    }
}

/// # Errors
/// The host's; for a symlink, for anything but a file, for a file of another user or that others
/// have rights on, and for one that holds no key.
fn read(path: &Path) -> io::Result<[u8; LEN]> {
    let mut how = OpenOptions::new();
    // Opening a fifo would wait for its other end.
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let opened = how
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path);
    let mut file = opened.map_err(|e| match Errno::from_io_error(&e) {
        Some(Errno::LOOP) => io::Error::other("is a symlink; name the file itself"),
        _ => e,
    })?;
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::other("is no file"));
    }
    if meta.uid() != geteuid().as_raw() {
        let words = format!("belongs to user {}, who knows the key", meta.uid());
        return Err(io::Error::other(words));
    }
    if meta.mode() & 0o077 != 0 {
        return Err(io::Error::other("others have rights on it; chmod 600"));
    }
    let mut key = [0; LEN];
    let mut more = [0];
    let no_key = |_| io::Error::other("not a key of 16 bytes");
    file.read_exact(&mut key).map_err(no_key)?;
    match file.read(&mut more)? {
        0 => Ok(key),
        _ => Err(io::Error::other("not a key of 16 bytes")),
    }
}

/// Makes it whole or not at all: another run may do the same at this moment.
fn make(path: &Path) -> io::Result<[u8; LEN]> {
    let key = random()?;
    let mut name = path.as_os_str().to_owned();
    // A name that nobody can guess: no file that is there already is written to.
    let chance: [u8; LEN] = random()?;
    name.push(format!(".{:032x}", u128::from_ne_bytes(chance)));
    let fresh = PathBuf::from(name);
    let mut how = OpenOptions::new();
    let mut file = how.write(true).create_new(true).mode(0o600).open(&fresh)?;
    let made = file
        .write_all(&key)
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&fresh, path));
    // It has its name now, or is of no use.
    let _ = fs::remove_file(&fresh);
    match made {
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => read(path),
        made => made.map(|()| key),
    }
}

fn random() -> io::Result<[u8; LEN]> {
    let mut key = [0; LEN];
    getrandom::fill(&mut key).map_err(|e| io::Error::other(e.to_string()))?;
    Ok(key)
}
