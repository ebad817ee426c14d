//! `--layer`: layers over a volume, and what they need of this host.

use crate::exit::{Done, Exit, Fail};
use crate::interrupt;
use crate::registry::registry;
use std::io::{IsTerminal, Write};
use std::os::unix::ffi::OsStringExt;
use std::sync::Arc;
use std::time::{Duration, Instant};
use volary::layers::{Outside, Pace};
use volary::{Error, Fs, Kind, Result, Source};

/// What a layer has to say when all is done.
pub(crate) type Report = Box<dyn Fn() -> String + Send + Sync>;

/// Puts the layers that `specs` name over `fs`, the volume on `source`, the first lowest.
/// The reports are to be printed at the end.
///
/// # Errors
/// Of the command line; what there is already is not detached.
pub(crate) fn stack(mut fs: Fs, specs: &[String], source: &Source) -> Done<(Fs, Vec<Report>)> {
    let outside: Arc<dyn Outside> = Arc::new(Host {
        volume: source.to_string(),
    });
    let mut reports = Vec::new();
    for spec in specs {
        let stacked = registry()
            .layer(fs, spec, &outside)
            .map_err(|e| refused(spec, &e))?;
        fs = stacked.fs;
        reports.extend(stacked.report);
    }
    Ok((fs, reports))
}

/// Returns a layer that cannot be had: by the words that name it, or by what it found.
fn refused(spec: &str, e: &Error) -> Fail {
    let words = format!("--layer {}: {e}", volary::escape(spec.as_bytes()));
    match e.kind() {
        Kind::Invalid | Kind::NotFound | Kind::NotDir | Kind::Unsupported => Fail::usage(words),
        _ => Fail::new(Exit::Failed, words),
    }
}

/// This host, for layers over a volume.
struct Host {
    volume: String,
}

impl Outside for Host {
    fn trace(&self, line: &str) {
        crate::log::say(&format!("{line}\n"));
    }

    fn append(&self, path: &str) -> Result<Box<dyn Write + Send>> {
        let file = crate::written::open_to_append(path.as_ref());
        Ok(Box::new(file.map_err(|e| of_host(path, &e))?))
    }

    fn pace(&self) -> Result<Arc<dyn Pace>> {
        Ok(Arc::new(Clock::new()))
    }

    fn passphrase(&self, path: Option<&str>, is_new: bool) -> Result<Vec<u8>> {
        let given = || {
            // Before VOLARY_CRYPT_PASSPHRASE there was, passphrases were in the second.
            let mut all = ["VOLARY_CRYPT_PASSPHRASE", "VOLARY_PASSWORD"].map(std::env::var_os);
            let found = all
                .iter_mut()
                .find_map(|words| words.take_if(|w| !w.is_empty()));
            found.map(OsStringExt::into_vec)
        };
        let words = match path {
            Some(path) => volary::passphrase_in(path)?,
            None => match given() {
                Some(words) => words,
                // Nothing was changed so far.
                None => interrupt::killed_while(|| ask(&self.volume, is_new))?,
            },
        };
        if words.is_empty() {
            return Err(Error::note(Kind::Invalid, NO_PASSPHRASE));
        }
        Ok(words)
    }

    fn random(&self, bytes: &mut [u8]) -> Result<()> {
        getrandom::fill(bytes).map_err(|e| Error::note(Kind::Io, format!("random numbers: {e}")))
    }
}

const NO_PASSPHRASE: &str = "no passphrase; set VOLARY_CRYPT_PASSPHRASE, or name a file that \
                             holds it: crypt=passphrase-file=FILE";

/// Asks for a passphrase at the terminal, without echo; twice for a new one.
///
/// # Errors
/// `Invalid` if standard input is no terminal, or the two answers differ.
fn ask(volume: &str, is_new: bool) -> Result<Vec<u8>> {
    // A script that feeds standard input does not expect a question.
    if !std::io::stdin().is_terminal() {
        return Err(Error::note(Kind::Invalid, NO_PASSPHRASE));
    }
    let read = |words: String| {
        let failed = |e| Error::note(Kind::Invalid, format!("no passphrase: {e}"));
        rpassword::prompt_password(words).map_err(failed)
    };
    let words = if is_new {
        "New passphrase"
    } else {
        "Passphrase"
    };
    let first = read(format!("{words} of {volume}: "))?;
    if is_new && read(format!("{words} of {volume}, again: "))? != first {
        return Err(Error::note(Kind::Invalid, "the passphrases differ"));
    }
    Ok(first.into_bytes())
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
    fn new() -> Self {
        Self(crate::clock::instant())
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
