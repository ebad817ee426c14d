//! What a command needs of this host once it goes on by itself.

use std::path::{Path, PathBuf};
use volary::layers::Audit;
use volary::{Options, Source};

/// What may be done with a file, or with all that is in a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum May {
    Read,
    /// Read and, if it is a device, ask about.
    Look,
    /// Read, write and control, and no more: nothing is made or removed.
    Change,
    /// Make, replace and remove files in it, unread.
    Keep,
    /// All but to run programs.
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

/// What every process reads: facts about itself and the host, which are no secrets. Landlock keeps
/// what is about other processes' memory and descriptors from it.
const FACTS: [&str; 3] = ["/proc", "/sys/fs/cgroup", "/etc/login.defs"];

/// By what names of hosts are looked up.
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
    /// What every command needs.
    pub(crate) fn new() -> Self {
        let mut needs = Self::default();
        for path in FACTS {
            needs.add(path, May::Read);
        }
        // By which a panic says where it was.
        if let Ok(program) = std::env::current_exe() {
            needs.add(program, May::Read);
        }
        needs.add("/dev/urandom", May::Read);
        needs.add("/dev/null", May::Change);
        needs
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
        // One over another keeps what it fetches.
        self.source(source, read_only && all.get("remote").is_none());
        // One that is none is refused when the volume is opened.
        if let Some(Ok(remote)) = all.get("remote").map(|r| Source::parse(r.as_bytes())) {
            self.source(&remote, true);
        }
        for layer in layers {
            match layer.split_once('=') {
                Some(("audit", words)) => {
                    // What makes no sense is refused when the layer is made.
                    if let Ok(file) = Audit::file_of(words) {
                        self.appended(Path::new(file));
                    }
                }
                Some(("crypt", file)) if !file.is_empty() => {
                    let named = file.strip_prefix("passphrase-file=");
                    self.add(named.unwrap_or(file), May::Read);
                }
                // Who is asked for a passphrase writes it there.
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
            Source::Nfs(_) => {
                self.calls_out = true;
                RESOLVER.iter().for_each(|path| self.add(path, May::Read));
            }
        }
    }

    /// A file that is written to its end, and made if it is not there: now, since a rule holds
    /// for files that there are.
    pub(crate) fn appended(&mut self, file: &Path) {
        use std::os::unix::fs::OpenOptionsExt;
        let mut how = std::fs::OpenOptions::new();
        // Whoever opens it again says what was wrong.
        let _ = how.append(true).create(true).mode(0o600).open(file);
        self.add(file, May::Change);
    }

    /// A directory in which files are made and replaced, and read at the next start only.
    pub(crate) fn kept_in(&mut self, path: &Path) {
        self.add(path, May::Keep);
    }

    /// A server of NFS at this port; it is free to choose one if that is 0.
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
