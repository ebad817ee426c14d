//! `--layer`: layers over a volume, and what they need of this host.

use crate::exit::{Done, Exit, Fail};
use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volary::layers::{Outside, Pace, layer_by_name};
use volary::{Error, Fs, Kind, Result};

/// What a layer has to say when all is done.
pub(crate) type Report = Box<dyn Fn() -> String + Send + Sync>;

/// Puts the layers that `specs` name over `fs`, the first lowest. The reports
/// are to be printed at the end.
///
/// # Errors
/// Of the command line; what there is already is not detached.
pub(crate) fn stack(mut fs: Fs, specs: &[String]) -> Done<(Fs, Vec<Report>)> {
    let outside: Arc<dyn Outside> = Arc::new(Host);
    let mut reports = Vec::new();
    for spec in specs {
        let stacked = layer_by_name(fs, spec, &outside).map_err(|e| refused(spec, &e))?;
        fs = stacked.fs;
        reports.extend(stacked.report);
    }
    Ok((fs, reports))
}

/// A layer that cannot be had: by the words that name it, or by what it found.
fn refused(spec: &str, e: &Error) -> Fail {
    let words = format!("--layer {}: {e}", volary::escape(spec.as_bytes()));
    match e.kind() {
        Kind::Invalid | Kind::NotFound | Kind::NotDir | Kind::Unsupported => Fail::usage(words),
        _ => Fail::new(Exit::Failed, words),
    }
}

/// This host.
struct Host;

impl Outside for Host {
    fn trace(&self, line: &str) {
        crate::log::say(&format!("{line}\n"));
    }

    fn append(&self, path: &str) -> Result<Box<dyn Write + Send>> {
        use std::os::unix::fs::OpenOptionsExt;
        let mut how = std::fs::OpenOptions::new();
        let file = how.append(true).create(true).mode(0o600).open(path);
        Ok(Box::new(file.map_err(|e| of_host(path, &e))?))
    }

    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Ok(Arc::new(Clock::new()))
    }

    fn passphrase(&self, path: Option<&str>) -> Result<Vec<u8>> {
        let words = match path {
            Some(path) => first_line(path)?,
            None => std::env::var_os("VOLARY_PASSWORD")
                .map(std::os::unix::ffi::OsStringExt::into_vec)
                .unwrap_or_default(),
        };
        if words.is_empty() {
            let words = "no passphrase; set VOLARY_PASSWORD, or name a file that holds it";
            return Err(Error::note(Kind::Invalid, words));
        }
        Ok(words)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|e| Error::note(Kind::Io, format!("random numbers: {e}")))
    }
}

/// The longest passphrase that is read from a file, in bytes.
const PASSPHRASE_MAX: u64 = 4096;

fn first_line(path: &str) -> Result<Vec<u8>> {
    use std::io::Read;
    let file = std::fs::File::open(path).map_err(|e| of_host(path, &e))?;
    let mut text = Vec::new();
    let mut file = file.take(PASSPHRASE_MAX);
    file.read_to_end(&mut text).map_err(|e| of_host(path, &e))?;
    let end = text.iter().position(|&b| b == b'\n' || b == b'\r');
    text.truncate(end.unwrap_or(text.len()));
    Ok(text)
}

fn of_host(path: &str, e: &std::io::Error) -> Error {
    let kind = match e.kind() {
        std::io::ErrorKind::NotFound => Kind::NotFound,
        std::io::ErrorKind::PermissionDenied => Kind::Access,
        _ => Kind::Io,
    };
    Error::note(kind, format!("{}: {e}", volary::escape(path.as_bytes())))
}

/// The host's clock.
struct Clock(Instant);

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "what a rate is measured by")]
    fn new() -> Self {
        Self(Instant::now())
    }
}

impl Pace for Clock {
    fn now(&self) -> Duration {
        self.0.elapsed()
    }

    #[expect(clippy::disallowed_methods, reason = "time is what is waited for")]
    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}
