//! Mounts of this host beside the servers, on the same sessions.

use super::Served;
use crate::exit::{Done, Fail, warn};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use volary::Kind;
use volary::fuse::{self, Checks, Locks, MountOptions, Mounted, Stop};

/// The mounts that there are; unmounted when dropped.
#[derive(Default)]
pub(super) struct Mounts(Vec<Mounted>);

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
                        "{shown}: still in use; what is open there is lost"
                    ));
                    mounted.unmount_lazily()
                }
                ended => ended,
            };
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
    let mounted = fuse::serve(volume, dir, &options, Stop::CallBeside);
    let mounted = mounted.map_err(|e| Fail::at(dir.display(), &e))?;
    if mounted.was_dead() {
        warn(&fuse_was_dead(dir));
    }
    Ok(mounted)
}

/// What is said of a mount that a killed server left.
pub(in crate::verbs) fn fuse_was_dead(dir: &Path) -> String {
    format!(
        "{}: was still mounted by a server that was killed; the volume may need volary fsck",
        dir.display()
    )
}
