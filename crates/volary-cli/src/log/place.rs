//! Where a log is written.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;
use tracing::Level;

/// The socket of the system's log.
const LOG: &str = "/dev/log";
/// The facility "daemon" (RFC 3164, section 4.1.1): 3 × 8.
const DAEMON: u8 = 24;

/// A place that is open from the start: the sandbox lets nothing be opened later.
#[derive(Debug)]
pub(super) enum Place {
    Stderr,
    System(UnixDatagram),
    File(File),
}

impl Place {
    /// Opens `stderr`, `system` or the file at a path; makes the file, readable by its owner only, if it
    /// is missing.
    ///
    /// # Errors
    /// The host's; `InvalidInput` for a file that is not text.
    pub(super) fn open(text: &Path) -> io::Result<Self> {
        match text.to_str() {
            Some("stderr") => Ok(Self::Stderr),
            Some("system") => Self::system(),
            _ => {
                let file = crate::written::open_to_append(text)?;
                Ok(Self::File(file))
            }
        }
    }

    /// Returns the system's log.
    ///
    /// # Errors
    /// Those of connecting to it.
    pub(super) fn system() -> io::Result<Self> {
        let socket = UnixDatagram::unbound()?;
        let named = |e: io::Error| io::Error::new(e.kind(), format!("{LOG}: {e}"));
        socket.connect(LOG).map_err(named)?;
        // A log that is full must not hold up a server.
        socket.set_nonblocking(true)?;
        Ok(Self::System(socket))
    }

    /// Writes a line, given without its end. Drops it where nobody listens or no room is left.
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
