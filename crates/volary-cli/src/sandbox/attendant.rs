//! Attendants: this program once more, started before anything is given up, for the one thing that
//! a sandboxed server needs and could not do. Each ends with the server: when its socket closes.
//!
//! - one for each mount: `volary_fuse::attend` says what it does;
//! - one for the groups of this host's users, which can come from files, sockets and other hosts
//!   by whatever `nsswitch.conf` names. It is asked for a number, and answers with numbers;
//! - one for each volume of a plug-in: it forks the process that loads it, again when one ends.

use super::{Level, RunAs, hide_memory};
use crate::exit::{Done, Fail};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use volary::fuse::{Attendant, MountOptions, attend};
use volary::nfs::{Database, cred_of};
use volary::{Cred, Options};

/// The first word of an attendant's command line. It is no option of the command: without a socket
/// as its standard input it does nothing.
const WORD: &str = "--attend";
/// The running program, even if its file was moved or this user cannot reach it.
const PROGRAM: &str = "/proc/self/exe";
/// Groups that are told of a user: as many as Linux lets one have (`NGROUPS_MAX`).
const GROUPS_MAX: usize = 65_536;

/// One that mounts on `dir` with `options` (texts of `-o`); none for one that gives up nothing.
///
/// # Errors
/// Of starting it.
pub(crate) fn for_mount(
    level: Level,
    dir: &Path,
    options: &[String],
) -> Done<Option<Arc<Attendant>>> {
    if level == Level::Off {
        return Ok(None);
    }
    let mut words: Vec<OsString> = vec!["mount".into(), dir.into()];
    words.extend(options.iter().map(Into::into));
    let socket = start(&words, None)?;
    Ok(Some(Arc::new(Attendant::new(socket))))
}

/// One that looks up groups; by this process itself, for one that gives up nothing.
///
/// # Errors
/// Of starting it.
pub(crate) fn for_groups(level: Level, run_as: &RunAs) -> Done<Database> {
    if level == Level::Off {
        return Ok(Database::default());
    }
    let user = run_as.is_another().then(|| run_as.cred());
    let socket = Mutex::new(start(&["groups".into()], user.as_ref())?);
    Ok(Database::new(move |uid| {
        let mut socket = socket.lock().unwrap_or_else(PoisonError::into_inner);
        // A user about whom nothing is found is in no group.
        ask(&mut socket, uid).unwrap_or_else(|_| Cred::new(uid, uid))
    }))
}

/// Returns how a process is started that plug-ins come from: as an attendant, or, from a static build,
/// which can load no library, as the program that comes with it.
pub(crate) fn plugin_helper(run_as: Option<&RunAs>) -> volary::plugin::Helper {
    let other = run_as.filter(|run_as| run_as.is_another());
    let (program, words) = match cfg!(target_feature = "crt-static") {
        true => (plugin_host(), Vec::new()),
        false => (PROGRAM.into(), vec![WORD.into(), "plugin".into()]),
    };
    volary::plugin::Helper {
        program,
        words,
        user: other.map(|other| (other.cred().uid, other.cred().gid)),
    }
}

/// Returns where `volary-plugin-host` is: beside this program, as an archive has it, or where a package
/// has it.
fn plugin_host() -> PathBuf {
    const HOST: &str = "volary-plugin-host";
    let program = std::env::current_exe().unwrap_or_else(|_| "/usr/bin/volary".into());
    let dir = program.parent().unwrap_or(Path::new("/"));
    let packaged = dir.join("../libexec/volary").join(HOST);
    match packaged.exists() {
        true => packaged,
        false => dir.join(HOST),
    }
}

fn start(words: &[OsString], user: Option<&Cred>) -> Done<UnixStream> {
    let fail = |e: io::Error| Fail::host("sandbox", e);
    let (ours, theirs) = UnixStream::pair().map_err(fail)?;
    let mut command = Command::new(PROGRAM);
    command
        .arg0("volary")
        .arg(WORD)
        .args(words)
        // PATH only: passwords in the environment stay here.
        .env_clear()
        .envs(std::env::vars_os().filter(|(name, _)| name == "PATH"))
        .stdin(Stdio::from(OwnedFd::from(theirs)))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        // Ctrl-C must reach the server only, which needs the attendant to unmount.
        .process_group(0);
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command.spawn().map_err(fail)?;
    Ok(ours)
}

/// Runs as an attendant if the command line says so. Returns whether it did.
pub(crate) fn run(words: &[OsString]) -> bool {
    let Some([word, what, rest @ ..]) = words.get(1..) else {
        return false;
    };
    if word != WORD {
        return false;
    }
    // The server learns of an error by the closed socket, or is gone itself.
    let _ = serve(what, rest);
    true
}

fn serve(what: &OsStr, rest: &[OsString]) -> io::Result<()> {
    hide_memory();
    // The name that `ps` shows.
    let _ = rustix::thread::set_name(c"volary-attend");
    // A signal to all processes ends the server; its socket then ends the attendant.
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::default())?;
    }
    let socket = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    match (what.to_str(), rest) {
        (Some("mount"), [dir, given @ ..]) => {
            let mut options = Options::new();
            for text in given.iter().filter_map(|text| text.to_str()) {
                options.add(text);
            }
            let options = MountOptions::from_options(&mut options);
            let options = options.map_err(|_| io::ErrorKind::InvalidInput)?;
            attend(socket, Path::new(dir), &options)
        }
        (Some("groups"), []) => tell_groups(socket),
        (Some("plugin"), []) => volary::plugin::run_zygote(socket),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Answers until the server ends.
///
/// # Errors
/// Those of the socket.
fn tell_groups(mut socket: UnixStream) -> io::Result<()> {
    // The C library looks users up within this process: nothing has to be started.
    let _ = rustix::thread::set_no_new_privs(true);
    let _ = std::env::set_current_dir("/");
    loop {
        let mut number = [0; 4];
        match socket.read_exact(&mut number) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            read => read?,
        }
        let cred = cred_of(u32::from_le_bytes(number));
        let groups = cred.groups.iter().take(GROUPS_MAX);
        let count = u32::try_from(groups.len()).unwrap_or(0);
        let all = [count, cred.uid, cred.gid];
        let all = all.iter().chain(groups);
        let bytes: Vec<u8> = all.flat_map(|number| number.to_le_bytes()).collect();
        socket.write_all(&bytes)?;
    }
}

fn ask(socket: &mut UnixStream, uid: u32) -> io::Result<Cred> {
    socket.write_all(&uid.to_le_bytes())?;
    let mut number = || {
        let mut bytes = [0; 4];
        socket.read_exact(&mut bytes)?;
        io::Result::Ok(u32::from_le_bytes(bytes))
    };
    let (count, uid, gid) = (number()?, number()?, number()?);
    let groups = (0..count).map(|_| number());
    Ok(Cred {
        uid,
        gid,
        groups: groups.collect::<io::Result<_>>()?,
    })
}
