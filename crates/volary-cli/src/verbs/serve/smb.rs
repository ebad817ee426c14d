//! SMB beside NFS: who may log on, and the server's thread.

use super::deaths::Deaths;
use crate::clock;
use crate::exit::{Done, Exit, Fail, words};
use rustix::process::geteuid;
use std::fs::File;
use std::io::Read;
use std::net::{SocketAddr, TcpListener};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread::JoinHandle;
use volary::smb::{Config, Dialect, Limits, NtHash, Server, Share, User};
use volary::{Cred, Users, escape, same_name};

/// Longest list of users that is read, in bytes; more than there may be.
const USERS_MAX: u64 = 2 << 20;
/// Longest name of a user (MS-SAMR has 20 for accounts, others more).
const USER_MAX: usize = 256;
/// Longest name of a share (MS-SMB2 3.3.1.6 leaves it to MS-SRVS, 80).
const NAME_MAX: usize = 80;

/// What messages must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Protect {
    Signed,
    Encrypted,
    /// Neither: whoever is on the way can read them and change them.
    #[value(name = "none")]
    #[serde(rename = "none")]
    Nothing,
}

/// The oldest SMB dialect that the server accepts (`--smb-min`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize)]
pub(super) enum SmbMin {
    #[value(name = "2.0.2")]
    #[serde(rename = "2.0.2")]
    Smb202,
    #[value(name = "2.1")]
    #[serde(rename = "2.1")]
    Smb210,
    #[value(name = "3.0")]
    #[serde(rename = "3.0")]
    Smb300,
    #[value(name = "3.0.2")]
    #[serde(rename = "3.0.2")]
    Smb302,
    #[value(name = "3.1.1")]
    #[serde(rename = "3.1.1")]
    Smb311,
}

impl From<SmbMin> for Dialect {
    fn from(min: SmbMin) -> Self {
        match min {
            SmbMin::Smb202 => Self::Smb202,
            SmbMin::Smb210 => Self::Smb210,
            SmbMin::Smb300 => Self::Smb300,
            SmbMin::Smb302 => Self::Smb302,
            SmbMin::Smb311 => Self::Smb311,
        }
    }
}

/// Where to serve, to whom, and how.
pub(super) struct Smb {
    pub(super) address: SocketAddr,
    pub(super) users: Vec<User>,
    /// Signed if it is `None`, and encrypted to others than this host.
    pub(super) protect: Option<Protect>,
    pub(super) min: Option<SmbMin>,
}

/// A server that runs.
pub(super) struct Running {
    server: Server,
    thread: JoinHandle<std::io::Result<()>>,
    pub(super) address: SocketAddr,
}

impl Running {
    /// Lets it end, and waits for it.
    ///
    /// # Errors
    /// Those of the listener.
    pub(super) fn stop(self) -> Done {
        self.server.stop();
        let panicked = |_| Err(std::io::Error::other("the server's thread has panicked"));
        let ended = self.thread.join().unwrap_or_else(panicked);
        ended.map_err(|e| Fail::host(self.address, e))
    }
}

/// Returns who may log on: those of a file, and one with a password, who is `who` on the volumes, and
/// whom the server runs as.
///
/// # Errors
/// Of the command line: of the file, as [`read`]; for a name that is none, or stands in the file, in
/// whatever case; for a password that is missing; if nobody could log on.
pub(super) fn users(file: Option<&Path>, one: Option<&str>, who: Cred) -> Done<Vec<User>> {
    let mut users = match file {
        Some(path) => read(path, who.uid)?,
        None => Vec::new(),
    };
    if let Some(name) = one {
        check_user("--user", name)?;
        if let Some(user) = users.iter().find(|user| is_called(user, name)) {
            return Err(Fail::usage(format!(
                "--user: '{}' is in the file of users as well; leave out one of the two",
                escape(user.name.as_bytes())
            )));
        }
        let password = password(name)?;
        users.push(User::with_password(name, &password, who));
    }
    if users.is_empty() {
        return Err(Fail::usage(
            "--smb: nobody could log on; name a user (--user NAME) or a file of them (--users FILE)",
        ));
    }
    Ok(users)
}

fn password(name: &str) -> Done<String> {
    match std::env::var("VOLARY_PASSWORD") {
        Ok(password) if !password.is_empty() => Ok(password),
        _ => Err(Fail::usage(format!(
            "--user: no password for {}; set VOLARY_PASSWORD",
            escape(name.as_bytes())
        ))),
    }
}

/// Reads the file of users for a server that runs as `uid`.
///
/// # Errors
/// Of the command line: the host's; for a file of a user who could change it, and is not trusted, or
/// on which others have rights; for a line that makes no sense.
fn read(path: &Path, uid: u32) -> Done<Vec<User>> {
    let shown = volary::escape(path.as_os_str().as_bytes()).to_string();
    let fail = |e: std::io::Error| Fail::usage(format!("{shown}: {}", words(&e)));
    let file = File::open(path).map_err(fail)?;
    let meta = file.metadata().map_err(fail)?;
    let owner = meta.uid();
    if ![0, geteuid().as_raw(), uid].contains(&owner) {
        return Err(Fail::usage(format!(
            "{shown}: belongs to user {owner}, who could let anybody log on; chown it to who runs \
             the server"
        )));
    }
    let mut text = Vec::new();
    file.take(USERS_MAX).read_to_end(&mut text).map_err(fail)?;
    let users =
        Users::parse(&text, meta.mode()).map_err(|e| Fail::usage(format!("{shown}: {e}")))?;
    for user in users.iter() {
        check_user(&shown, &user.name)?;
    }
    let with_hash = users.iter().filter_map(|user| {
        Some(User {
            name: user.name.clone(),
            nt_hash: NtHash::from_bytes(user.nt_hash?),
            cred: user.cred.clone(),
        })
    });
    Ok(with_hash.collect())
}

/// Whether a client could log on by this name: Windows takes what stands before a
/// backslash for a domain, and has none of the others in names.
///
/// # Errors
/// Of the command line.
fn check_user(option: &str, name: &str) -> Done {
    let bad = |c: char| c.is_control() || r#"\/[]:;|=,+*?<>""#.contains(c);
    let len = name.chars().count();
    if len == 0 || len > USER_MAX || name.contains(bad) {
        return Err(Fail::usage(format!(
            "{option}: '{}' is no name of a user",
            escape(name.as_bytes())
        )));
    }
    Ok(())
}

/// Returns whether it is the user of this name, in whatever case.
pub(super) fn is_called(user: &User, name: &str) -> bool {
    same_name(user.name.as_bytes(), name.as_bytes())
}

/// Whether a volume can be a share of this name.
///
/// # Errors
/// Of the command line.
pub(super) fn check_name(name: &str) -> Done {
    let bad = |c: char| c.is_control() || r#"\/[]:|<>+=;,*?""#.contains(c);
    let taken = name.eq_ignore_ascii_case("ipc$");
    if name.chars().count() > NAME_MAX || name.contains(bad) || taken {
        return Err(Fail::usage(format!(
            "'{}' is no name of a share; give the volume another in a configuration file",
            escape(name.as_bytes())
        )));
    }
    Ok(())
}

/// Serves the shares. A user has `opens_max` opens at most, or what is usual.
///
/// # Errors
/// Of listening there.
pub(super) fn start(
    plan: Smb,
    shares: Vec<Share>,
    opens_max: Option<usize>,
    deaths: &Deaths,
) -> Done<Running> {
    let address = plan.address;
    let fail = |e: std::io::Error| {
        let advice = match e.kind() {
            std::io::ErrorKind::AddrInUse => "; another port: --smb PORT",
            std::io::ErrorKind::AddrNotAvailable => "; that is no address of this host",
            std::io::ErrorKind::PermissionDenied => "; ports below 1024 are root's",
            _ => "; SMB cannot be served there",
        };
        Fail::new(Exit::Failed, format!("{address}: {}{advice}", words(&e)))
    };
    let listener = TcpListener::bind(address).map_err(fail)?;
    let bound = listener.local_addr().map_err(fail)?;
    let to_others = !address.ip().is_loopback();
    let usual = if to_others {
        Protect::Encrypted
    } else {
        Protect::Signed
    };
    let protect = plan.protect.unwrap_or(usual);
    let usual = Limits::default();
    let limits = Limits {
        opens: opens_max.map_or(usual.opens, |max| max.min(usual.opens)),
        ..usual
    };
    let config = Config {
        limits,
        users: plan.users,
        shares,
        signing_required: protect != Protect::Nothing,
        encryption_required: protect == Protect::Encrypted,
        ..Config::new("VOLARY", clock::now)
    };
    let config = Config {
        min_dialect: plan.min.map_or(config.min_dialect, Dialect::from),
        ..config
    };
    let server = Server::new(config).map_err(fail)?;
    let running = server.clone();
    let last = deaths.watch("SMB");
    let thread = std::thread::Builder::new()
        .name("smb".into())
        .spawn(move || {
            let _last = last;
            running.serve(&listener)
        })
        .map_err(fail)?;
    Ok(Running {
        server,
        thread,
        address: bound,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_could_log_on_by_are_refused() {
        for good in ["me", "Jürgen", "some.body@example.org", "o'neill-2"] {
            assert!(check_user("--user", good).is_ok(), "{good}");
        }
        let long = "x".repeat(257);
        for bad in ["", "a:b", "DOMAIN\\me", "a/b", "a\nb", &long] {
            assert!(check_user("--user", bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_that_no_client_could_ask_for_are_refused() {
        for good in ["disk", "my_disk-2", "Ärger"] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(81);
        for bad in ["a:b", "a\\b", "IPC$", "a*", &long] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }
}
