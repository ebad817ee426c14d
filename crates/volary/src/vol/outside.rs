//! This host, as the layers over a volume see it.

use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volary_core::{Error, Kind, Result, escape};
use volary_layers::{Outside, Pace};

/// The outside world for layers.
#[derive(Clone)]
pub(super) struct Outsides(pub(super) Arc<dyn Outside>);

impl Default for Outsides {
    fn default() -> Self {
        Self(Arc::new(Host))
    }
}

impl From<Arc<dyn Outside>> for Outsides {
    fn from(outside: Arc<dyn Outside>) -> Self {
        Self(outside)
    }
}

impl fmt::Debug for Outsides {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Outside")
    }
}

/// This host: its files, its clock, its random numbers. It cannot ask anybody for a passphrase.
struct Host;

impl Outside for Host {
    fn append(&self, path: &str) -> Result<Box<dyn Write + Send>> {
        let file = File::options().append(true).create(true).open(path);
        Ok(Box::new(file.map_err(|e| of_host(path, &e))?))
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the host's clock is what is asked for"
    )]
    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Ok(Arc::new(HostPace(Instant::now())))
    }

    fn passphrase(&self, path: Option<&str>, _: bool) -> Result<Vec<u8>> {
        let Some(path) = path else {
            let words = "no passphrase; name a file that holds it: crypt=passphrase-file=FILE";
            return Err(Error::note(Kind::Invalid, words));
        };
        passphrase_in(path)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        let filled = File::open("/dev/urandom").and_then(|mut file| file.read_exact(bytes));
        filled.map_err(|e| Error::note(Kind::Io, format!("random numbers: {e}")))
    }
}

/// The longest passphrase that is read from a file, in bytes.
const PASSPHRASE_MAX: u64 = 4096;

/// Returns the first line of a file, for secrets.
///
/// # Errors
/// The host's; `Invalid` for a file that others have rights on, whose owner is neither root nor
/// this user, or whose first line is empty.
pub fn passphrase_in(path: &str) -> Result<Vec<u8>> {
    let file = File::open(path).map_err(|e| of_host(path, &e))?;
    let meta = file.metadata().map_err(|e| of_host(path, &e))?;
    let (mode, owner) = (meta.mode(), meta.uid());
    let shown = escape(path.as_bytes());
    if owner != 0 && owner != rustix::process::geteuid().as_raw() {
        let words =
            format!("{shown}: another user owns it (number {owner}), and knows what it holds");
        return Err(Error::note(Kind::Invalid, words));
    }
    if mode & 0o077 != 0 {
        let words = format!(
            "{shown}: others have rights on it (mode {:04o}); chmod 600",
            mode & 0o7777
        );
        return Err(Error::note(Kind::Invalid, words));
    }
    let mut text = Vec::new();
    let mut file = BufReader::new(file.take(PASSPHRASE_MAX));
    let read = file.read_until(b'\n', &mut text);
    read.map_err(|e| of_host(path, &e))?;
    let end = text.iter().position(|&b| b == b'\n' || b == b'\r');
    text.truncate(end.unwrap_or(text.len()));
    if text.is_empty() {
        return Err(Error::note(
            Kind::Invalid,
            format!("{shown}: its first line is empty, which is no passphrase"),
        ));
    }
    Ok(text)
}

fn of_host(path: &str, e: &io::Error) -> Error {
    let kind = match e.kind() {
        io::ErrorKind::NotFound => Kind::NotFound,
        io::ErrorKind::PermissionDenied => Kind::Access,
        _ => Kind::Io,
    };
    Error::note(kind, format!("{}: {e}", escape(path.as_bytes())))
}

/// The host's clock.
struct HostPace(Instant);

impl Pace for HostPace {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "time is what is waited for")]
    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
