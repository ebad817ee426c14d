//! Starting and ending workers: what the host asks, and the process that does it.

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

/// What a start may take to say: a path, a name, a configuration.
const SPEC_MAX: usize = 1 << 20;
/// How long a worker has to end by itself once its host is gone.
const END: Timespec = Timespec {
    tv_sec: 2,
    tv_nsec: 0,
};

const START: u8 = b'S';
const KILL: u8 = b'K';

/// The variables of the environment that a plug-in sees: no passwords.
const VARIABLES: [&str; 6] = ["PATH", "HOME", "TZ", "LANG", "LC_ALL", "LD_LIBRARY_PATH"];

/// A program that calls [`run_zygote`] with its standard input, and how it is called.
#[derive(Clone, Debug)]
pub struct Helper {
    /// The program.
    pub program: PathBuf,
    /// Its words.
    pub words: Vec<OsString>,
    /// Who it becomes, if another than this process is: user and group.
    pub user: Option<(u32, u32)>,
}

/// How a worker ended, in words.
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

/// The zygote, as its host sees it. Ends with this.
#[derive(Debug)]
pub(crate) struct Zygote {
    control: Option<Mutex<UnixStream>>,
    child: Child,
}

impl Zygote {
    /// # Errors
    /// The host's.
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

    /// Has a worker started. Gives its connections.
    ///
    /// # Errors
    /// The host's; those of the zygote.
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

    /// Ends the worker, if it is there, and returns how it ended.
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
        // It ends its worker first. Its status is nobody's.
        let _ = self.child.wait();
    }
}

/// Does what the host asks, until the host is gone: the whole life of a zygote. `control` is the
/// standard input that [`Helper`]'s program was started with. The process must have no thread.
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

/// A signal to all processes ends the host; its connection then ends the zygote.
#[expect(unsafe_code, reason = "no safe call ignores a signal")]
fn ignore_signals() {
    for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGPIPE] {
        // SAFETY: to ignore is no handler.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Closes what the host's program had open and did not mean for a plug-in.
fn keep_only(kept: RawFd) {
    let Ok(kept) = libc::c_uint::try_from(kept) else {
        return;
    };
    let below = kept <= 3 || close_range(3, kept - 1);
    if !(below && close_range(kept.max(2) + 1, libc::c_uint::MAX)) {
        close_each_but(kept);
    }
}

/// Closes the descriptors of a range; returns whether the kernel can (Linux 5.9). It is asked itself,
/// since musl has no function for this, and glibc none before 2.34.
#[expect(
    unsafe_code,
    reason = "closes descriptors that nothing in this process knows of"
)]
fn close_range(first: libc::c_uint, last: libc::c_uint) -> bool {
    // SAFETY: this process has just begun: it owns its standard streams and the connection.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) == 0 }
}

/// Closes what `/proc` lists, but the standard streams and this one.
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
                // Orders are for the zygote alone; so is what the host reads of it.
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
        // One that has ended is there until it is waited for: the number is no other's.
        let _ = kill_process(worker, Signal::KILL);
        match waitpid(Some(worker), WaitOptions::empty()) {
            Ok(Some((_, status))) => status.as_raw(),
            _ => 0,
        }
    }

    /// Lets the worker end, for a while: it detaches nothing any more, but frees what it has.
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
