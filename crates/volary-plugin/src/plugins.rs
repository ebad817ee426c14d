//! Opens the volume that a user names: finds the library, and decides how to run it.

use crate::library::Library;
use crate::process::{Helper, Remote, Spec, Terms, Zygote};
use parking_lot::Mutex;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use volary_core::{Attach, Cancel, Cred, Ctx, Error, Fs, Kind, OptionSpec, Options, Result, Time};

/// The default limit for the time of a call.
const LIMIT: Duration = Duration::from_secs(30);

/// Options that every volume of a plug-in has.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "plugin-in-process",
        value: "",
        help: "run the plug-in in this process: faster, and what it does wrong, this process does",
    },
    OptionSpec {
        name: "plugin-timeout",
        value: "SECONDS",
        help: "end the plug-in's process when a call takes longer (default 30)",
    },
];

/// The parts of a plug-in's name: `foo?config`, `/path/libfoo.so?name=NAME&config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    /// A path if it has a slash, otherwise a name.
    library: Vec<u8>,
    /// The name of one of the library's file systems; empty for its first.
    name: Vec<u8>,
    config: Vec<u8>,
}

impl Words {
    /// Returns a label for a volume: the library's name without `lib` and `.so`.
    pub fn label(&self) -> String {
        let file = self
            .library
            .rsplit(|&b| b == b'/')
            .next()
            .unwrap_or_default();
        let name = file.strip_prefix(b"lib").unwrap_or(file);
        let name = name.strip_suffix(b".so").unwrap_or(name);
        String::from_utf8_lossy(name).into_owned()
    }

    /// Parses the text after `plugin:`.
    ///
    /// # Errors
    /// `Invalid` for an empty name.
    pub fn parse(text: &[u8]) -> Result<Self> {
        let mut parts = text.splitn(2, |&b| b == b'?');
        let library = parts.next().unwrap_or_default().to_vec();
        let rest = parts.next().unwrap_or_default();
        if library.is_empty() {
            let words = "no name of a plug-in; write plugin:NAME, or plugin:/path/libNAME.so";
            return Err(Error::note(Kind::Invalid, words));
        }
        let (name, config) = match rest.strip_prefix(b"name=") {
            None => (&[][..], rest),
            Some(named) => match named.iter().position(|&b| b == b'&') {
                None => (named, &[][..]),
                Some(at) => (
                    named.get(..at).unwrap_or_default(),
                    named.get(at + 1..).unwrap_or_default(),
                ),
            },
        };
        Ok(Self {
            library,
            name: name.to_vec(),
            config: config.to_vec(),
        })
    }
}

/// The plug-ins of this process. Its command line sets them, once.
static PLUGINS: OnceLock<Plugins> = OnceLock::new();

/// Sets the plug-ins of this process, which [`open`] uses. Only the first call counts.
pub fn install(plugins: Plugins) {
    let _ = PLUGINS.set(plugins);
}

/// Returns the plug-ins of this process. Without [`install`], they must be named by a path and run
/// in this process.
pub fn installed() -> &'static Plugins {
    PLUGINS.get_or_init(Plugins::default)
}

/// Opens a volume by the plug-ins of this process.
///
/// # Errors
/// As [`Plugins::open`].
pub fn open(words: &[u8], attach: &Attach, now: Time) -> Result<Fs> {
    installed().open(words, attach, now)
}

/// Where to look for plug-ins, and how to run them.
#[derive(Debug, Default)]
pub struct Plugins {
    /// Libraries that the user named.
    libraries: Vec<PathBuf>,
    /// Directories to search for a name without a path.
    dirs: Vec<PathBuf>,
    /// The program that runs a plug-in in a separate process. Without it, plug-ins run only in this
    /// process, and only if the user asks for that.
    helper: Option<Helper>,
    in_process: bool,
    ready: Mutex<Vec<Zygote>>,
}

impl Plugins {
    /// Returns settings without libraries, by which plug-ins can only run in this process.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes plug-ins run in processes that `helper` starts.
    #[must_use]
    pub fn with_helper(mut self, helper: Helper) -> Self {
        self.helper = Some(helper);
        self
    }

    /// Adds a library: the name `foo` stands for `libfoo.so` from now on.
    #[must_use]
    pub fn with_library(mut self, path: impl Into<PathBuf>) -> Self {
        self.libraries.push(path.into());
        self
    }

    /// Adds a directory to search.
    #[must_use]
    pub fn with_dir(mut self, path: impl Into<PathBuf>) -> Self {
        self.dirs.push(path.into());
        self
    }

    /// Sets whether all plug-ins run in this process.
    #[must_use]
    pub fn in_process(mut self, is_so: bool) -> Self {
        self.in_process = is_so;
        self
    }

    /// Starts the process from which the workers of one volume will be forked, before the caller
    /// gives up the right to start processes. The next [`open`](Self::open) uses it.
    ///
    /// If the plug-in will run in this process, also by the volume's `options`, loads its library
    /// instead, as the caller may not be able to read it later.
    ///
    /// # Errors
    /// `Invalid` for an empty name, or a malformed option; `Io` if the process cannot be started;
    /// those of the library.
    pub fn prepare(&self, words: &[u8], options: &Options) -> Result<()> {
        let words = Words::parse(words)?;
        if options.flag("plugin-in-process", self.in_process)? {
            let library = self.find(&words.library)?;
            return Library::load(&absolute(&library)).map(drop);
        }
        if self.helper.is_none() {
            return Ok(());
        }
        let zygote = self.zygote()?;
        self.ready.lock().push(zygote);
        Ok(())
    }

    fn zygote(&self) -> Result<Zygote> {
        let Some(helper) = &self.helper else {
            let words = "no program was named that runs plug-ins in a process of their own; ask \
                         for plugin-in-process, or name one";
            return Err(Error::note(Kind::Unsupported, words));
        };
        Zygote::start(helper).map_err(|e| {
            let program = volary_core::escape(helper.program.as_os_str().as_bytes());
            Error::note(Kind::Io, format!("{program}, which runs plug-ins: {e}"))
        })
    }

    /// Opens a volume of the plug-in that `words` name: the text after `plugin:`.
    ///
    /// # Errors
    /// `NotFound`, `Invalid` for names, options and libraries; `Unsupported` for another version;
    /// the plug-in's own; `Io` for one that ends, or returns something impossible.
    pub fn open(&self, words: &[u8], attach: &Attach, now: Time) -> Result<Fs> {
        let words = Words::parse(words)?;
        let mut options = attach.options.clone();
        let in_process = options.flag("plugin-in-process", self.in_process)?;
        let limit = options.seconds("plugin-timeout")?;
        for known in OPTIONS {
            options.take(known.name);
        }
        options.also_known(OPTIONS);
        options.check_known(&[])?;
        let library = self.find(&words.library)?;
        if in_process {
            return in_this_process(&library, &words, attach, now);
        }
        let spec = Spec {
            library: absolute(&library).into_os_string().into_vec(),
            name: words.name,
            config: words.config,
            read_only: attach.read_only,
            memory: attach.memory,
            uid: attach.uid,
            gid: attach.gid,
            umask: attach.umask,
            now,
        };
        let terms = Terms {
            limit: limit.unwrap_or(LIMIT).max(Duration::from_millis(10)),
            shown: volary_core::escape(&words.library).to_string(),
        };
        let ready = self.ready.lock().pop();
        let zygote = ready.map_or_else(|| self.zygote(), Ok)?;
        Ok(Arc::new(Remote::attach(zygote, spec, terms)?))
    }

    /// Returns the path of the library that a name or a path stands for.
    fn find(&self, library: &[u8]) -> Result<PathBuf> {
        if library.contains(&b'/') {
            return Ok(PathBuf::from(OsStr::from_bytes(library)));
        }
        let mut file = OsString::from("lib");
        file.push(OsStr::from_bytes(library));
        file.push(".so");
        let is_it = |path: &&PathBuf| path.file_name() == Some(&file);
        if let Some(found) = self.libraries.iter().find(is_it) {
            return Ok(found.clone());
        }
        let mut places = self.dirs.iter().map(|dir| dir.join(&file));
        places.find(|path| path.exists()).ok_or_else(|| {
            let places: Vec<_> = self.dirs.iter().map(|dir| dir.display()).collect();
            let file = volary_core::escape(file.as_bytes());
            let mut words = format!("there is no plug-in {file}");
            for place in &places {
                words += &format!(", neither in {place}");
            }
            words += "; name its path: plugin:/path/libNAME.so, or --plugin libNAME.so";
            Error::note(Kind::NotFound, words)
        })
    }
}

/// Returns a path that is valid in another process. It has a slash, as the loader would search for
/// a path without one.
fn absolute(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

fn in_this_process(library: &Path, words: &Words, attach: &Attach, now: Time) -> Result<Fs> {
    let library = Library::load(&absolute(library))?;
    let cx = Ctx {
        cred: &Cred::new(attach.uid, attach.gid),
        now,
        cancel: &Cancel::new(),
    };
    let volume = library.attach(&words.name, &words.config, attach, &cx)?;
    Ok(volume.fs)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_name_a_library_a_file_system_and_a_configuration() {
        for (text, library, name, config) in [
            ("foo", "foo", "", ""),
            ("foo?a=b&c", "foo", "", "a=b&c"),
            ("/x/libfoo.so?name=bar", "/x/libfoo.so", "bar", ""),
            (
                "/x/libfoo.so?name=bar&path=/y?z",
                "/x/libfoo.so",
                "bar",
                "path=/y?z",
            ),
            ("foo?path=x&name=y", "foo", "", "path=x&name=y"),
        ] {
            let words = Words::parse(text.as_bytes()).unwrap();
            let expected = (library.as_bytes(), name.as_bytes(), config.as_bytes());
            let found = (&words.library[..], &words.name[..], &words.config[..]);
            assert_eq!(found, expected, "{text}");
        }
        assert_eq!(Words::parse(b"/x/libfoo.so?y").unwrap().label(), "foo");
        assert_eq!(Words::parse(b"?x").unwrap_err(), Kind::Invalid);
    }
}
