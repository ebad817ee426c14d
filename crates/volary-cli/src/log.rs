//! Where lines for the user go: to standard error, or to the system's log once the command
//! goes on without a terminal.

use std::io::Write;
use std::os::unix::net::UnixDatagram;
use std::sync::OnceLock;

/// The socket of the system's log, whichever program that is.
const LOG: &str = "/dev/log";
/// A daemon's warning (RFC 3164, section 4.1.1): 3 × 8 + 4.
const PRIORITY: u8 = 28;

static SYSTEM: OnceLock<UnixDatagram> = OnceLock::new();

/// From now on lines go to the system's log, if there is one.
pub(crate) fn to_system() {
    let connected = UnixDatagram::unbound().and_then(|socket| {
        socket.connect(LOG)?;
        // Nobody waits for a log that is full.
        socket.set_nonblocking(true)?;
        Ok(socket)
    });
    if let Ok(socket) = connected {
        // It is called once.
        let _ = SYSTEM.set(socket);
        std::panic::set_hook(Box::new(|panic| say(&panic.to_string())));
    }
}

/// Says lines, each with its end.
pub(crate) fn say(lines: &str) {
    let Some(log) = SYSTEM.get() else {
        // Where standard error is closed there is nobody to tell.
        let _ = std::io::stderr().write_all(lines.as_bytes());
        return;
    };
    for line in lines.lines() {
        let line = line.strip_prefix("volary: ").unwrap_or(line);
        let words = format!("<{PRIORITY}>volary[{}]: {line}", std::process::id());
        // Nor is there here, if it has gone.
        let _ = log.send(words.as_bytes());
    }
}
