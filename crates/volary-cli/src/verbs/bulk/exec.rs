//! `--exec`: a command for each file, with its content on standard input.

use super::sink::{Begun, Sink, To, zeros};
use crate::exit::{Done, words};
use crate::interrupt;
use rustix::event::PollFlags;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use volary::bulk::{File, Part};

/// Runs commands.
pub(super) struct Exec {
    command: OsString,
    begun: Begun<Running>,
}

/// A command that runs.
struct Running {
    child: Child,
    /// What the command reads. None once it reads no more, which is its own business.
    stdin: Option<ChildStdin>,
}

impl Exec {
    pub(super) fn new(command: OsString) -> Self {
        Self {
            command,
            begun: Begun::default(),
        }
    }

    fn start(&self, name: &[u8]) -> io::Result<Running> {
        let mut child = Command::new("sh")
            .arg("-c")
            .arg(&self.command)
            .env("VOLARY_PATH", OsStr::from_bytes(name))
            .stdin(Stdio::piped())
            .spawn()?;
        let stdin = child.stdin.take();
        if let Some(stdin) = &stdin {
            rustix::io::ioctl_fionbio(stdin, true)?;
        }
        Ok(Running { child, stdin })
    }
}

impl Running {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while let Some(stdin) = self.stdin.as_mut().filter(|_| !rest.is_empty()) {
            match stdin.write(rest) {
                Ok(written) => rest = rest.get(written..).unwrap_or_default(),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {
                    interrupt::wait(stdin.as_fd(), PollFlags::OUT)?;
                }
                Err(e) if e.kind() == ErrorKind::BrokenPipe => self.stdin = None,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// Waits for its end; says how it ended if that was not well.
    fn end(&mut self) -> io::Result<Option<String>> {
        self.stdin = None;
        let pid = Pid::from_child(&self.child);
        // Where the kernel has none of these, the wait is one that only a second signal ends.
        if let Ok(end) = pidfd_open(pid, PidfdFlags::empty()) {
            interrupt::wait(end.as_fd(), PollFlags::IN)?;
        }
        let status = self.child.wait()?;
        Ok((!status.success()).then(|| format!("the command ended with {status}")))
    }

    /// Asks it to end, as the user wants no more.
    fn stop(&self) {
        // It may have ended by itself.
        let _ = kill_process(Pid::from_child(&self.child), Signal::TERM);
    }
}

/// Files without a NUL in their names, which no system lets one have, can be given to a command.
impl Sink for Exec {
    fn take(&self, to: &To<'_>, file: &File<'_>, part: Part<'_>) -> Done {
        let mut running = match part {
            Part::Node => return Ok(()),
            Part::Whole(_) | Part::Begin => match self.start(&to.names.of(file)) {
                Ok(running) => running,
                Err(e) => return to.failed(file, &format!("sh: {}", words(&e))),
            },
            _ => match self.begun.take() {
                Some(running) => running,
                None => return Ok(()),
            },
        };
        let mut written = Ok(());
        let mut write = |bytes: &[u8]| {
            if written.is_ok() {
                written = running.write(bytes);
            }
            Ok(())
        };
        let is_last = match part {
            Part::Whole(bytes) => write(bytes).map(|()| true)?,
            Part::Chunk { bytes, .. } => write(bytes).map(|()| false)?,
            Part::Hole(range) => zeros(range.len, write).map(|()| false)?,
            Part::End | Part::Failed(_) => true,
            Part::Node | Part::Begin => false,
        };
        if !is_last && written.is_ok() {
            self.begun.put(running);
            return Ok(());
        }
        let ended = written.and(running.end());
        if interrupt::is_set() {
            running.stop();
            return interrupt::check();
        }
        match ended {
            _ if matches!(part, Part::Failed(_)) => Ok(()),
            Err(e) => to.failed(file, &words(&e)),
            Ok(Some(how)) => to.failed(file, &how),
            Ok(None) => to.done(file, None),
        }
    }
}
