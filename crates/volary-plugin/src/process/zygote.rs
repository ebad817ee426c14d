//! Starting and ending workers: the host's side, and the zygote's.

use super::spec::{SOCKETS, Spec};
use super::worker;
use crate::wire::{Field, finished};
use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use rustix::process::{Pid, PidfdFlags, Signal, WaitOptions, kill_process, pidfd_open, waitpid};
use std::ffi::OsString;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// The largest size of a start order: a path, a name, a configuration.
const SPEC_MAX: usize = 1 << 20;
/// How long a worker may take to end by itself once its host is gone.
const END: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

const START: u8 = b'S';
const KILL: u8 = b'K';

/// The environment variables that a plug-in sees, which hold no passwords.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH"];

/// A program that calls [`run_zygote`] with its standard input, and its arguments.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub words: Vec<OsString>,
    /// The user and group that it switches to, if they differ from this process's.
    pub user: Option<(u32, u32)>,
}

/// Says in words how a worker ended.
fn ended(status: i32) -> String {
    let status = std::os::unix::process::ExitStatusExt::from_raw(status);
    let status: std::process::ExitStatus = status;
    match (
        std::os::unix::process::ExitStatusExt::signal(&status),
        status.code(),
    ) {
        (Some(signal), _) => format!("was ended by signal {signal}"),
        (_, Some(code)) => format!("ended by itself with status {code}"),
        _ => "ended".to_owned(),
    }
}

/// The zygote, as its host sees it. Dropping this ends the zygote.
#[derive(Debug)]
pub(crate) struct Zygote {
    control: Option<Mutex<UnixStream>>,
    child: Child,
}

impl Zygote {
    /// # Errors
    /// The host system's.
    pub(crate) fn start(helper: &Helper) -> io::Result<Self> {
        let (ours, theirs) = UnixStream::pair()?;
        let given = |name: &str| Some((name.to_owned(), std::env::var_os(name)?));
        let mut command = Command::new(&helper.program);
        command
            .args(&helper.words)
            .env_clear()
            .envs(VARIABLES.into_iter().filter_map(given))
            .stdin(Stdio::from(OwnedFd::from(theirs)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Ctrl-C is for the host, which needs the worker to detach.
            .process_group(0);
        if let Some((uid, gid)) = helper.user {
            command.uid(uid).gid(gid);
        }
        let child = command.spawn()?;
        Ok(Self {
            control: Some(Mutex::new(ours)),
            child,
        })
    }

    /// Lets the zygote start a worker. Returns its connections.
    ///
    /// # Errors
    /// The host system's, and those of the zygote.
    pub(super) fn fork(&self, spec: &Spec) -> io::Result<Vec<OwnedFd>> {
        let Some(control) = &self.control else {
            return Err(io::ErrorKind::NotConnected.into());
        };
        let mut control = control.lock();
        let mut body = vec![START];
        let spec = crate::wire::bytes(spec);
        spec.as_slice().put(&mut body);
        control.write_all(&body)?;
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
        let mut ancillary = RecvAncillaryBuffer::new(&mut room);
        let mut answer = [0; 4];
        let mut slices = [IoSliceMut::new(&mut answer)];
        let flags = RecvFlags::CMSG_CLOEXEC | RecvFlags::WAITALL;
        let got = recvmsg(&*control, &mut slices, &mut ancillary, flags)?;
        let mut sockets = Vec::new();
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(all) = message {
                sockets.extend(all);
            }
        }
        match (got.bytes, i32::from_le_bytes(answer), sockets.len()) {
            (4, 0, SOCKETS) => Ok(sockets),
            (4, errno @ 1.., _) => Err(io::Error::from_raw_os_error(errno)),
            _ => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }

    /// Kills the worker, if there is one, and returns how it ended.
    pub(super) fn kill(&self) -> String {
        let ask = |control: &Mutex<UnixStream>| {
            let mut control = control.lock();
            control.write_all(&[KILL]).ok()?;
            let mut status = [0; 4];
            control.read_exact(&mut status).ok()?;
            Some(ended(i32::from_le_bytes(status)))
        };
        let told = self.control.as_ref().and_then(ask);
        told.unwrap_or_else(|| "is gone".to_owned())
    }
}

impl Drop for Zygote {
    fn drop(&mut self) {
        self.control = None;
        // The zygote ends its worker first. Nobody needs its exit status.
        let _ = self.child.wait();
    }
}

/// Obeys the host's orders until the host is gone: the whole life of a zygote. `control` is the
/// standard input with which [`Helper`]'s program was started. The process must have only one
/// thread.
///
/// # Errors
/// Those of the connection.
pub fn run_zygote(control: UnixStream) -> io::Result<()> {
    ignore_signals();
    keep_only(control.as_raw_fd());
    let mut zygote = Orders {
        control,
        worker: None,
    };
    let done = zygote.obey();
    zygote.end();
    done
}

/// Ignores signals that are sent to all processes. They end the host, and the closed connection
/// then ends the zygote.
#[expect(unsafe_code, reason = "no safe call ignores a signal")]
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: to ignore is no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Closes inherited descriptors of the host's program, which a plug-in must not see.
fn keep_only(kept: RawFd) {
    let Ok(kept) = libc::c_uint::try_from(kept) else {
        return;
    };
    let below = kept <= 3 || close_range(3, kept - 1);
    if !(below && close_range(kept.max(2) + 1, libc::c_uint::MAX)) {
        close_each_but(kept);
    }
}

/// Closes a range of descriptors; returns whether the kernel can (Linux 5.9). Makes the system call
/// itself, since musl has no function for it, nor has glibc before 2.34.
#[expect(
    unsafe_code,
    reason = "closes descriptors that nothing in this process knows of"
)]
fn close_range(first: libc::c_uint, last: libc::c_uint) -> bool {
    // SAFETY: this process has just begun: it owns its standard streams and the connection.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// Closes all descriptors that `/proc` lists, except the standard streams and `kept`.
#[expect(
    unsafe_code,
    reason = "closes descriptors that nothing in this process knows of"
)]
fn close_each_but(kept: libc::c_uint) {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten();
    let open: Vec<libc::c_uint> = listed
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .collect();
    for fd in open.into_iter().filter(|&fd| fd > 2 && fd != kept) {
        // SAFETY: as above. The listing's own descriptor is closed by now, which is an error only.
        unsafe { libc::close(fd as RawFd) };
    }
}

struct Orders {
    control: UnixStream,
    worker: Option<Pid>,
}

impl Orders {
    fn obey(&mut self) -> io::Result<()> {
        loop {
            let mut order = [0];
            match self.control.read_exact(&mut order) {
                Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
                read => read?,
            }
            match order {
                [START] => self.start()?,
                [KILL] => {
                    let status = self.kill();
                    self.control.write_all(&status.to_le_bytes())?;
                }
                _ => return Err(io::ErrorKind::InvalidData.into()),
            }
        }
    }

    fn start(&mut self) -> io::Result<()> {
        let mut len = [0; 4];
        self.control.read_exact(&mut len)?;
        let len = usize::try_from(u32::from_le_bytes(len)).unwrap_or(usize::MAX);
        if len > SPEC_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        let mut body = vec![0; len];
        self.control.read_exact(&mut body)?;
        let spec: Spec = finished(&body).ok_or(io::ErrorKind::InvalidData)?;
        self.kill();
        match self.fork(&spec) {
            Ok(sockets) => {
                let all: Vec<BorrowedFd<'_>> = sockets.iter().map(AsFd::as_fd).collect();
                let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS))];
                let mut ancillary = SendAncillaryBuffer::new(&mut room);
                ancillary.push(SendAncillaryMessage::ScmRights(&all));
                let answer = [IoSlice::new(&[0; 4])];
                sendmsg(&self.control, &answer, &mut ancillary, SendFlags::NOSIGNAL)?;
                Ok(())
            }
            Err(e) => {
                let errno = e.raw_os_error().unwrap_or(libc::EIO);
                self.control.write_all(&errno.to_le_bytes())
            }
        }
    }

    /// Forks a worker. Returns the host's ends of its connections.
    #[expect(unsafe_code, reason = "no safe fork")]
    fn fork(&mut self, spec: &Spec) -> io::Result<Vec<OwnedFd>> {
        let mut ours = Vec::new();
        let mut theirs = Vec::new();
        for _ in 0..SOCKETS {
            let (host, worker) = UnixStream::pair()?;
            ours.push(OwnedFd::from(host));
            theirs.push(worker);
        }
        // SAFETY: this process has one thread, so that no lock is held in the child.
        match unsafe { libc::fork() } {
            0 => {
                drop(ours);
                // Only the zygote may read orders, and only it may answer them.
                // SAFETY: this process never returns to whoever owns it.
                unsafe { libc::close(self.control.as_raw_fd()) };
                worker::run(spec, theirs)
            }
            pid => match Pid::from_raw(pid) {
                Some(pid) if pid.is_init() => Err(io::ErrorKind::Other.into()),
                Some(pid) if pid.as_raw_nonzero().get() > 0 => {
                    self.worker = Some(pid);
                    Ok(ours)
                }
                _ => Err(io::Error::last_os_error()),
            },
        }
    }

    fn kill(&mut self) -> i32 {
        let Some(worker) = self.worker.take() else {
            return 0;
        };
        // Until it is waited for, a worker that has ended keeps its process id, so no other process
        // has it.
        let _ = kill_process(worker, Signal::KILL);
        match waitpid(Some(worker), WaitOptions::empty()) {
            Ok(Some((_, status))) => status.as_raw(),
            _ => 0,
        }
    }

    /// Gives the worker some time to end. It detaches nothing any more, but frees its resources.
    fn end(&mut self) {
        let pidfd = self
            .worker
            .and_then(|worker| pidfd_open(worker, PidfdFlags::empty()).ok());
        if let Some(pidfd) = pidfd {
            let _ = poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], Some(&END));
        }
        self.kill();
    }
}
