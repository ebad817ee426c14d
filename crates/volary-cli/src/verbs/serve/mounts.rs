//! Mounts of this host beside the servers, on the same sessions.

use super::config::Entry;
use super::plan::Served;
use crate::exit::{Done, Exit, Fail};
use crate::log::warn;
use crate::sandbox::{Level, attendant};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use volary::fuse::{self, Attendant, Checks, Locks, MountOptions, Mounted, Stop};
use volary::{Kind, Volume};

/// The mounts that there are; unmounted when dropped.
#[derive(Default)]
pub(super) struct Mounts(Vec<Mounted>);

/// Starts an attendant for each volume that is to be mounted, if this process will not be able to mount.
///
/// # Errors
/// Of starting them.
pub(super) fn attendants(level: Level, entries: &[Entry]) -> Done<Vec<Option<Arc<Attendant>>>> {
    let attendant = |entry: &Entry| match &entry.mount {
        Some(dir) => attendant::for_mount(level, dir, &["checks=session".to_owned()]),
        None => Ok(None),
    };
    entries.iter().map(attendant).collect()
}

impl Mounts {
    /// Mounts what is to be mounted.
    ///
    /// # Errors
    /// Of the directory; of mounting.
    pub(super) fn start(open: &[Served]) -> Done<Self> {
        let mut mounts = Vec::new();
        for served in open {
            if let Some(dir) = &served.mount {
                mounts.push(mount(served, dir)?);
            }
        }
        Ok(Self(mounts))
    }

    /// Unmounts all. What is in use is gone from its place at once, and answers errors
    /// when its volume is detached.
    ///
    /// # Errors
    /// The first of making everything durable.
    pub(super) fn stop(&self) -> Done {
        let mut first = Ok(());
        for mounted in &self.0 {
            let ended = match patiently(mounted) {
                Err(e) if e.kind() == Kind::Busy => {
                    let shown = mounted.path().display();
                    warn(&format!(
                        "{shown}: still in use; what is open there answers errors from now on"
                    ));
                    mounted.unmount_lazily()
                }
                ended => ended,
            };
            mount_ended(mounted.path());
            first = first.and(ended.map_err(|e| Fail::at(mounted.path().display(), &e)));
        }
        first
    }
}

/// Unmounts; a second long as often as it is in use. Nearly always that is a program which
/// somebody has just begun: until its first instruction it holds all that they had open.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a mount is let go"
)]
fn patiently(mounted: &Mounted) -> volary::Result<()> {
    for _ in 0..20 {
        match mounted.unmount() {
            Err(e) if e.kind() == Kind::Busy => std::thread::sleep(Duration::from_millis(50)),
            ended => return ended,
        }
    }
    mounted.unmount()
}

fn mount(served: &Served, dir: &Path) -> Done<Mounted> {
    // Sessions check access, for all servers alike, and see each other's locks.
    let options = MountOptions {
        read_only: served.export.read_only,
        checks: Checks::Session,
        locks: Locks::Session,
        ..MountOptions::default()
    };
    let volume = Arc::clone(&served.volume);
    let attendant = served.attendant.clone();
    mount_on(volume, dir, &options, Stop::CallBeside, attendant)
}

/// Logs that the mount on `dir` has ended.
pub(in crate::verbs) fn mount_ended(dir: &Path) {
    let shown = volary::escape(dir.as_os_str().as_bytes());
    tracing::info!(target: "FUSE", at = %shown, "mount ends");
}

/// Mounts, by the directory's attendant if there is one, and warns of anything odd about the
/// directory.
///
/// # Errors
/// Of the directory; of mounting. Each names the directory once.
pub(in crate::verbs) fn mount_on(
    volume: Arc<Volume>,
    dir: &Path,
    options: &MountOptions,
    stop: Stop,
    attendant: Option<Arc<Attendant>>,
) -> Done<Mounted> {
    let shown = volary::escape(dir.as_os_str().as_bytes()).to_string();
    let mounted = match attendant {
        Some(attendant) => fuse::serve_attended(volume, &attendant, options, stop),
        None => fuse::serve(volume, dir, options, stop),
    };
    let mounted = mounted.map_err(|e| {
        match e.to_string().strip_prefix(&format!("mount point {shown} ")) {
            Some(words) => Fail::new(Exit::Failed, format!("{shown}: {words}")),
            None => Fail::at(&shown, &e),
        }
    })?;
    tracing::info!(target: "FUSE", at = shown, "mount begins");
    if mounted.was_dead() {
        warn(&format!(
            "{shown}: was still mounted by a server that was killed; the volume may need volary fsck"
        ));
    }
    if mounted.hides() {
        let words = "is not empty; what is in it is hidden until it is unmounted";
        warn(&format!("{shown}: {words}"));
    }
    Ok(mounted)
}
