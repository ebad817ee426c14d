//! Ctrl-C: long work ends at the next point where it leaves no harm, and the
//! volume is detached as always.

use crate::exit::{Done, Fail};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::io::{self, Read};
use std::os::fd::BorrowedFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

static STOP: OnceLock<Stop> = OnceLock::new();

/// The user's wish to stop.
struct Stop {
    is_set: Arc<AtomicBool>,
    /// The next signal kills.
    kills: Arc<AtomicBool>,
    /// Can be read once `is_set` is: for those who wait.
    told: Option<UnixStream>,
}

/// From now on SIGINT, SIGTERM and SIGHUP do not kill, but are seen by [`check`] and end a [`wait`]. A
/// second one kills. A SIGHUP that is ignored (`nohup`) stays so.
pub(crate) fn catch() {
    STOP.get_or_init(|| {
        let [is_set, kills] = <[Arc<AtomicBool>; 2]>::default();
        let (told, tell) = UnixStream::pair().ok().unzip();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            // Where a signal cannot be caught, it kills: as without this.
            let _ = signal_hook::flag::register_conditional_default(signal, Arc::clone(&kills));
            let _ = signal_hook::flag::register(signal, Arc::clone(&kills));
            let _ = signal_hook::flag::register(signal, Arc::clone(&is_set));
            if let Some(Ok(tell)) = tell.as_ref().map(UnixStream::try_clone) {
                let _ = signal_hook::low_level::pipe::register(signal, tell);
            }
        }
        Stop {
            is_set,
            kills,
            told,
        }
    });
}

/// Returns whether a signal was ignored when the program was started; false where the system does not tell.
fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let mask = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 != 0)
}

/// Asks at a terminal, in a way that no [`wait`] ends: a signal kills meanwhile.
pub(crate) fn killed_while<T>(ask: impl FnOnce() -> T) -> T {
    let Some(stop) = STOP.get() else {
        return ask();
    };
    stop.kills.store(true, Ordering::SeqCst);
    let answer = ask();
    stop.kills.store(is_set(), Ordering::SeqCst);
    answer
}

/// Returns whether the user has asked to stop.
pub(crate) fn is_set() -> bool {
    STOP.get()
        .is_some_and(|stop| stop.is_set.load(Ordering::Relaxed))
}

/// # Errors
/// `Stopped`, if the user has asked for it.
pub(crate) fn check() -> Done {
    if is_set() {
        Err(Fail::stopped())
    } else {
        Ok(())
    }
}

/// Waits until a file is ready, or has ended, but no longer than until the user asks to stop.
///
/// # Errors
/// `Interrupted`, if the user has asked for it; the host's.
pub(crate) fn wait(file: BorrowedFd<'_>, ready: PollFlags) -> io::Result<()> {
    let told = STOP.get().and_then(|stop| stop.told.as_ref());
    loop {
        if is_set() {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let mut files = vec![PollFd::from_borrowed_fd(file, ready)];
        files.extend(told.map(|told| PollFd::new(told, PollFlags::IN)));
        match poll(&mut files, None) {
            Err(Errno::INTR) => {}
            Err(e) => return Err(e.into()),
            Ok(_) if is_set() => {}
            Ok(_) if files.first().is_some_and(|file| !file.revents().is_empty()) => return Ok(()),
            Ok(_) => {}
        }
    }
}

/// Standard input, without a buffer. A wait for it ends when the user asks to stop, as `Interrupted`.
pub(crate) struct Stdin;

impl Read for Stdin {
    fn read(&mut self, room: &mut [u8]) -> io::Result<usize> {
        wait(rustix::stdio::stdin(), PollFlags::IN)?;
        Ok(rustix::io::read(rustix::stdio::stdin(), room)?)
    }
}

/// Reads a line of standard input, and no more of it.
///
/// # Errors
/// `Stopped`, if the user asks for it meanwhile; the host's.
pub(crate) fn read_line() -> Done<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match Stdin.read(&mut byte) {
            Ok(1) if byte != *b"\n" => line.extend(byte),
            Ok(_) => return Ok(String::from_utf8_lossy(&line).into_owned()),
            Err(e) => {
                check()?;
                return Err(Fail::host("standard input", e));
            }
        }
    }
}
