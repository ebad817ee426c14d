//! Schemes: sources that a program adds.

use crate::names::{bad_name, check_name, taken};
use crate::opened::{Opened, told};
use std::path::PathBuf;
use std::sync::Arc;
use volary_core::{Attach, OptionSpec, Options, Result, Time};

/// The schemes that are built in.
const BUILT_IN: [&str; 3] = ["mem", "host", "nfs"];

type Open = dyn Fn(&[u8], &Attach, Time) -> Result<Opened> + Send + Sync;
type Of<T> = Box<dyn Fn(&[u8]) -> T + Send + Sync>;
type Before = dyn Fn(&[u8], &Options) -> Result<()> + Send + Sync;

/// A source that a program adds: `NAME:REST`, wherever a volume is expected.
pub struct Scheme {
    name: &'static str,
    rest: &'static str,
    help: &'static str,
    options: &'static [OptionSpec],
    open: Box<Open>,
    needs: Of<Needs>,
    before: Box<Before>,
    label: Of<Option<String>>,
}

/// The schemes that a program adds to the built-in ones.
#[derive(Clone, Default)]
pub(crate) struct Schemes(Vec<Arc<Scheme>>);

impl Schemes {
    pub(crate) fn all(&self) -> impl Iterator<Item = &Scheme> {
        self.0.iter().map(|scheme| &**scheme)
    }

    /// # Errors
    /// As [`Registry::add_scheme`](crate::Registry::add_scheme).
    pub(crate) fn add(&mut self, scheme: Scheme) -> Result<()> {
        let name = scheme.name();
        check_name("the scheme", name)?;
        if name.len() < 2 || name.contains(['.', '_']) {
            return Err(bad_name("the scheme", name));
        }
        let is_taken = self.all().any(|other| other.name() == name);
        if is_taken || BUILT_IN.contains(&name) {
            return Err(taken("the scheme", name));
        }
        self.0.push(Arc::new(scheme));
        Ok(())
    }
}

/// What an opened scheme or layer needs of this host, in a program that gives up all other rights
/// (`volary serve`, `volary mount`). Everything else is refused: files by Landlock, sockets and
/// programs by seccomp.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// Files to read, and directories to read with all below them. They must exist already.
    pub reads: Vec<PathBuf>,
    /// Files to change, and directories in which everything may be made, changed and removed.
    pub changes: Vec<PathBuf>,
    /// Whether it connects to servers by TCP, and looks up their names.
    pub network: bool,
}

impl Scheme {
    /// Returns a scheme that `open` opens. `open` gets the text after the colon, without the user's
    /// backslashes, how to attach, and the time.
    pub fn new<O: Into<Opened>>(
        name: &'static str,
        open: impl Fn(&[u8], &Attach, Time) -> Result<O> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            rest: "...",
            help: "",
            options: &[],
            open: Box::new(move |rest, how, now| open(rest, how, now).map(Into::into)),
            needs: Box::new(|_| Needs::default()),
            before: Box::new(|_, _| Ok(())),
            label: Box::new(last_part),
        }
    }

    /// Sets the help: what follows the colon, and what the scheme is. `FILE`, "the keys of a file".
    #[must_use]
    pub fn help(mut self, rest: &'static str, help: &'static str) -> Self {
        (self.rest, self.help) = (rest, help);
        self
    }

    /// Sets the scheme's own options, which may be in [`Attach::options`]. Others are refused.
    #[must_use]
    pub fn options(mut self, options: &'static [OptionSpec]) -> Self {
        self.options = options;
        self
    }

    /// Sets what the scheme needs of this host for a text after the colon.
    #[must_use]
    pub fn needs(mut self, needs: impl Fn(&[u8]) -> Needs + Send + Sync + 'static) -> Self {
        self.needs = Box::new(needs);
        self
    }

    /// Sets what to do before the program gives up its rights, such as starting another program.
    /// The function gets the text after the colon, and the options. It is called once for each
    /// volume that is opened, also by programs that give up nothing. It must start no thread, as a
    /// thread would keep all rights.
    #[must_use]
    pub fn before(
        mut self,
        before: impl Fn(&[u8], &Options) -> Result<()> + Send + Sync + 'static,
    ) -> Self {
        self.before = Box::new(before);
        self
    }

    /// Sets how a volume is labelled for a text after the colon. The default is the last part of a
    /// path in it.
    #[must_use]
    pub fn label(
        mut self,
        label: impl Fn(&[u8]) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.label = Box::new(label);
        self
    }

    /// Returns the scheme's name, without the colon.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the scheme's name and help, for a list of schemes.
    pub fn spec(&self) -> OptionSpec {
        OptionSpec {
            name: self.name,
            value: self.rest,
            help: self.help,
        }
    }

    /// Returns the scheme's own options.
    pub fn own_options(&self) -> &'static [OptionSpec] {
        self.options
    }

    /// Returns what the scheme needs of this host.
    pub fn needs_of(&self, rest: &[u8]) -> Needs {
        (self.needs)(rest)
    }

    /// Returns a label for a volume of the scheme.
    pub fn label_of(&self, rest: &[u8]) -> String {
        (self.label)(rest).unwrap_or_else(|| self.name.into())
    }

    /// Does what must be done before the program gives up its rights.
    ///
    /// # Errors
    /// Those of the scheme's function.
    pub fn prepare(&self, rest: &[u8], options: &Options) -> Result<()> {
        (self.before)(rest, options)
    }

    /// Opens a volume.
    ///
    /// # Errors
    /// `Invalid` for an option that the scheme does not have; the scheme's own errors.
    pub(crate) fn open(&self, rest: &[u8], how: &Attach, now: Time) -> Result<Opened> {
        let how = told(how, self.options)?;
        how.options.check_known(self.options)?;
        (self.open)(rest, &how, now)
    }
}

fn last_part(rest: &[u8]) -> Option<String> {
    let last = rest.rsplit(|&b| b == b'/').find(|part| !part.is_empty())?;
    Some(String::from_utf8_lossy(last).into_owned())
}

impl std::fmt::Debug for Scheme {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Scheme").field(&self.name).finish()
    }
}
