//! [`serve`]: mounts a volume on a directory, and ends the mount.

use crate::kernel::events::Teller;
use crate::mount::attend::{Attendant, Attended};
use crate::mount::mounting::{cannot_mount, config, mount_flags, mount_on};
use crate::mount::point::MountPoint;
use crate::options::MountOptions;
use crate::requests::apart::Served;
use crate::requests::counts::Counts;
use crate::requests::server::Server;
use fuser::Config;
use parking_lot::{Condvar, Mutex};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use volary_core::{Caps, Error, Kind, Result};
use volary_session::Volume;

/// The highest number of threads.
const THREADS_MAX: usize = 64;

/// What ends a mount, besides [`Mounted::unmount`] and a user's `umount`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// Nothing else.
    Call,
    /// SIGINT, SIGTERM and SIGHUP, which then no longer kill this process. At the first one, the
    /// mount is detached from its directory at once. Open files stay usable, and the mount ends
    /// when the last of them is closed. At the second one, the mount ends at once, and its users
    /// get errors.
    Signals,
    /// Nothing else. The mount is one of several that serve the volume. When it ends, the volume
    /// stays attached, and its changes are made durable.
    CallBeside,
}

/// A mounted volume. Dropping it unmounts it. If it is in use then, it is detached from its
/// directory, and ends with its last user.
#[derive(Debug)]
pub struct Mounted {
    place: Place,
    counts: Arc<Counts>,
    end: Arc<End>,
    signals: Option<Handle>,
    /// Whether it was detached from its directory, where there may be another mount by now.
    has_left: AtomicBool,
}

/// The mount point, and the process that unmounts it.
#[derive(Clone, Debug)]
struct Place {
    point: MountPoint,
    /// `None` if this process unmounts it itself.
    attendant: Option<Arc<Attendant>>,
}

impl Place {
    fn unmount(&self, lazy: bool) -> Result<()> {
        match &self.attendant {
            Some(attendant) => attendant.unmount(lazy),
            None => self.point.unmount(lazy),
        }
    }

    fn abort(&self, connection: Option<u32>) {
        match (&self.attendant, connection) {
            (Some(attendant), _) => attendant.abort(),
            (None, Some(connection)) => MountPoint::abort(connection),
            (None, None) => {}
        }
    }

    /// Applies settings that need an initialised connection to the kernel.
    fn settle(&self, read_only: bool, options: &MountOptions) -> Result<()> {
        if let Some(attendant) = &self.attendant {
            return attendant.settle();
        }
        if options.nosymfollow {
            self.point
                .forbid_symlinks(mount_flags(read_only, options))?;
        }
        self.point.set_read_ahead(options.read_ahead);
        Ok(())
    }
}

/// The result of the mount, once it has ended.
#[derive(Debug, Default)]
struct End {
    answer: Mutex<Option<Option<Error>>>,
    came: Condvar,
}

/// Mounts `volume` on the directory `mountpoint`, and serves it with its own threads. When the
/// mount ends, for whatever reason, the volume is detached (but see [`Stop::CallBeside`]), so that
/// everything is on its device.
///
/// If the directory is still covered by the mount of a server that was killed, that mount is
/// removed first. [`Mounted::was_dead`] tells so.
///
/// # Errors
/// `NotFound`, `NotDir`, `Access` or `Busy` for the mount point; `Unsupported` if the host has no
/// FUSE; `NotPermitted` without the rights to mount with these options; `Invalid` for a number of
/// threads that is not 1 to 64; `Io`. Each has one line that says what to do. The volume then stays
/// attached.
pub fn serve(
    volume: Arc<Volume>,
    mountpoint: &Path,
    options: &MountOptions,
    stop: Stop,
) -> Result<Mounted> {
    let threads = threads(options)?;
    let point = MountPoint::check(mountpoint)?;
    let place = Place {
        point,
        attendant: None,
    };
    let read_only = is_read_only(&volume, options);
    let source = source(&volume, options);
    let config = config(&source, read_only, options, threads);
    let flags = mount_flags(read_only, options);
    let device = mount_on(&place.point, &source, flags, &config)?;
    begin(volume, &place, options, stop, device, config)
}

/// Mounts `volume` as [`serve`] does, on the directory of `attendant`. The attendant mounts and
/// unmounts it, so this process needs no right to do so. `options` must be those that the attendant
/// was given.
///
/// # Errors
/// Those of [`serve`]; `Io` if the attendant has ended.
pub fn serve_attended(
    volume: Arc<Volume>,
    attendant: &Arc<Attendant>,
    options: &MountOptions,
    stop: Stop,
) -> Result<Mounted> {
    let threads = threads(options)?;
    let read_only = is_read_only(&volume, options);
    let source = source(&volume, options);
    let config = config(&source, read_only, options, threads);
    let Attended { device, point } = attendant.mount(&source, read_only)?;
    let place = Place {
        point,
        attendant: Some(Arc::clone(attendant)),
    };
    begin(volume, &place, options, stop, device, config)
}

/// Serves what was mounted at `place`. Unmounts it if this fails.
fn begin(
    volume: Arc<Volume>,
    place: &Place,
    options: &MountOptions,
    stop: Stop,
    device: OwnedFd,
    config: Config,
) -> Result<Mounted> {
    let begun = run(volume, place.clone(), options, stop, device, config);
    begun.inspect_err(|_| {
        // An error here would hide the first one.
        let _ = place.unmount(true);
    })
}

fn run(
    volume: Arc<Volume>,
    place: Place,
    options: &MountOptions,
    stop: Stop,
    device: OwnedFd,
    config: Config,
) -> Result<Mounted> {
    let threads = config.n_threads.unwrap_or(1);
    let client = volume.client();
    let server = Server::new(Arc::clone(&volume), client, options, threads);
    let counts = Arc::clone(&server.counts);
    let (nodes, news) = (Arc::clone(&server.nodes), Arc::clone(&server.told.news));
    let waiters = Arc::clone(&server.waiters);
    let kernel = Arc::clone(&server.kernel);
    let notifier = Arc::clone(&server.notifier);
    let server = Served(Arc::new(server));
    let session = fuser::Session::from_fd(server, device, config.acl, config)
        .map_err(|e| cannot_mount(&e))?;
    if let Ok(fd) = session.as_fd().try_clone_to_owned() {
        // Nothing else sets it, so this cannot fail.
        let _ = kernel.set(fd);
    }
    // Nothing else sets it, so this cannot fail.
    let _ = notifier.set(session.notifier());
    place.settle(is_read_only(&volume, options), options)?;
    let teller = Teller::start(&volume, client, nodes, news, session.notifier());
    let end = Arc::new(End::default());
    let signals = match stop {
        Stop::Call | Stop::CallBeside => None,
        Stop::Signals => Some(obey_signals(
            place.clone(),
            Arc::clone(&volume),
            Arc::clone(&end),
        )?),
    };
    let mounted = Mounted {
        place: place.clone(),
        counts,
        end: Arc::clone(&end),
        signals,
        has_left: AtomicBool::new(false),
    };
    let running = move || {
        // However this thread ends, threads that wait for the mount's end are woken.
        let _last = Last(Arc::clone(&end));
        let served = session.run();
        if matches!(&served, Err(e) if !is_end(e)) {
            // Nobody answers requests any more. An error here would hide the first one.
            let _ = place.unmount(true);
        }
        waiters.end();
        drop(teller);
        end.note(finish(&volume, served, stop));
    };
    let runner = thread::Builder::new().name("volary-fuse".into());
    runner.spawn(running).map_err(|e| {
        // The mount went with the closure, so nobody must wait for its end.
        mounted.end.note(Ok(()));
        Error::note(Kind::Io, format!("cannot start a thread: {e}"))
    })?;
    Ok(mounted)
}

impl Mounted {
    /// Returns whether the mount point was still covered by the mount of a server that was killed.
    /// Changes that it had not yet made durable are lost, and the volume may need a check.
    pub fn was_dead(&self) -> bool {
        self.place.point.was_dead
    }

    /// Returns whether the mount hides entries of the directory.
    pub fn hides(&self) -> bool {
        self.place.point.hides
    }

    /// Returns the mount point: absolute, without symlinks.
    pub fn path(&self) -> &Path {
        &self.place.point.path
    }

    /// Returns the counts of requests so far.
    pub fn counts(&self) -> &Arc<Counts> {
        &self.counts
    }

    /// Unmounts, and waits until the volume is detached, or all changes are durable.
    ///
    /// # Errors
    /// `Busy` if it is in use. It then stays mounted. Those of [`wait`](Self::wait).
    pub fn unmount(&self) -> Result<()> {
        if self.is_in_place() {
            self.place.unmount(false)?;
        }
        self.wait()
    }

    /// Detaches the mount from its directory even if it is in use. It ends when its last user does.
    ///
    /// # Errors
    /// `Io`.
    pub fn unmount_lazily(&self) -> Result<()> {
        if !self.is_in_place() {
            return Ok(());
        }
        self.place.unmount(true)?;
        self.has_left.store(true, Ordering::SeqCst);
        Ok(())
    }

    fn is_in_place(&self) -> bool {
        !self.end.has_come() && !self.has_left.load(Ordering::SeqCst)
    }

    /// Waits until the mount has ended, and the volume is detached, or all changes are durable.
    ///
    /// # Errors
    /// The first error of making everything durable. It is returned once.
    pub fn wait(&self) -> Result<()> {
        self.end.wait()
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        if self.is_in_place() {
            match self.place.unmount(false) {
                Ok(()) => drop(self.wait()),
                Err(_) => drop(self.place.unmount(true)),
            }
        }
        if let Some(signals) = &self.signals {
            signals.close();
        }
    }
}

/// Notes an end when it is dropped, unless another was noted. This happens after a panic.
struct Last(Arc<End>);

impl Drop for Last {
    fn drop(&mut self) {
        let words = "the thread that serves the mount has panicked";
        self.0.note(Err(Error::note(Kind::Io, words)));
    }
}

impl End {
    /// Notes how the mount ended. The first result counts.
    fn note(&self, answer: Result<()>) {
        self.answer.lock().get_or_insert(answer.err());
        self.came.notify_all();
    }

    fn has_come(&self) -> bool {
        self.answer.lock().is_some()
    }

    fn wait(&self) -> Result<()> {
        let mut answer = self.answer.lock();
        loop {
            if let Some(error) = answer.as_mut() {
                return error.take().map_or(Ok(()), Err);
            }
            self.came.wait(&mut answer);
        }
    }
}

/// Makes everything durable after the last request.
fn finish(volume: &Volume, served: std::io::Result<()>, stop: Stop) -> Result<()> {
    let detached = match stop {
        Stop::CallBeside => volume.sync(),
        Stop::Call | Stop::Signals => volume.detach(),
    };
    match served {
        Err(e) if !is_end(&e) => {
            // What could not be kept comes first.
            detached?;
            let words = format!("the connection to the kernel failed: {e}");
            Err(Error::note(Kind::Io, words))
        }
        _ => detached,
    }
}

/// Returns whether the kernel has ended the connection. The FUSE library recognises this by
/// `ENODEV`. For a request that a thread was just taking, Linux returns `ECONNABORTED` instead
/// (`fuse_dev_do_read`).
fn is_end(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::ConnectionAborted
}

/// Returns the number of threads.
///
/// # Errors
/// `Invalid`.
fn threads(options: &MountOptions) -> Result<usize> {
    match options.threads {
        Some(count) if (1..=THREADS_MAX).contains(&count) => Ok(count),
        Some(count) => {
            let words = format!("option 'threads' is '{count}', expected 1 to {THREADS_MAX}");
            Err(Error::note(Kind::Invalid, words))
        }
        None => Ok(thread::available_parallelism().map_or(2, |n| n.get().clamp(2, 8))),
    }
}

fn is_read_only(volume: &Volume, options: &MountOptions) -> bool {
    options.read_only || !volume.caps().has(Caps::WRITE)
}

/// Returns the source that the table of mounts shows.
fn source(volume: &Volume, options: &MountOptions) -> String {
    let own = || volume.name().into();
    options.source.clone().unwrap_or_else(own)
}

/// Starts a thread that unmounts at a signal.
///
/// # Errors
/// `Io` if no thread can be started.
fn obey_signals(place: Place, volume: Arc<Volume>, end: Arc<End>) -> Result<Handle> {
    let failed = |e: std::io::Error| Error::note(Kind::Io, format!("cannot wait for signals: {e}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    let handle = signals.handle();
    let connection = place.point.connection();
    let obeying = move || {
        for (count, _) in signals.forever().enumerate() {
            if count > 0 {
                place.abort(connection);
                end.note(volume.detach());
            } else if place.unmount(false).is_err() {
                let _ = place.unmount(true);
            }
        }
    };
    let thread = thread::Builder::new().name("volary-signals".into());
    thread.spawn(obeying).map_err(failed)?;
    Ok(handle)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use volary_core::Time;
    use volary_mem::{Mem, MemOptions};
    use volary_session::VolumeOptions;

    #[test]
    fn the_end_of_a_connection_is_no_failure_and_anything_else_is() {
        let end_with = |served: std::io::Result<()>| {
            let fs = Mem::attach(MemOptions::default(), Time::EPOCH).unwrap();
            let how = VolumeOptions::new("test", || Time::EPOCH);
            finish(&Volume::new(fs, how), served, Stop::Call)
        };
        assert_eq!(end_with(Ok(())), Ok(()));
        assert_eq!(end_with(Err(Errno::CONNABORTED.into())), Ok(()));
        assert_eq!(end_with(Err(Errno::IO.into())).unwrap_err(), Kind::Io);
    }
}
