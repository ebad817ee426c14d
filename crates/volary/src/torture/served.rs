//! Runs a script as a client of `volary serve`, which is killed.

use super::moment::{Moment, killed_midway};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};
use volary_block::MemDevice;
use volary_core::{BlockDevice, Cancel, Cred, Ctx, Error, Fs, Kind, Options, Result, Time};
use volary_nfs_client::{Location, NfsOptions};
use volary_sim::{Op, Ops, Progress, Volume};
use volary_smb_client::{Client, Fail, How, access, disposition, status};

type Words<T> = std::result::Result<T, String>;

/// The protocol of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// NFS version 3: what an answered COMMIT covers is durable, and so is an answered change of
    /// names.
    Nfs,
    /// SMB 2.1: what an answered FLUSH covers is durable. Everything else is durable once the
    /// volume's commit time has passed.
    Smb,
}

/// A volume that a separate process serves.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    /// The protocol of its client.
    pub by: Protocol,
    /// Once in a round, the SMB client waits until the image holds everything that was answered.
    /// This is the longest wait: a margin after the commit time, which is half a second unless the
    /// volume has another.
    pub patience: Duration,
}

/// The commit time for volumes without their own, as an option.
const COMMIT: &str = "commit=0.5";

const USER: &str = "torture";
const PASSWORD: &str = "torture";
const DIRECTORY: u32 = 1;

impl Protocol {
    /// Returns the protocol's name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Nfs => "nfs",
            Self::Smb => "smb",
        }
    }
}

/// Returns the command that starts the process to kill: `volary serve` on an image.
pub(super) fn command(volume: &Volume, program: &Path, image: &Path, by: Protocol) -> Command {
    let mut command = Command::new(program);
    let option = format!("--{}", by.name());
    command.args(["serve", "--json", &option, "127.0.0.1:0"]);
    match by {
        Protocol::Nfs => {
            let mut key = OsString::from(image);
            key.push(".key");
            command.args(["--squash", "none", "--key"]).arg(key);
        }
        Protocol::Smb => {
            command.args(["--user", USER]);
            command.env("VOLARY_PASSWORD", PASSWORD);
        }
    }
    if !volume.attach.contains("commit=") {
        command.args(["-o", COMMIT]);
    }
    if !volume.attach.is_empty() {
        command.args(["-o", volume.attach]);
    }
    command.arg(image).stdin(Stdio::null());
    command.stdout(Stdio::piped());
    command
}

/// Runs a script as a client of the process, and kills the process at some moment.
///
/// # Errors
/// Those of operations before that moment, in words; also if the image does not hold the
/// acknowledged changes in time.
pub(super) fn driven(
    volume: &Volume,
    process: &mut Child,
    image: &Path,
    served: Served,
    script: &Ops,
    seed: u64,
) -> Words<Progress> {
    let said = process.stdout.take().ok_or("it says nothing")?;
    let mut said = BufReader::new(said);
    let mut line = String::new();
    said.read_line(&mut line).map_err(|e| e.to_string())?;
    let at = address(&line, served.by).ok_or_else(|| format!("it does not serve: {line}"))?;
    let name = image.file_stem().unwrap_or_default();
    let name = name.to_string_lossy();
    match served.by {
        Protocol::Nfs => {
            let cancel = Cancel::new();
            let fs = mounted(at, &name).map_err(|e| e.to_string())?;
            let act = |i, op: &Op, tag, _: &mut Progress| {
                volary_sim::perform(&fs, &context(i, &cancel), op, tag)
            };
            // After the kill, pending calls get no answer, so they are cancelled.
            let killed = || cancel.set();
            let progress = killed_midway(volume, process, script, seed, act, killed)?;
            // Names are durable once they are answered, and content once its file is closed.
            let kept = progress.done.len();
            Ok(Progress { kept, ..progress })
        }
        Protocol::Smb => {
            let connected = Client::connect(at, USER, PASSWORD, &name, [5; 16]);
            let (client, _) = connected.map_err(|e| format!("logging on: {e:?}"))?;
            let kill_at = Moment::of(script.0.len(), seed).op;
            let act = |i, op: &Op, tag, progress: &mut Progress| {
                if progress.kept == 0 && (kill_at / 2..kill_at).contains(&i) {
                    progress.kept = i;
                    rest(volume, image, served.patience, script, seed, progress)?;
                }
                perform(&client, op, tag)
            };
            killed_midway(volume, process, script, seed, act, || ())
        }
    }
}

/// Returns the address that the server prints.
fn address(line: &str, by: Protocol) -> Option<SocketAddr> {
    let (_, rest) = line.split_once(&format!("\"{}\":\"", by.name()))?;
    rest.split('"').next()?.parse().ok()
}

/// Mounts the export with the NFS client driver.
fn mounted(at: SocketAddr, name: &str) -> Result<Fs> {
    let location = Location::parse(format!("{at}/{name}?timeout=60").as_bytes())?;
    let options = NfsOptions::default().with(&location, &Options::new())?;
    volary_nfs_client::attach(&location, &options)
}

fn context(i: usize, cancel: &Cancel) -> Ctx<'_> {
    static ROOT: std::sync::OnceLock<Cred> = std::sync::OnceLock::new();
    Ctx {
        cred: ROOT.get_or_init(Cred::root),
        now: Time::from_secs(1_700_000_000 + i as i64),
        cancel,
    }
}

/// Waits until a recovered copy of the image holds what was acknowledged.
#[expect(
    clippy::disallowed_methods,
    reason = "nothing tells when a server has made something durable"
)]
fn rest(
    volume: &Volume,
    image: &Path,
    patience: Duration,
    script: &Ops,
    seed: u64,
    progress: &Progress,
) -> Result<()> {
    let begin = Instant::now();
    loop {
        let held =
            copied(image).and_then(|copy| volume.held_to(script, seed, progress, None, &copy));
        let Err(what) = held else { return Ok(()) };
        if begin.elapsed() >= patience {
            let time = patience.as_secs_f64();
            let words = format!("{time} s after the last change: {what}");
            return Err(Error::note(Kind::Io, words));
        }
        thread::sleep(Duration::from_millis(50));
    }
}

fn copied(image: &Path) -> Words<Arc<dyn BlockDevice>> {
    let bytes = std::fs::read(image).map_err(|e| e.to_string())?;
    Ok(Arc::new(MemDevice::from_vec(bytes)))
}

/// Does an operation as a client of SMB; `tag` is that of the file concerned.
fn perform(client: &Client, op: &Op, tag: u32) -> Result<()> {
    let at = |path: &str, how: How, work: &dyn Fn(_) -> std::result::Result<(), Fail>| {
        let open = client.open(&named(path), &how)?.open;
        let answer = work(open);
        client.close(open)?;
        answer
    };
    let any = |access| How {
        options: 0,
        ..How::open(access)
    };
    let done = match op {
        Op::Create(path) => {
            let how = How {
                disposition: disposition::CREATE,
                ..How::open(access::WRITE)
            };
            at(path, how, &|_| Ok(()))
        }
        Op::Mkdir(path) => client.make_dir(&named(path)),
        Op::Unlink(path) | Op::Rmdir(path) => at(path, any(access::DELETE), &|open| {
            client.set_delete(open, true)
        }),
        Op::Rename(from, to) => at(from, any(access::DELETE), &|open| {
            client.rename(open, &named(to))
        }),
        Op::Write(path, offset, len) => at(path, How::open(access::WRITE), &|open| {
            client.write(open, *offset, &volary_sim::tree::content(tag, *len))
        }),
        Op::Truncate(path, len) => at(path, How::open(access::WRITE), &|open| {
            client.set_size(open, *len)
        }),
        Op::Fsync(path) => at(path, any(access::WRITE), &|open| client.flush(open)),
        Op::Sync | Op::Detach => {
            let how = How {
                options: DIRECTORY,
                ..How::open(access::WRITE)
            };
            at("", how, &|open| client.flush(open))
        }
    };
    done.map_err(|fail| error(fail, op))
}

/// Returns a path in SMB's form.
fn named(path: &str) -> String {
    path.trim_start_matches('/').replace('/', "\\")
}

fn error(fail: Fail, op: &Op) -> Error {
    let kind = match fail {
        Fail::Status(status::DISK_FULL) => Kind::NoSpace,
        // SMB does not replace a directory. The operation did nothing, as if space had run out.
        Fail::Status(status::ACCESS_DENIED) if matches!(op, Op::Rename(..)) => Kind::NoSpace,
        Fail::Status(_) | Fail::Gone => Kind::Io,
    };
    Error::note(kind, format!("{fail:x?}"))
}
