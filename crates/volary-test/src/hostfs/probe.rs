//! Determines the caps of a directory of the host, by inspection or by trial.

use super::unix_caps;
use crate::Tried;
use rustix::fs::statvfs;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use volary_core::{Cancel, Caps, Cred, Ctx, Time};

/// Returns the caps of a directory that is only read. They are those of UNIX, but not
/// `CASE_SENSITIVE` if a name is also found in the other case.
///
/// # Errors
/// Errors of the host.
pub fn caps_by_looking(dir: &Path) -> io::Result<Caps> {
    let mut caps = with_name_max(unix_caps().without(Caps::WRITE), dir)?;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if swapped(&name).is_some_and(|other| fs::symlink_metadata(dir.join(other)).is_ok()) {
            caps = caps.without(Caps::CASE_SENSITIVE);
        }
    }
    Ok(caps)
}

fn with_name_max(mut caps: Caps, dir: &Path) -> io::Result<Caps> {
    let stat = statvfs(dir)?;
    caps.name_max = u16::try_from(stat.f_namemax).unwrap_or(u16::MAX);
    Ok(caps)
}

/// Returns the name with the case of its letters swapped, or `None` if it has no letters.
fn swapped(name: &OsStr) -> Option<std::ffi::OsString> {
    let swap = |b: &u8| match b {
        b'a'..=b'z' => b.to_ascii_uppercase(),
        b => b.to_ascii_lowercase(),
    };
    let other: Vec<u8> = name.as_bytes().iter().map(swap).collect();
    (other != name.as_bytes()).then(|| std::ffi::OsString::from_vec(other))
}

/// Determines the capabilities of a directory by trying changes. Everything that is created is
/// removed again.
///
/// # Errors
/// The error of the host if even simple changes fail.
pub fn try_out(dir: &Path) -> io::Result<Tried> {
    let caps = with_name_max(unix_caps(), dir)?;
    let tried = super::open(dir, caps).and_then(|fs| {
        let (cred, cancel) = (Cred::root(), Cancel::new());
        let cx = Ctx {
            cred: &cred,
            now: Time::EPOCH,
            cancel: &cancel,
        };
        let tried = crate::try_out(&fs, &cx, fs.root());
        fs.detach(&cx)?;
        tried
    });
    tried.map_err(io::Error::other)
}
