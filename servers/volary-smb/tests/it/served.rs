//! [`Served`]: a server on a port of its own, for one test.

use std::net::{Ipv4Addr, TcpListener};
use std::process::{Command, Output};
use std::thread::{self, JoinHandle};
use std::time::{Duration, SystemTime};
use volary_core::{Caps, Cred, Time};
use volary_mem::{Mem, MemOptions};
use volary_session::{Volume, VolumeOptions};
use volary_smb::{Config, Dialect, Server, Share, User};

#[expect(clippy::disallowed_methods, reason = "where time comes in")]
pub(crate) fn now() -> Time {
    SystemTime::now().into()
}

/// Returns the shares `share`, `crypt` (encrypted) and `fixed` (read-only) for the user
/// `tester` with the password `pass`.
pub(crate) fn config() -> Config {
    let mut config = Config::new("VOLARY", now);
    config.users = vec![User::with_password("tester", "pass", Cred::new(1000, 1000))];
    let share = |name: &str, read_only, encrypt| {
        let options = MemOptions {
            uid: 1000,
            gid: 1000,
            caps: MemOptions::default().caps.without(Caps::CASE_SENSITIVE),
            ..MemOptions::default()
        };
        let fs = Mem::attach(options, now()).expect("a volume");
        Share {
            read_only,
            encrypt,
            ..Share::new(name, Volume::new(fs, VolumeOptions::new(name, now)))
        }
    };
    config.shares = vec![
        share("share", false, false),
        share("crypt", false, true),
        share("fixed", true, false),
    ];
    config.min_dialect = Dialect::Smb202;
    config.limits.failed_logon_delay = Duration::ZERO;
    config
}

/// A server that serves until it is dropped.
pub(crate) struct Served {
    pub(crate) port: u16,
    pub(crate) server: Server,
    thread: Option<JoinHandle<()>>,
}

impl Served {
    pub(crate) fn new(config: Config) -> Self {
        let server = Server::new(config).expect("a server");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let serving = server.clone();
        let thread = thread::spawn(move || serving.serve(&listener).expect("serving"));
        Self {
            port,
            server,
            thread: Some(thread),
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.server.stop();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("the server's end");
        }
        assert_eq!(self.server.connection_count(), 0);
    }
}

/// Runs a program: what it printed, and whether it was content.
pub(crate) fn run(command: &mut Command) -> (String, bool) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().expect("a program that runs");
    let printed = [stdout, stderr].concat();
    let printed = String::from_utf8_lossy(&printed).into_owned();
    (printed, status.success())
}
