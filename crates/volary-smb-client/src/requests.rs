//! The requests of a client. Paths are relative to the share's root, with `\`.

use crate::conn::{Fail, LeaseBreak, Link, RELATED, command, part};
use crate::wire::{Body, HEADER_LEN, u16_at, u32_at, u64_at, utf16};
use crate::{access, disposition, status};
use std::net::SocketAddr;
use std::ops::Range;
use std::sync::mpsc::Receiver;

/// `FileId`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Open([u8; 16]);

/// A pending CHANGE_NOTIFY, by the id of its request.
#[derive(Debug)]
pub struct Watching(u64);

/// How to open.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub access: u32,
    pub share: u32,
    pub disposition: u32,
    pub options: u32,
    /// A key, and the requested state: R 1, H 2, W 4.
    pub lease: Option<([u8; 16], u32)>,
}

/// The result of an open.
#[derive(Clone, Copy, Debug)]
pub struct Opened {
    pub open: Open,
    pub size: u64,
    /// The granted state of the lease.
    pub lease: u32,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub name: String,
    /// `FileId`: the index of the node.
    pub index: u64,
    /// `FileAttributes`.
    pub attributes: u32,
}

const ID_BOTH_DIRECTORY: u8 = 37;
const DIRECTORY: u32 = 1;
const NON_DIRECTORY: u32 = 0x40;
/// The most bytes of one request: what one credit allows.
const IO_MAX: usize = 64 << 10;

impl How {
    /// Returns parameters for opening an existing file with these rights; others may do all.
    pub fn open(access: u32) -> Self {
        Self {
            access,
            share: access::SHARE_ALL,
            disposition: disposition::OPEN,
            options: NON_DIRECTORY,
            lease: None,
        }
    }
}

/// A client that has logged on; several threads can use it.
#[derive(Clone)]
pub struct Client {
    link: Link,
}

impl Client {
    /// Logs on and connects to a share; `guid` identifies the client. The receiver returns the
    /// breaks of leases.
    ///
    /// # Errors
    /// Those of the logon, of the share, and of the connection.
    pub fn connect(
        address: SocketAddr,
        user: &str,
        password: &str,
        share: &str,
        guid: [u8; 16],
    ) -> Result<(Self, Receiver<LeaseBreak>), Fail> {
        let (link, breaks) = Link::connect(address, user, password, share, guid)?;
        Ok((Self { link }, breaks))
    }

    /// Ends the session; the connection stays.
    ///
    /// # Errors
    /// The server's status.
    pub fn log_off(&self) -> Result<(), Fail> {
        let body = Body::new(4).u16(0);
        self.link.ask(command::LOGOFF, &body).map(drop)
    }

    /// Closes the connection, as if the client had died.
    pub fn hang_up(&self) {
        self.link.hang_up();
    }

    /// # Errors
    /// The server's status.
    pub fn open(&self, path: &str, how: &How) -> Result<Opened, Fail> {
        let reply = self.link.ask(command::CREATE, &create(path, how))?;
        Ok(Opened {
            open: Open(reply[128..144].try_into().expect("an id")),
            size: u64_at(&reply, 112),
            lease: granted(&reply),
        })
    }

    /// # Errors
    /// The server's status.
    pub fn close(&self, open: Open) -> Result<(), Fail> {
        let body = Body::new(24).u16(0).u32(0).bytes(&open.0);
        self.link.ask(command::CLOSE, &body).map(drop)
    }

    /// # Errors
    /// The server's status.
    pub fn flush(&self, open: Open) -> Result<(), Fail> {
        let body = Body::new(24).u16(0).u32(0).bytes(&open.0);
        self.link.ask(command::FLUSH, &body).map(drop)
    }

    /// # Errors
    /// The server's status.
    pub fn echo(&self) -> Result<(), Fail> {
        self.link.ask(command::ECHO, &Body::new(4).u16(0)).map(drop)
    }

    /// Reads `len` bytes; fewer only at the end of the file.
    ///
    /// # Errors
    /// The server's status.
    pub fn read(&self, open: Open, offset: u64, len: usize) -> Result<Vec<u8>, Fail> {
        let mut all = Vec::new();
        while all.len() < len {
            let want = (len - all.len()).min(IO_MAX);
            let at = offset + all.len() as u64;
            let body = Body::new(49).u16(0x50).u32(want as u32).u64(at);
            let body = body.bytes(&open.0).u32(0).u32(0).zeros(9);
            let reply = match self.link.ask(command::READ, &body) {
                Err(Fail::Status(status::END_OF_FILE)) => return Ok(all),
                reply => reply?,
            };
            let (at, got) = (reply[HEADER_LEN + 2].into(), u32_at(&reply, 68) as usize);
            all.extend(part(&reply, at, got));
            if got < want {
                return Ok(all);
            }
        }
        Ok(all)
    }

    /// # Errors
    /// The server's status; earlier parts of the data have then been written.
    pub fn write(&self, open: Open, offset: u64, data: &[u8]) -> Result<(), Fail> {
        for (index, chunk) in data.chunks(IO_MAX).enumerate() {
            let at = offset + (index * IO_MAX) as u64;
            let body = Body::new(49).u16(HEADER_LEN as u16 + 48);
            let body = body.u32(chunk.len() as u32).u64(at).bytes(&open.0);
            let body = body.u32(0).u32(0).u32(0).u32(0).bytes(chunk);
            let reply = self.link.ask(command::WRITE, &body)?;
            assert_eq!(u32_at(&reply, 68) as usize, chunk.len(), "all is written");
        }
        Ok(())
    }

    /// Takes a lock on a range of bytes, without waiting.
    ///
    /// # Errors
    /// The server's status.
    pub fn lock(&self, open: Open, bytes: Range<u64>, exclusive: bool) -> Result<(), Fail> {
        const AT_ONCE: u32 = 0x10;
        self.locking(open, bytes, AT_ONCE | if exclusive { 2 } else { 1 }, 0)
    }

    /// Takes an exclusive lock likewise, but waits until it is free.
    ///
    /// # Errors
    /// The server's status.
    pub fn lock_waiting(&self, open: Open, bytes: Range<u64>) -> Result<(), Fail> {
        self.locking(open, bytes, 2, 0)
    }

    /// Does the same, with a message that has `padding` zero bytes at its end.
    ///
    /// # Errors
    /// The server's status.
    pub fn lock_waiting_padded(
        &self,
        open: Open,
        bytes: Range<u64>,
        padding: usize,
    ) -> Result<(), Fail> {
        self.locking(open, bytes, 2, padding)
    }

    /// # Errors
    /// The server's status.
    pub fn unlock(&self, open: Open, bytes: Range<u64>) -> Result<(), Fail> {
        self.locking(open, bytes, 4, 0)
    }

    fn locking(
        &self,
        open: Open,
        bytes: Range<u64>,
        flags: u32,
        padding: usize,
    ) -> Result<(), Fail> {
        let body = Body::new(48).u16(1).u32(0).bytes(&open.0);
        let body = body.u64(bytes.start).u64(bytes.end - bytes.start);
        let body = body.u32(flags).u32(0).zeros(padding);
        self.link.ask(command::LOCK, &body).map(drop)
    }

    /// Sets whether the file is removed with its last open.
    ///
    /// # Errors
    /// The server's status.
    pub fn set_delete(&self, open: Open, goes: bool) -> Result<(), Fail> {
        self.set_info(open, 13, &[goes.into()])
    }

    /// # Errors
    /// The server's status.
    pub fn set_size(&self, open: Open, size: u64) -> Result<(), Fail> {
        self.set_info(open, 20, &size.to_le_bytes())
    }

    /// Renames an open file, and replaces an existing target.
    ///
    /// # Errors
    /// The server's status.
    pub fn rename(&self, open: Open, to: &str) -> Result<(), Fail> {
        self.rename_to(open, to, true)
    }

    /// Renames likewise; if `replaces` is false, an existing target makes it fail.
    ///
    /// # Errors
    /// The server's status.
    pub fn rename_to(&self, open: Open, to: &str, replaces: bool) -> Result<(), Fail> {
        let name = utf16(to);
        let body = Body::default().u8(replaces.into()).zeros(15);
        let body = body.u32(name.len() as u32);
        self.set_info(open, 10, &body.bytes(&name).zeros(4).0)
    }

    /// Sets information of a file.
    ///
    /// # Errors
    /// The server's status.
    pub fn set_info(&self, open: Open, class: u8, data: &[u8]) -> Result<(), Fail> {
        self.setting(open, 1, class, 0, data)
    }

    /// Sets the parts of a security descriptor that `parts` names.
    ///
    /// # Errors
    /// The server's status.
    pub fn set_security(&self, open: Open, parts: u32, descriptor: &[u8]) -> Result<(), Fail> {
        self.setting(open, 3, 0, parts, descriptor)
    }

    fn setting(&self, open: Open, kind: u8, class: u8, more: u32, data: &[u8]) -> Result<(), Fail> {
        let body = Body::new(33).u8(kind).u8(class).u32(data.len() as u32);
        let body = body.u16(HEADER_LEN as u16 + 32).u16(0).u32(more);
        self.link
            .ask(command::SET_INFO, &body.bytes(&open.0).bytes(data))
            .map(drop)
    }

    /// Queries information of a file (`kind` 1) or of the volume (2).
    ///
    /// # Errors
    /// The server's status.
    pub fn query(&self, open: Open, kind: u8, class: u8) -> Result<Vec<u8>, Fail> {
        let reply = self
            .link
            .ask(command::QUERY_INFO, &query_info(&open.0, kind, class))?;
        Ok(information(&reply))
    }

    /// Opens a path, queries information as [`query`](Self::query) does, and closes it again: three
    /// requests in one message.
    ///
    /// # Errors
    /// The server's status.
    pub fn query_at(&self, path: &str, how: &How, kind: u8, class: u8) -> Result<Vec<u8>, Fail> {
        let close = Body::new(24).u16(0).u32(0).bytes(&RELATED);
        let replies = self.link.ask_related(&[
            (command::CREATE, create(path, how)),
            (command::QUERY_INFO, query_info(&RELATED, kind, class)),
            (command::CLOSE, close),
        ])?;
        Ok(information(&replies[1]))
    }

    /// Makes a directory.
    ///
    /// # Errors
    /// The server's status.
    pub fn make_dir(&self, path: &str) -> Result<(), Fail> {
        let how = How {
            disposition: disposition::CREATE,
            options: DIRECTORY,
            ..How::open(access::READ)
        };
        self.close(self.open(path, &how)?.open)
    }

    /// Returns the names in a directory, without `.` and `..`.
    ///
    /// # Errors
    /// The server's status.
    pub fn list(&self, path: &str) -> Result<Vec<String>, Fail> {
        let entries = self.entries(path)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    /// Returns the entries of a directory, without `.` and `..`.
    ///
    /// # Errors
    /// The server's status.
    pub fn entries(&self, path: &str) -> Result<Vec<Listed>, Fail> {
        let how = How {
            options: DIRECTORY,
            ..How::open(access::READ)
        };
        let dir = self.open(path, &how)?.open;
        let listed = self.find_entries(dir, "*");
        self.close(dir)?;
        listed
    }

    /// Returns the names in an open directory that match a pattern, without `.` and `..`.
    ///
    /// # Errors
    /// The server's status.
    pub fn find(&self, dir: Open, pattern: &str) -> Result<Vec<String>, Fail> {
        let entries = self.find_entries(dir, pattern)?;
        Ok(entries.into_iter().map(|entry| entry.name).collect())
    }

    fn find_entries(&self, dir: Open, pattern: &str) -> Result<Vec<Listed>, Fail> {
        let pattern = utf16(pattern);
        let mut all = Vec::new();
        loop {
            let body = Body::new(33)
                .u8(ID_BOTH_DIRECTORY)
                .u8(0)
                .u32(0)
                .bytes(&dir.0);
            let body = body.u16(HEADER_LEN as u16 + 32).u16(pattern.len() as u16);
            let body = body.u32(IO_MAX as u32).bytes(&pattern);
            let reply = match self.link.ask(command::QUERY_DIRECTORY, &body) {
                Err(Fail::Status(status::NO_MORE_FILES)) => return Ok(all),
                reply => reply?,
            };
            let (at, len) = (u16_at(&reply, 66).into(), u32_at(&reply, 68) as usize);
            all.extend(entries_of(part(&reply, at, len)));
        }
    }

    /// Gives an open file another name as well, without replacing an existing one.
    ///
    /// # Errors
    /// The server's status.
    pub fn link(&self, open: Open, to: &str) -> Result<(), Fail> {
        self.link_with(open, to, false)
    }

    /// Makes a hard link `to` to an open file, and replaces the file that has the name.
    ///
    /// # Errors
    /// The server's status.
    pub fn link_over(&self, open: Open, to: &str) -> Result<(), Fail> {
        self.link_with(open, to, true)
    }

    fn link_with(&self, open: Open, to: &str, replaces: bool) -> Result<(), Fail> {
        let name = utf16(to);
        let body = Body::default().u8(u8::from(replaces)).zeros(15);
        let body = body.u32(name.len() as u32);
        self.set_info(open, 11, &body.bytes(&name).zeros(4).0)
    }

    /// Sends a file system control that has no output.
    ///
    /// # Errors
    /// The server's status.
    pub fn control(&self, open: Open, code: u32, input: &[u8]) -> Result<(), Fail> {
        const INPUT_AT: u32 = HEADER_LEN as u32 + 56;
        let body = Body::new(57).u16(0).u32(code).bytes(&open.0);
        let body = body.u32(INPUT_AT).u32(input.len() as u32).u32(0);
        let body = body.u32(0).u32(0).u32(0).u32(1).u32(0).bytes(input);
        self.link.ask(command::IOCTL, &body).map(drop)
    }

    /// Requests one notification of a change of a directory's entries.
    ///
    /// # Errors
    /// The server's status for the directory; those of the connection.
    pub fn watch(&self, path: &str) -> Result<Watching, Fail> {
        self.watch_with(path, 0)
    }

    /// Requests one notification of a change in a directory or anywhere below it.
    ///
    /// # Errors
    /// The server's status for the directory; those of the connection.
    pub fn watch_tree(&self, path: &str) -> Result<Watching, Fail> {
        const WATCH_TREE: u16 = 1;
        self.watch_with(path, WATCH_TREE)
    }

    fn watch_with(&self, path: &str, flags: u16) -> Result<Watching, Fail> {
        /// Names of files and of directories, sizes, times of the last write.
        const OF_WHAT: u32 = 0x1b;
        let how = How {
            options: DIRECTORY,
            ..How::open(access::READ)
        };
        let dir = self.open(path, &how)?.open;
        let body = Body::new(32).u16(flags).u32(IO_MAX as u32).bytes(&dir.0);
        let body = body.u32(OF_WHAT).u32(0);
        Ok(Watching(self.link.send(command::CHANGE_NOTIFY, &body)?))
    }

    /// Returns whether the notification has arrived.
    pub fn was_told(&self, watching: &Watching) -> bool {
        self.link.has_reply(watching.0)
    }

    /// Acknowledges the break of a lease, and keeps the state `keeps`.
    ///
    /// # Errors
    /// The server's status.
    pub fn acknowledge(&self, key: [u8; 16], keeps: u32) -> Result<(), Fail> {
        let body = Body::new(36).u16(0).u32(0).bytes(&key).u32(keeps).u64(0);
        self.link.ask(command::OPLOCK_BREAK, &body).map(drop)
    }
}

/// Returns the body of a CREATE.
fn create(path: &str, how: &How) -> Body {
    const NAME_AT: usize = HEADER_LEN + 56;
    let name = utf16(path);
    let level = if how.lease.is_some() { 0xff } else { 0 };
    let body = Body::new(57).u8(0).u8(level).u32(2).zeros(16);
    let body = body.u32(how.access | access::READ_ATTRIBUTES).u32(0);
    let body = body.u32(how.share).u32(how.disposition).u32(how.options);
    let body = body.u16(NAME_AT as u16).u16(name.len() as u16);
    let contexts_at = (NAME_AT + name.len()).next_multiple_of(8);
    match how.lease {
        None => body.u32(0).u32(0).bytes(&name).zeros(1),
        Some((key, state)) => {
            let body = body.u32(contexts_at as u32).u32(24 + 32).bytes(&name);
            let body = body.zeros(contexts_at - NAME_AT - name.len());
            let body = body.u32(0).u16(16).u16(4).u16(0).u16(24).u32(32);
            let body = body.bytes(b"RqLs").u32(0).bytes(&key).u32(state);
            body.u32(0).u64(0)
        }
    }
}

/// Returns the body of a QUERY_INFO.
fn query_info(file: &[u8; 16], kind: u8, class: u8) -> Body {
    let body = Body::new(41).u8(kind).u8(class).u32(IO_MAX as u32);
    body.zeros(16).bytes(file).zeros(1)
}

/// Returns the information in a reply to QUERY_INFO.
fn information(reply: &[u8]) -> Vec<u8> {
    let (at, len) = (u16_at(reply, 66).into(), u32_at(reply, 68) as usize);
    part(reply, at, len).to_vec()
}

/// Returns the state of the lease in a reply to CREATE.
fn granted(reply: &[u8]) -> u32 {
    let (at, len) = (u32_at(reply, 144) as usize, u32_at(reply, 148) as usize);
    if len == 0 {
        return 0;
    }
    let context = part(reply, at, len);
    assert_eq!(&context[16..20], b"RqLs", "the one that was asked for");
    let data: usize = u16_at(context, 10).into();
    u32_at(context, data + 16)
}

/// Returns the entries in a list of `FileIdBothDirectoryInformation` (MS-FSCC 2.4.22), without `.`
/// and `..`.
fn entries_of(mut list: &[u8]) -> Vec<Listed> {
    const NAME_AT: usize = 104;
    let mut all = Vec::new();
    loop {
        let len = u32_at(list, 60) as usize;
        let units = list[NAME_AT..NAME_AT + len].chunks(2);
        let units: Vec<u16> = units.map(|pair| u16_at(pair, 0)).collect();
        let name = String::from_utf16(&units).expect("UTF-16");
        if name != "." && name != ".." {
            all.push(Listed {
                name,
                index: u64_at(list, 96),
                attributes: u32_at(list, 56),
            });
        }
        match u32_at(list, 0) as usize {
            0 => return all,
            next => list = &list[next..],
        }
    }
}
