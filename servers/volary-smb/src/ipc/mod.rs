//! The share `IPC$`: pipes, of which only `srvsvc` exists. May use `client` and all below it.
//!
//! | module, from bottom to top | what |
//! |---|---|
//! | `caller` | who makes a call |
//! | `ndr` | the encoding of calls' arguments |
//! | `srvsvc` | calls about shares and the server (MS-SRVS) |
//! | `rpc` | calls through a pipe (C706, MS-RPCE) |

mod caller;
mod ndr;
mod rpc;
mod srvsvc;

use crate::answer::{Answer, Failure, Related};
use crate::budget::{Budget, Taken};
use crate::client::{Link, Logon};
use crate::config::Config;
use crate::wire::FileId;
use crate::wire::cursor::part;
use crate::wire::header::HEADER_LEN;
use crate::wire::{Command, Cursor, Out, Short, Status, ioctl};
use caller::Caller;
use parking_lot::Mutex;
use rpc::Pipe;
use std::collections::HashMap;
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use tracing::warn;
use volary_core::escape_short;

/// The most pipes that a tree has open at a time.
const PIPES_MAX: usize = 16;
/// `FSCTL_PIPE_TRANSCEIVE`: a write and a read.
const FSCTL_TRANSCEIVE: u32 = 0x0011_C017;

/// The open pipes of a connection to `IPC$`.
pub(crate) struct Pipes {
    config: Arc<Config>,
    user: String,
    /// The user's resources, on all connections.
    budget: Arc<Budget>,
    peer: IpAddr,
    open: Mutex<Open>,
}

#[derive(Default)]
struct Open {
    /// The pipes, each with its share of the user's limit.
    pipes: HashMap<u64, (Pipe, Taken)>,
    last_id: u64,
}

impl fmt::Debug for Pipes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pipes").finish_non_exhaustive()
    }
}

/// Answers a request about pipes.
pub(crate) fn answer(
    pipes: &Pipes,
    command: Command,
    related: &mut Related,
    message: &[u8],
) -> Answer {
    let request = Request {
        pipes,
        message,
        body: message.get(HEADER_LEN..).unwrap_or_default(),
    };
    match command {
        Command::Create => request.create(related),
        Command::Close => request.close(related),
        Command::Read => request.read(related),
        Command::Write => request.write(related),
        Command::Ioctl => request.ioctl(related),
        Command::QueryInfo => request.query_info(related),
        Command::Flush => Ok(vec![4, 0, 0, 0]),
        _ => Err(Status::NOT_SUPPORTED.into()),
    }
}

struct Request<'a> {
    pipes: &'a Pipes,
    message: &'a [u8],
    body: &'a [u8],
}

impl Request<'_> {
    /// Returns the body from `at` on. Its `StructureSize` must be `size`.
    fn at(&self, size: u16, at: usize) -> Result<Cursor<'_>, Short> {
        if Cursor::new(self.body).u16()? != size {
            return Err(Short);
        }
        self.body.get(at..).map(Cursor::new).ok_or(Short)
    }

    /// Returns the pipe's id, which is at `at`.
    fn id(&self, size: u16, at: usize, related: &mut Related) -> Result<FileId, Failure> {
        let mut c = self.at(size, at)?;
        let named = FileId {
            persistent: c.u64()?,
            volatile: c.u64()?,
        };
        related.resolve(named)
    }

    fn with<T>(&self, id: FileId, call: impl FnOnce(&mut Pipe) -> T) -> Result<T, Status> {
        let mut open = self.pipes.open.lock();
        let pipe = open.pipes.get_mut(&id.volatile);
        let pipe = pipe.filter(|_| id.persistent == id.volatile);
        pipe.map(|(pipe, _)| call(pipe)).ok_or(Status::FILE_CLOSED)
    }

    /// Answers CREATE.
    ///
    /// # Errors
    /// `INVALID_PARAMETER`; `OBJECT_NAME_NOT_FOUND`; `PIPE_NOT_AVAILABLE` if the tree, or the user,
    /// has as many open pipes as permitted.
    fn create(&self, related: &mut Related) -> Answer {
        let mut c = self.at(57, 44)?;
        let (offset, len) = (c.u16()?, c.u16()?);
        let name = part(self.message, offset.into(), len.into())?;
        let name: Vec<u8> = name.iter().copied().filter(|byte| *byte != 0).collect();
        if !name
            .strip_prefix(b"\\")
            .unwrap_or(&name)
            .eq_ignore_ascii_case(b"srvsvc")
        {
            return Err(Status::OBJECT_NAME_NOT_FOUND.into());
        }
        let mut open = self.pipes.open.lock();
        if open.pipes.len() >= PIPES_MAX {
            return Err(Status::PIPE_NOT_AVAILABLE.into());
        }
        let taken = self.pipes.take_one()?;
        open.last_id += 1;
        let id = open.last_id;
        open.pipes.insert(id, (Pipe::default(), taken));
        related.file = Some(FileId {
            persistent: id,
            volatile: id,
        });
        let mut out = Out::with_capacity(88);
        out.u16(89).u8(0).u8(0).u32(1);
        out.zeros(32).u64(4096).u64(0).u32(0x80).u32(0);
        out.u64(id).u64(id).u32(0).u32(0);
        Ok(out.done())
    }

    fn close(&self, related: &mut Related) -> Answer {
        let id = self.id(24, 8, related)?;
        self.with(id, |_| ())?;
        self.pipes.open.lock().pipes.remove(&id.volatile);
        let mut out = Out::with_capacity(60);
        out.u16(60).zeros(58);
        Ok(out.done())
    }

    fn write(&self, related: &mut Related) -> Answer {
        let id = self.id(49, 16, related)?;
        let mut c = self.at(49, 2)?;
        let (offset, len) = (c.u16()?, c.u32()?);
        let data = part(self.message, offset.into(), len as usize)?;
        self.with(id, |pipe| pipe.write(data, self.pipes.caller()))??;
        let mut out = Out::with_capacity(16);
        out.u16(17).u16(0).u32(len).u64(0);
        Ok(out.done())
    }

    fn read(&self, related: &mut Related) -> Answer {
        const DATA_AT: u8 = HEADER_LEN as u8 + 16;
        let id = self.id(49, 16, related)?;
        let len = self.at(49, 4)?.u32()?;
        let (data, is_whole) = self.with(id, |pipe| pipe.read(len as usize))??;
        let mut out = Out::with_capacity(16 + data.len());
        out.u16(17).u8(DATA_AT).u8(0);
        out.u32(crate::wire::out::len32(data.len()));
        out.u64(0).bytes(&data);
        whole_or_not(out.done(), is_whole)
    }

    fn ioctl(&self, related: &mut Related) -> Answer {
        let request = ioctl::Request::parse(self.message)?;
        if request.code != FSCTL_TRANSCEIVE || !request.is_fsctl {
            return Err(Status::FS_DRIVER_REQUIRED.into());
        }
        let id = related.resolve(request.file)?;
        let answered = self.with(id, |pipe| {
            pipe.write(request.input, self.pipes.caller())?;
            pipe.read(request.output_max as usize)
        });
        let (data, is_whole) = answered??;
        whole_or_not(ioctl::response(request.code, id, &data), is_whole)
    }

    /// Answers QUERY_INFO for `FileStandardInformation`, which some clients request.
    fn query_info(&self, related: &mut Related) -> Answer {
        let id = self.id(41, 24, related)?;
        self.with(id, |_| ())?;
        let mut c = self.at(41, 2)?;
        let (info_type, class, max) = (c.u8()?, c.u8()?, c.u32()?);
        if (info_type, class) != (1, 5) {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if max < 24 {
            return Err(Status::INFO_LENGTH_MISMATCH.into());
        }
        let mut out = Out::with_capacity(32);
        out.u16(9).u16(HEADER_LEN as u16 + 8).u32(24);
        out.u64(4096).u64(0).u32(1).u8(1).u8(0).u16(0);
        Ok(out.done())
    }
}

fn whole_or_not(body: Vec<u8>, is_whole: bool) -> Answer {
    if is_whole {
        Ok(body)
    } else {
        Err(Failure::with_body(Status::BUFFER_OVERFLOW, body))
    }
}

impl Pipes {
    /// Returns the pipes for this user on this connection.
    pub(crate) fn new(link: &Link, logon: &Logon) -> Self {
        Self {
            config: Arc::clone(&link.shared.config),
            user: logon.user.clone(),
            budget: Arc::clone(&logon.budget),
            peer: link.peer,
            open: Mutex::default(),
        }
    }

    /// Takes one more pipe of the user's limit.
    ///
    /// # Errors
    /// `PIPE_NOT_AVAILABLE`.
    fn take_one(&self) -> Result<Taken, Status> {
        let taken = self.budget.pipes.take(self.config.limits.pipes_per_user);
        taken.ok_or_else(|| {
            let user = escape_short(self.user.as_bytes());
            warn!(target: "SMB", limit = "pipes", user, address = %self.peer, "limit reached");
            Status::PIPE_NOT_AVAILABLE
        })
    }

    fn caller(&self) -> Caller<'_> {
        Caller {
            config: &self.config,
            user: &self.user,
            peer: self.peer,
        }
    }
}

/// See [`crate::fuzzing`].
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing {
    use super::*;

    pub(crate) fn pipe(config: &Config, bytes: &[u8]) {
        let mut pipe = Pipe::default();
        let caller = Caller {
            config,
            user: "user",
            peer: IpAddr::from([127, 0, 0, 1]),
        };
        if pipe.write(bytes, caller).is_err() {
            return;
        }
        while let Ok((data, _)) = pipe.read(1024) {
            assert!(!data.is_empty(), "an answer has bytes");
        }
    }
}
