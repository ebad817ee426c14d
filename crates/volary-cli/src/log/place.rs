//! Where a log is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use tracing::Level;

/// The socket of the system's log, whichever program that is.
const LOG: &str = "/dev/log";
/// A daemon's lines (RFC 3164, section 4.1.1): 3 × 8.
const DAEMON: u8 = 24;

/// Open from the beginning, so that nothing need be opened later.
#[derive(Debug)]
pub(super) enum Place {
    Stderr,
    System(UnixDatagram),
    File(File),
}

impl Place {
    /// From `stderr`, `system` or the path of a file, which is made if it is not there, and which
    /// nobody else may read then.
    ///
    /// # Errors
    /// The host's.
    pub(super) fn open(text: &Path) -> io::Result<Self> {
        match text.to_str() {
            Some("stderr") => Ok(Self::Stderr),
            Some("system") => Self::system(),
            _ => {
                let mut how = OpenOptions::new();
                let file = how.append(true).create(true).mode(0o600).open(text)?;
                Ok(Self::File(file))
            }
        }
    }

    /// The system's log.
    ///
    /// # Errors
    /// Those of connecting to it.
    pub(super) fn system() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{LOG}: {e}"));
        socket.connect(LOG).map_err(named)?;
        // Nobody waits for a log that is full.
        socket.set_nonblocking(true)?;
        Ok(Self::System(socket))
    }

    /// Writes a line, which has no end. Where nobody listens, or no room is left, there is
    /// nobody to tell.
    pub(super) fn write(&mut self, level: Level, line: &str) {
        let with_end = || format!("{line}\n");
        let _ = match self {
            Self::Stderr => io::stderr().write_all(with_end().as_bytes()),
            Self::File(file) => file.write_all(with_end().as_bytes()),
            Self::System(socket) => {
                let priority = DAEMON + severity(level);
                let words = format!("<{priority}>volary[{}]: {line}", std::process::id());
                socket.send(words.as_bytes()).map(|_| ())
            }
        };
    }
}

fn severity(level: Level) -> u8 {
    match level {
        Level::ERROR => 3,
        Level::WARN => 4,
        Level::INFO => 6,
        _ => 7,
    }
}
