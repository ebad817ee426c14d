//! What a command needs of this host once it goes on by itself.

use crate::registry::registry;
use std::path::{Path, PathBuf};
use volary::layers::Audit;
use volary::{Options, Source};

/// What may be done with a file, or with all that is in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    Read,
    /// Read, and query if it is a device.
    Look,
    /// Read, write and control, and no more: nothing is made or removed.
    Change,
    /// Make, replace and remove files in the directory, but not read them.
    Keep,
    /// Everything but running programs.
    All,
}

/// Files, directories and sockets that are needed. All else is refused.
#[derive(Debug, Default)]
pub(crate) struct Needs {
    pub(super) paths: Vec<(PathBuf, May)>,
    /// Ports that it listens on.
    pub(super) ports: Vec<u16>,
    /// It calls clients back, over TCP.
    pub(super) calls_back: bool,
    /// It is a client of servers, whose names it looks up.
    pub(super) calls_out: bool,
    /// It accepts connections, and asks the kernel whose they are.
    pub(super) listens: bool,
}

/// What every process reads: facts about itself and the host, none of them secret. Landlock denies
/// other processes' memory and descriptors, which are in `/proc` as well.
const FACTS: [&str; 5] = [
    "/proc",
    "/sys/fs/cgroup",
    "/sys/block",
    "/sys/devices/virtual/block",
    "/etc/login.defs",
];

/// What the resolver reads to look up the name of a host.
const RESOLVER: [&str; 13] = [
    "/etc/resolv.conf",
    "/etc/hosts",
    "/etc/host.conf",
    "/etc/nsswitch.conf",
    "/etc/gai.conf",
    "/etc/services",
    "/etc/ld.so.cache",
    "/run/systemd/resolve",
    "/run/resolvconf",
    "/lib",
    "/lib64",
    "/usr/lib",
    "/usr/lib64",
];

impl Needs {
    /// Returns what every command needs.
    pub(crate) fn new() -> Self {
        let mut needs = Self::default();
        for path in FACTS {
            needs.add(path, May::Read);
        }
        // The backtrace of a panic needs its symbols.
        if let Ok(program) = std::env::current_exe() {
            needs.add(program, May::Read);
        }
        needs.add("/dev/urandom", May::Read);
        needs.add("/dev/null", May::Change);
        needs
    }

    /// Returns whether a directory of the host is served, and may be changed.
    pub(super) fn has_tree(&self) -> bool {
        self.paths.iter().any(|(_, may)| *may == May::All)
    }

    fn add(&mut self, path: impl AsRef<Path>, may: May) {
        self.paths.push((path.as_ref().to_owned(), may));
    }

    /// A volume, opened with `options` (texts of `-o`) and under `layers`.
    pub(crate) fn volume(
        &mut self,
        source: &Source,
        options: &[String],
        layers: &[String],
        read_only: bool,
    ) {
        let mut all = Options::new();
        options.iter().for_each(|text| all.add(text));
        // A volume over a remote one stores what it fetches.
        self.source(source, read_only && all.get("remote").is_none());
        // A text that names no volume is refused when the volume is opened.
        if let Some(Ok(remote)) = all.get("remote").map(|r| registry().source(r.as_bytes())) {
            self.source(&remote, true);
        }
        for layer in layers {
            self.declared(registry().layer_needs(layer), read_only);
            match layer.split_once('=') {
                Some(("audit", words)) => {
                    // Wrong words are refused when the layer is made.
                    if let Ok(file) = Audit::file_of(words) {
                        self.appended(Path::new(file));
                    }
                }
                Some(("crypt", file)) if !file.is_empty() => {
                    let named = file.strip_prefix("passphrase-file=");
                    self.add(named.unwrap_or(file), May::Read);
                }
                // The passphrase is asked for at the terminal.
                _ if layer.starts_with("crypt") => self.add("/dev/tty", May::Change),
                _ => {}
            }
        }
    }

    fn source(&mut self, source: &Source, read_only: bool) {
        match source {
            Source::Image { path, .. } if read_only => self.add(path, May::Look),
            Source::Image { path, .. } => self.add(path, May::Change),
            Source::Host { path } if read_only => self.add(path, May::Read),
            Source::Host { path } => self.add(path, May::All),
            Source::Memory { .. } => {}
            Source::Nfs(_) => self.calls_out(),
            Source::Scheme { name, rest } => {
                let scheme = registry().scheme(name);
                let needs = scheme.map(|scheme| scheme.needs_of(rest));
                self.declared(needs.unwrap_or_default(), read_only);
            }
        }
    }

    /// A client of servers.
    fn calls_out(&mut self) {
        self.calls_out = true;
        RESOLVER.iter().for_each(|path| self.add(path, May::Read));
    }

    /// What a scheme or a layer says that it needs. Of a volume that is only read, what it would change is read.
    fn declared(&mut self, needs: volary::Needs, read_only: bool) {
        let change = match read_only {
            true => May::Read,
            false => May::All,
        };
        for path in needs.changes {
            match path.is_dir() || read_only {
                true => self.add(path, change),
                false => self.add(path, May::Change),
            }
        }
        needs
            .reads
            .iter()
            .for_each(|path| self.add(path, May::Read));
        if needs.network {
            self.calls_out();
        }
    }

    /// A file that is appended to. Makes it now if it is missing, because a rule of Landlock needs a
    /// file that exists.
    pub(crate) fn appended(&mut self, file: &Path) {
        use std::os::unix::fs::OpenOptionsExt;
        let mut how = std::fs::OpenOptions::new();
        // Opening it for use reports the error.
        let _ = how.append(true).create(true).mode(0o600).open(file);
        self.add(file, May::Change);
    }

    /// A directory in which files are made and replaced, and read at the next start only.
    pub(crate) fn kept_in(&mut self, path: &Path) {
        self.add(path, May::Keep);
    }

    /// An NFS server at this port; 0 lets it choose one.
    pub(crate) fn nfs(&mut self, port: u16) {
        self.listens_on(port);
        self.calls_back = true;
    }

    /// A server at this port.
    pub(crate) fn listens_on(&mut self, port: u16) {
        self.listens = true;
        self.ports.push(port);
    }

    /// The kernel's requests to a mount.
    pub(crate) fn fuse(&mut self) {
        self.add("/dev/fuse", May::Change);
    }
}
