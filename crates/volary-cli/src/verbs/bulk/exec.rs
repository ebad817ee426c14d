//! `--exec`: a command for each file, with its content on standard input.

use super::sink::{Begun, Sink, To, zeros};
use crate::exit::{Done, words};
use std::ffi::{OsStr, OsString};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::process::{Child, Command, Stdio};
use volary::bulk::{File, Part};

/// Runs commands.
pub(super) struct Exec {
    command: OsString,
    begun: Begun<Running>,
}

/// A command that runs.
struct Running {
    child: Child,
    /// It reads no more, which is its own business.
    has_enough: bool,
}

impl Exec {
    pub(super) fn new(command: OsString) -> Self {
        Self {
            command,
            begun: Begun::default(),
        }
    }

    fn start(&self, name: &[u8]) -> std::io::Result<Running> {
        let child = Command::new("sh")
            .arg("-c")
            .arg(&self.command)
            .env("VOLARY_PATH", OsStr::from_bytes(name))
            .stdin(Stdio::piped())
            .spawn()?;
        Ok(Running {
            child,
            has_enough: false,
        })
    }
}

impl Running {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        let Some(stdin) = self.child.stdin.as_mut().filter(|_| !self.has_enough) else {
            return Ok(());
        };
        match stdin.write_all(bytes) {
            Err(e) if e.kind() == ErrorKind::BrokenPipe => {
                self.has_enough = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Waits for its end; says how it ended if that was not well.
    fn end(mut self) -> std::io::Result<Option<String>> {
        drop(self.child.stdin.take());
        let status = self.child.wait()?;
        Ok((!status.success()).then(|| format!("the command ended with {status}")))
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
        let ended = running.end();
        match (written, ended) {
            _ if matches!(part, Part::Failed(_)) => Ok(()),
            (Err(e), _) | (_, Err(e)) => to.failed(file, &words(&e)),
            (_, Ok(Some(how))) => to.failed(file, &how),
            (_, Ok(None)) => to.done(file, None),
        }
    }
}
