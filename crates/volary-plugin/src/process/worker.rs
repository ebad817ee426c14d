//! The plug-in's process: attaches the volume, and answers requests on each lane.

use super::confine::confine;
use super::spec::{LANES, Spec};
use crate::abi::*;
use crate::library::{Library, Volume};
use crate::wire::{
    Caller, DATA_MAX, Event, FRAME_DATA, FRAME_MAX, Field, Head, Hello, Listed, Request, Tag,
    bytes, failed, finished,
};
use parking_lot::Mutex;
use rustix::net::{RecvFlags, recv};
use std::cell::RefCell;
use std::ffi::OsStr;
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use volary_core::{
    Attach, Cancel, Caps, Change, ChangeSink, Cred, Ctx, DirBuf, Error, FileSystem, Fs, Kind, Name,
    RenameFlags, Result, Severity, Time, Watch,
};

/// The most entries, and the most bytes of names, of one listing.
const ENTRIES_MAX: usize = 256;
const NAMES_MAX: usize = 32 << 10;

/// Runs a worker in the process that was just forked, until its end.
pub(super) fn run(spec: &Spec, mut sockets: Vec<UnixStream>) -> ! {
    let events = sockets.split_off(LANES).pop();
    leave_standard_streams();
    confine(spec.memory);
    let _ = rustix::thread::set_name(c"volary-plugin");
    if let Some(events) = events {
        serve(spec, sockets, events);
    }
    exit(0)
}

#[expect(unsafe_code, reason = "no safe _exit")]
fn exit(code: i32) -> ! {
    // SAFETY: ends the process; handlers that run at exit belong to the zygote's program.
    unsafe { libc::_exit(code) }
}

/// Redirects the standard streams: input was the zygote's, and a plug-in's output is discarded.
fn leave_standard_streams() {
    let null = std::fs::OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/null");
    let Ok(null) = null else { exit(1) };
    let done = rustix::stdio::dup2_stdin(&null)
        .and_then(|()| rustix::stdio::dup2_stdout(&null))
        .and_then(|()| rustix::stdio::dup2_stderr(&null));
    if done.is_err() {
        exit(1);
    }
}

fn serve(spec: &Spec, mut lanes: Vec<UnixStream>, events: UnixStream) {
    let Some(first) = lanes.first_mut() else {
        return;
    };
    let volume = attach(spec);
    let (status, body) = match &volume {
        Ok(volume) => (0, bytes(&hello(volume))),
        Err(e) => failed(e),
    };
    let sent = send(first, 0, status, body, false);
    let (Ok(()), Ok(volume)) = (sent, volume) else {
        return;
    };
    let volume = volume.fs;
    let teller = Arc::new(Teller(Mutex::new(events)));
    let _watch = watch(&volume, &teller);
    let threads = lanes.into_iter().map(|lane| {
        let (volume, teller) = (Arc::clone(&volume), Arc::clone(&teller));
        thread::spawn(move || {
            Serving {
                lane,
                volume,
                teller,
            }
            .run();
        })
    });
    let threads: Vec<_> = threads.collect();
    // The threads end when the host closes their lanes.
    for thread in threads {
        let _ = thread.join();
    }
}

fn attach(spec: &Spec) -> Result<Volume> {
    let library = Library::load(Path::new(OsStr::from_bytes(&spec.library)))?;
    let how = Attach {
        read_only: spec.read_only,
        memory: spec.memory,
        uid: spec.uid,
        gid: spec.gid,
        umask: spec.umask,
        ..Attach::default()
    };
    let cx = Ctx {
        cred: &Cred::new(spec.uid, spec.gid),
        now: spec.now,
        cancel: &Cancel::new(),
    };
    library.attach(&spec.name, &spec.config, &how, &cx)
}

fn hello(volume: &Volume) -> Hello {
    let fs = &volume.fs;
    Hello {
        caps: fs.caps(),
        root: fs.root(),
        commit_ms: u64::try_from(fs.commit_time().as_millis()).unwrap_or(u64::MAX),
        forgets: volume.forgets,
    }
}

fn watch(volume: &Fs, teller: &Arc<Teller>) -> Option<Watch> {
    let watches = volume.caps().has(Caps::WATCH);
    let sink = Arc::clone(teller);
    watches.then(|| volume.watch(sink).ok()).flatten()
}

/// Sends events to the host.
struct Teller(Mutex<UnixStream>);

impl Teller {
    fn tell(&self, event: Event<'_>) {
        let body = bytes(&event);
        let head = Head {
            len: u32::try_from(body.len()).unwrap_or(u32::MAX),
            tag: Tag::Event,
            id: 0,
            status: 0,
        };
        // If the host is gone, nobody needs the event.
        let _ = self
            .0
            .lock()
            .write_all(&[&head.to_bytes()[..], &body].concat());
    }

    fn findings(&self, fs: &dyn FileSystem) {
        for finding in fs.findings() {
            let is_error = finding.severity != Severity::Note;
            let words = finding.message.as_bytes();
            self.tell(Event::Line { is_error, words });
        }
    }
}

impl ChangeSink for Teller {
    fn changed(&self, change: Change) {
        let (what, node) = match change {
            Change::Data(node) => (VOLARY_CHANGED_DATA, Some(node)),
            Change::Attr(node) => (VOLARY_CHANGED_ATTR, Some(node)),
            Change::Entries(node) => (VOLARY_CHANGED_ENTRIES, Some(node)),
            Change::Gone(node) => (VOLARY_CHANGED_GONE, Some(node)),
            Change::Everything => (VOLARY_CHANGED_ALL, None),
        };
        self.tell(Event::Changed { what, node });
    }
}

thread_local! {
    /// The lane of this thread. While a request runs, the host can only send that the caller has
    /// lost interest.
    static LANE: RefCell<Option<UnixStream>> = const { RefCell::new(None) };
}

/// Returns a time of 1 once the caller has lost interest, otherwise 0. It is the clock of a
/// [`Cancel`] whose deadline is 1.
fn asked() -> Time {
    let mut byte = [0];
    let is_there = LANE.with_borrow(|lane| {
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        let lane = lane.as_ref()?;
        // A host that has ended counts as well.
        recv(lane, &mut byte, flags).ok()
    });
    Time::from_secs(is_there.is_some().into())
}

/// A thread that serves one lane.
struct Serving {
    lane: UnixStream,
    volume: Fs,
    teller: Arc<Teller>,
}

impl Serving {
    /// Answers until the host closes the lane.
    fn run(mut self) {
        let own = self.lane.try_clone().ok();
        LANE.set(own);
        while matches!(self.one(), Ok(true)) {}
    }

    fn one(&mut self) -> io::Result<bool> {
        let mut head = [0; Head::LEN];
        self.lane.read_exact(&mut head)?;
        let Some(head) = Head::parse(&head) else {
            return Ok(false);
        };
        let mut body = vec![0; (head.len as usize).min(FRAME_MAX)];
        self.lane.read_exact(&mut body)?;
        match head.tag {
            // It concerns a request that was answered meanwhile.
            Tag::Cancel => return Ok(true),
            Tag::Request => {}
            Tag::Reply | Tag::Event => return Ok(false),
        }
        let Some((caller, request)) = finished::<(Caller, Request<'_>)>(&body) else {
            return Ok(false);
        };
        let mut out = vec![0; Head::LEN];
        let cancel = Cancel::until(Time::from_secs(1), asked, None);
        let done = answer(&*self.volume, &caller, &cancel, &request, &mut out);
        self.teller.findings(&*self.volume);
        match done {
            Ok(()) => send(&mut self.lane, head.id, 0, out, true)?,
            Err(e) => {
                let (status, words) = failed(&e);
                send(&mut self.lane, head.id, status, words, false)?;
            }
        }
        Ok(true)
    }
}

/// Sends a reply. If `has_room`, the body begins with room for the head.
fn send(
    lane: &mut UnixStream,
    id: u64,
    status: i32,
    mut body: Vec<u8>,
    has_room: bool,
) -> io::Result<()> {
    if !has_room {
        body.splice(0..0, [0; Head::LEN]);
    }
    let head = Head {
        len: u32::try_from(body.len() - Head::LEN).unwrap_or(u32::MAX),
        tag: Tag::Reply,
        id,
        status,
    };
    if let Some(start) = body.get_mut(..Head::LEN) {
        start.copy_from_slice(&head.to_bytes());
    }
    lane.write_all(&body)
}

/// Performs a request, and appends the reply's body to `out`.
///
/// # Errors
/// That of the operation; `Invalid` for invalid names.
pub(crate) fn answer(
    fs: &dyn FileSystem,
    caller: &Caller,
    cancel: &Cancel,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    let cred = Cred {
        uid: caller.uid,
        gid: caller.gid,
        groups: caller.groups.as_slice().into(),
    };
    let cx = &Ctx {
        cred: &cred,
        now: caller.now,
        cancel,
    };
    match *request {
        Request::StatFs {} => fs.statfs(cx)?.put(out),
        Request::Sync {} => fs.sync(cx)?,
        Request::Detach {} => fs.detach(cx)?,
        Request::ReadDir {
            dir,
            from,
            with_attr,
        } => {
            let mut buf = DirBuf::new(ENTRIES_MAX, NAMES_MAX, with_attr);
            let is_end = fs.readdir(cx, dir, from, &mut buf)?;
            is_end.put(out);
            let listed = buf.iter().map(|e| Listed {
                next: e.next,
                node: e.node,
                kind: e.kind,
                name: e.name,
                attr: e.attr,
            });
            listed.collect::<Vec<_>>().put(out);
        }
        Request::Open { node, mode } => fs.open(cx, node, mode)?.put(out),
        Request::Read { open, offset, len } => {
            let start = out.len();
            let len = (len as usize).min(FRAME_DATA);
            out.resize(start + len, 0);
            let buf = out.get_mut(start..).unwrap_or_default();
            let read = fs.read(cx, open, offset, buf)?;
            out.truncate(start + read);
        }
        Request::Write { data, .. } if data.len() > DATA_MAX => return Err(Kind::TooBig.into()),
        Request::Write { open, offset, data } => fs.write(cx, open, offset, data)?.put(out),
        Request::FSync { open, data_only } => fs.fsync(cx, open, data_only)?,
        Request::Allocate {
            open,
            offset,
            len,
            hole,
        } => fs.allocate(cx, open, offset, len, hole)?,
        Request::Lock { open, lock } => fs.lock(cx, open, lock)?,
        Request::Ioctl { open, code, input } => {
            fs.ioctl(cx, open, code, input)?.as_slice().put(out);
        }
        Request::Close { open } => fs.close(cx, open)?,
        _ => about_nodes(fs, cx, request, out)?,
    }
    Ok(())
}

/// Performs the requests about names and nodes.
#[expect(clippy::too_many_lines, reason = "an arm for each request")]
fn about_nodes(
    fs: &dyn FileSystem,
    cx: &Ctx<'_>,
    request: &Request<'_>,
    out: &mut Vec<u8>,
) -> Result<()> {
    match *request {
        Request::Lookup { dir, name } => fs.lookup(cx, dir, Name::new(name)?)?.attr.put(out),
        Request::Parent { dir } => fs.parent(cx, dir)?.attr.put(out),
        Request::Create {
            dir,
            name,
            how,
            set,
        } => {
            let (entry, open) = fs.create(cx, dir, Name::new(name)?, how, &set)?;
            (entry.attr, open).put(out);
        }
        Request::MkDir { dir, name, set } => {
            fs.mkdir(cx, dir, Name::new(name)?, &set)?.attr.put(out);
        }
        Request::MkNod {
            dir,
            name,
            kind,
            rdev,
            set,
        } => {
            let entry = fs.mknod(cx, dir, Name::new(name)?, kind, rdev, &set)?;
            entry.attr.put(out);
        }
        Request::Symlink {
            dir,
            name,
            target,
            set,
        } => {
            let entry = fs.symlink(cx, dir, Name::new(name)?, target, &set)?;
            entry.attr.put(out);
        }
        Request::Link { node, dir, name } => {
            fs.link(cx, node, dir, Name::new(name)?)?.attr.put(out);
        }
        Request::Unlink { dir, name } => fs.unlink(cx, dir, Name::new(name)?)?,
        Request::RmDir { dir, name } => fs.rmdir(cx, dir, Name::new(name)?)?,
        Request::Rename {
            from,
            name,
            to,
            new_name,
            flags,
        } => {
            let (name, new_name) = (Name::new(name)?, Name::new(new_name)?);
            fs.rename(cx, from, name, to, new_name, RenameFlags(flags))?;
        }
        Request::GetAttr { node } => fs.getattr(cx, node)?.put(out),
        Request::SetAttr { node, set } => fs.setattr(cx, node, &set)?.put(out),
        Request::Access { node, want } => fs.access(cx, node, want)?.put(out),
        Request::ReadLink { node } => fs.readlink(cx, node)?.as_slice().put(out),
        Request::GetXattr { node, name } => fs.getxattr(cx, node, name)?.as_slice().put(out),
        Request::SetXattr { node, name, value } => fs.setxattr(cx, node, name, value)?,
        Request::ListXattr { node } => {
            let names = fs.listxattr(cx, node)?;
            let names: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
            names.put(out);
        }
        Request::RemoveXattr { node, name } => fs.removexattr(cx, node, name)?,
        Request::Forget { node, lookups } => fs.forget(node, lookups),
        _ => return Err(Error::note(Kind::Invalid, "no such request")),
    }
    Ok(())
}
