//! An attendant: a helper process beside the server, which mounts and unmounts one directory.
//!
//! A sandboxed process (`no_new_privs`, Landlock) can neither mount nor unmount, nor start the
//! set-uid program that ordinary users need for this. An attendant, started before, does it
//! instead. Its own command line has the directory and the options. The server can have that
//! directory mounted once, and unmounted, and nothing else.
//!
//! Both talk over a socket. A request is a letter, a two-byte length (little-endian), and that many
//! bytes. An answer is a kind of error (0 for none), a length, and bytes: the error's message, or
//! the result. The answer to `m` also carries the descriptor of `/dev/fuse`.

use crate::mount::mounting::{config, mount_flags, mount_on};
use crate::mount::passing::{receive_byte, send_byte};
use crate::mount::point::MountPoint;
use crate::options::MountOptions;
use parking_lot::Mutex;
use rustix::mount::MountFlags;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use volary_core::{Error, Kind, Result};

const MOUNT: u8 = b'm';
const SETTLE: u8 = b's';
const UNMOUNT: u8 = b'u';
const ABORT: u8 = b'a';

/// The possible errors of mounting and unmounting, in the order of their numbers in an answer.
const KINDS: [Kind; 8] = [
    Kind::Io,
    Kind::NotFound,
    Kind::NotDir,
    Kind::Access,
    Kind::Busy,
    Kind::Unsupported,
    Kind::NotPermitted,
    Kind::Invalid,
];

/// The attendant, as the server sees it.
#[derive(Debug)]
pub struct Attendant(Mutex<UnixStream>);

/// The result of mounting.
pub(crate) struct Attended {
    pub(crate) device: OwnedFd,
    pub(crate) point: MountPoint,
}

impl Attendant {
    /// Returns the client of the process at the other end of `socket`, which runs [`attend`].
    pub fn new(socket: UnixStream) -> Self {
        Self(Mutex::new(socket))
    }

    /// Mounts. Returns the descriptor that delivers the kernel's requests, and the mount point.
    ///
    /// # Errors
    /// Those of [`serve`](crate::serve).
    pub(crate) fn mount(&self, source: &str, read_only: bool) -> Result<Attended> {
        let mut asked = vec![u8::from(read_only)];
        asked.extend(source.bytes().take(4096));
        let (told, device) = self.ask(MOUNT, &asked)?;
        let (Some(device), [was_dead, hides, path @ ..]) = (device, &told[..]) else {
            return Err(gone());
        };
        let point = MountPoint {
            path: PathBuf::from(OsString::from_vec(path.to_vec())),
            was_dead: *was_dead != 0,
            hides: *hides != 0,
            held: None,
        };
        Ok(Attended { device, point })
    }

    /// Applies settings that need an initialised connection to the kernel: that symlinks are not
    /// followed, and how far the kernel reads ahead.
    ///
    /// # Errors
    /// `NotPermitted`.
    pub(crate) fn settle(&self) -> Result<()> {
        self.ask(SETTLE, &[]).map(drop)
    }

    /// See [`MountPoint::unmount`].
    pub(crate) fn unmount(&self, lazy: bool) -> Result<()> {
        self.ask(UNMOUNT, &[u8::from(lazy)]).map(drop)
    }

    /// See [`MountPoint::abort`].
    pub(crate) fn abort(&self) {
        // If the attendant has ended, nobody could do it.
        let _ = self.ask(ABORT, &[]);
    }

    fn ask(&self, what: u8, bytes: &[u8]) -> Result<(Vec<u8>, Option<OwnedFd>)> {
        let mut socket = self.0.lock();
        let asked = send(&mut socket, what, bytes, None).and_then(|()| receive(&mut socket));
        let (status, told, device) = asked.map_err(|_| gone())?;
        let Some(number) = usize::from(status).checked_sub(1) else {
            return Ok((told, device));
        };
        let kind = KINDS.get(number).copied().unwrap_or(Kind::Io);
        let words = String::from_utf8_lossy(&told).into_owned();
        Err(Error::note(kind, words))
    }
}

fn gone() -> Error {
    Error::note(Kind::Io, "the process that mounts and unmounts has ended")
}

/// Sends a message, with a descriptor if there is one.
fn send(
    socket: &mut UnixStream,
    what: u8,
    bytes: &[u8],
    fd: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let len = u16::try_from(bytes.len()).map_err(|_| io::ErrorKind::InvalidInput)?;
    send_byte(socket.as_fd(), what, fd)?;
    socket.write_all(&len.to_le_bytes())?;
    socket.write_all(bytes)
}

type Message = (u8, Vec<u8>, Option<OwnedFd>);

fn receive(socket: &mut UnixStream) -> io::Result<Message> {
    let (what, fd) = receive_byte(socket.as_fd())?;
    let mut len = [0; 2];
    socket.read_exact(&mut len)?;
    let mut bytes = vec![0; usize::from(u16::from_le_bytes(len))];
    socket.read_exact(&mut bytes)?;
    Ok((what, bytes, fd))
}

/// Runs as the attendant for `dir` until the other end of `socket` is closed. If the directory is
/// still mounted then, it stays so, as after a server that was killed.
///
/// # Errors
/// Those of the socket.
pub fn attend(mut socket: UnixStream, dir: &Path, options: &MountOptions) -> io::Result<()> {
    let mut state = State::Before;
    loop {
        let (what, bytes, _) = match receive(&mut socket) {
            Err(e) if e.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            message => message?,
        };
        let (told, device) = match state.answer(what, &bytes, dir, options) {
            Ok((told, device)) => (Ok(told), device),
            Err(e) => (Err(e), None),
        };
        let fd = device.as_ref().map(AsFd::as_fd);
        match told {
            Ok(told) => send(&mut socket, 0, &told, fd)?,
            Err(e) => {
                let number = KINDS.iter().position(|kind| *kind == e.kind());
                let status = u8::try_from(number.unwrap_or(0) + 1).unwrap_or(1);
                send(&mut socket, status, e.to_string().as_bytes(), None)?;
            }
        }
    }
}

/// The state of the mount.
enum State {
    Before,
    Mounted {
        point: MountPoint,
        connection: Option<u32>,
        flags: MountFlags,
        /// Whether it was unmounted. A later mount on the directory is not this server's.
        gone: bool,
    },
}

type Answer = (Vec<u8>, Option<OwnedFd>);

impl State {
    fn answer(
        &mut self,
        what: u8,
        bytes: &[u8],
        dir: &Path,
        options: &MountOptions,
    ) -> Result<Answer> {
        let nothing = Ok((Vec::new(), None));
        match (what, &mut *self) {
            (MOUNT, Self::Before) => {
                let (read_only, source) = bytes.split_first().ok_or_else(no_sense)?;
                let source = String::from_utf8_lossy(source);
                self.mount(&source, *read_only != 0, dir, options)
            }
            (SETTLE, Self::Mounted { point, flags, .. }) => {
                if options.nosymfollow {
                    point.forbid_symlinks(*flags)?;
                }
                point.set_read_ahead(options.read_ahead);
                nothing
            }
            (UNMOUNT, Self::Mounted { point, gone, .. }) => {
                if !*gone {
                    point.unmount(bytes.first().is_some_and(|lazy| *lazy != 0))?;
                    *gone = true;
                }
                nothing
            }
            (ABORT, Self::Mounted { connection, .. }) => {
                if let Some(connection) = connection {
                    MountPoint::abort(*connection);
                }
                nothing
            }
            (UNMOUNT | ABORT | SETTLE, _) => nothing,
            _ => Err(no_sense()),
        }
    }

    fn mount(
        &mut self,
        source: &str,
        read_only: bool,
        dir: &Path,
        options: &MountOptions,
    ) -> Result<Answer> {
        let read_only = read_only || options.read_only;
        let point = MountPoint::check(dir)?;
        let config = config(source, read_only, options, 1);
        let flags = mount_flags(read_only, options);
        let device = mount_on(&point, source, flags, &config)?;
        let mut told = vec![u8::from(point.was_dead), u8::from(point.hides)];
        told.extend_from_slice(point.path.as_os_str().as_bytes());
        let connection = point.connection();
        // The working directory must not keep a file system busy.
        let _ = std::env::set_current_dir("/");
        *self = Self::Mounted {
            point,
            connection,
            flags,
            gone: false,
        };
        Ok((told, Some(device)))
    }
}

fn no_sense() -> Error {
    Error::note(Kind::Invalid, "a request to mount that makes no sense")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_mounted_is_told_as_it_would_be_here() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let place = Path::new("/nonexistent/place");
        let options = MountOptions::default();
        let attending = std::thread::spawn(move || attend(theirs, place, &options));
        let attendant = Attendant::new(ours);
        let refused = attendant.mount("x", false).err().unwrap();
        assert_eq!(refused.kind(), Kind::NotFound);
        assert_eq!(
            refused.to_string(),
            MountPoint::check(place).unwrap_err().to_string()
        );
        // The attendant unmounts nothing that it has not mounted.
        attendant.unmount(true).unwrap();
        attendant.abort();
        assert_eq!(attendant.ask(b'x', b"").unwrap_err(), Kind::Invalid);
        assert_eq!(attendant.ask(MOUNT, b"").unwrap_err(), Kind::Invalid);
        drop(attendant);
        attending.join().unwrap().unwrap();
    }

    #[test]
    fn without_an_attendant_nothing_is_mounted() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        drop(theirs);
        let refused = Attendant::new(ours).mount("x", false).err().unwrap();
        assert_eq!(refused.kind(), Kind::Io);
    }
}
