//! Writes a line for each change, and on request for each read.

mod reads;

use crate::Outside;
use parking_lot::Mutex;
pub use reads::AuditReads;
use reads::Reads;
use std::fmt::Write as _;
use std::io::Write;
use volary_core::{
    Call, Create, Ctx, Entry, Error, FileKind, Fs, Kind, Layer, Mode, Name, NodeId, Op, OpenId,
    RenameFlags, Result, SetAttr, SetTime, escape,
};

/// The destination of the lines of an [`Audit`].
pub type AuditSink = Box<dyn Write + Send>;

/// Writes one line for each call that changes something, once it has been answered. The line has
/// the time (seconds since 1970), the caller, the call and the answer:
///
/// ```text
/// 1700000000.000000000 uid=1000 gid=100 unlink dir=1 name="a b" -> ok
/// 1700000000.000000000 uid=1000 gid=100 write open=7 offset=0 len=512 -> NoSpace
/// ```
///
/// Refused changes have lines too. Lines of `create` and of `open` for writing have the node and
/// the open, so that later lines about the open can be followed. Names and targets are escaped: a
/// line stays a line.
///
/// [With reads](Self::with_reads), calls that look at names and content have lines as well, refused
/// or not. These are `lookup`, `open`, `close`, `read`, `readdir`, `readlink`, `getxattr` and
/// `listxattr`:
///
/// ```text
/// 1700000000.000000000 uid=1000 gid=100 lookup dir=1 name="a b" -> ok node=5
/// 1700000000.000000000 uid=1000 gid=100 open node=5 mode=Read -> ok open=7
/// 1700000000.000000000 uid=1000 gid=100 read open=7 offset=0 len=4096 -> ok got=12
/// 1700000001.000000000 left-out reads=217
/// 1700000009.000000000 reads-end size=67108864
/// ```
///
/// Lines about reads are limited in number per second, and in bytes in all. Calls that are left out
/// are counted; the count is written with the next line about a read and when the volume is
/// detached. `reads-end` says that no more follow. Lines about changes are never left out.
///
/// If a line cannot be written, its call still succeeds, but every later call that needs a line
/// fails (`Io`): nothing goes on unseen. Changes no caps. Put the layer on top to see what clients
/// ask for, or lowest to see what reaches the volume.
pub struct Audit {
    below: Fs,
    sink: Mutex<Sink>,
}

struct Sink {
    to: AuditSink,
    failed: bool,
    reads: Option<Reads>,
}

impl Sink {
    fn write(&mut self, line: &str) {
        let written = self.to.write_all(line.as_bytes());
        self.failed |= written.and_then(|()| self.to.flush()).is_err();
    }
}

impl Audit {
    /// Puts the layer over `below`; each line is one write to `sink`.
    pub fn new(below: Fs, sink: AuditSink) -> Self {
        let sink = Mutex::new(Sink {
            to: sink,
            failed: false,
            reads: None,
        });
        Self { below, sink }
    }

    /// Adds lines about reads, within these bounds.
    #[must_use]
    pub fn with_reads(mut self, bounds: AuditReads) -> Self {
        self.sink.get_mut().reads = Some(Reads::new(bounds));
        self
    }

    /// Parses `FILE`, with `,reads` after it for lines about reads, and `,rate=N` and `,size=SIZE`
    /// for their bounds.
    ///
    /// # Errors
    /// `Invalid`, which says what is expected; those of opening the file.
    pub fn parse(below: Fs, outside: &dyn Outside, text: &str) -> Result<Self> {
        let (file, bounds) = reads::parse(text)?;
        let audit = Self::new(below, outside.append(file)?);
        Ok(match bounds {
            Some(bounds) => audit.with_reads(bounds),
            None => audit,
        })
    }

    /// Returns the file to which [`parse`](Self::parse) has lines appended.
    ///
    /// # Errors
    /// `Invalid`, as for [`parse`](Self::parse).
    pub fn file_of(text: &str) -> Result<&str> {
        reads::parse(text).map(|(file, _)| file)
    }

    /// # Errors
    /// `Io` once a line could not be written.
    fn check(&self) -> Result<()> {
        if self.sink.lock().failed {
            let words = "the audit file cannot be written; nothing is done without it";
            return Err(Error::note(Kind::Io, words));
        }
        Ok(())
    }

    /// Makes the call and writes its line; `told` adds the result of a success to it.
    fn told<T>(
        &self,
        cx: Option<&Ctx<'_>>,
        what: &str,
        told: impl FnOnce(&T) -> String,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.check()?;
        let answer = call();
        let line = line(cx, what, told, &answer);
        self.sink.lock().write(&line);
        answer
    }

    /// Makes a call that reads, and writes its line if reads are audited.
    fn looked<T>(
        &self,
        cx: &Ctx<'_>,
        what: impl FnOnce() -> String,
        told: impl FnOnce(&T) -> String,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        if self.sink.lock().reads.is_none() {
            return call();
        }
        self.check()?;
        let answer = call();
        let line = line(Some(cx), &what(), told, &answer);
        let mut sink = self.sink.lock();
        let lines = sink.reads.as_mut().map(|reads| reads.admit(cx.now, &line));
        if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
            sink.write(&lines);
        }
        answer
    }

    /// Writes how many reads were left out, if any were.
    fn tell_left_out(&self, cx: &Ctx<'_>) {
        let mut sink = self.sink.lock();
        let lines = sink.reads.as_mut().map(|reads| reads.left_out(cx.now));
        if let Some(lines) = lines.filter(|lines| !lines.is_empty()) {
            sink.write(&lines);
        }
    }

    fn quiet<T>(&self, cx: &Ctx<'_>, what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.told(Some(cx), what, |_| String::new(), call)
    }
}

/// Formats a line: the time, the caller, the call and the answer.
fn line<T>(
    cx: Option<&Ctx<'_>>,
    what: &str,
    told: impl FnOnce(&T) -> String,
    answer: &Result<T>,
) -> String {
    let mut line = String::new();
    // Writing to a string does not fail.
    if let Some(cx) = cx {
        let (now, cred) = (cx.now, cx.cred);
        let (secs, nanos) = (now.secs, now.nanos);
        let _ = write!(line, "{secs}.{nanos:09} uid={} gid={} ", cred.uid, cred.gid);
    }
    let _ = match answer {
        Ok(got) => writeln!(line, "{what} -> ok{}", told(got)),
        Err(e) => writeln!(line, "{what} -> {:?}", e.kind()),
    };
    line
}

fn entry(call: &str, dir: NodeId, name: Name<'_>) -> String {
    format!("{call} dir={} name={name:?}", dir.ino)
}

fn made(entry: &Entry) -> String {
    format!(" node={}", entry.node.ino)
}

fn describe(op: &Op<'_>) -> String {
    let mut line = op.call.name().to_owned();
    let node_key = if op.name.is_some() { "dir" } else { "node" };
    let mut add = |key: &str, value: Option<u64>| {
        if let Some(value) = value {
            let _ = write!(line, " {key}={value}");
        }
    };
    add(node_key, op.node.map(|node| node.ino.get()));
    add("open", op.open.map(|open| open.0));
    add("offset", op.offset);
    add("len", (op.len > 0).then_some(op.len));
    if let Some(name) = op.name {
        let _ = write!(line, " name={name:?}");
    }
    line
}

fn describe_set(set: &SetAttr) -> String {
    let mut text = String::new();
    let mut add = |key: &str, value: Option<String>| {
        if let Some(value) = value {
            let _ = write!(text, " {key}={value}");
        }
    };
    add("mode", set.mode.map(|mode| format!("{mode:o}")));
    add("uid", set.uid.map(|id| id.to_string()));
    add("gid", set.gid.map(|id| id.to_string()));
    add("size", set.size.map(|size| size.to_string()));
    let time = |time: SetTime| match time {
        SetTime::Now => "now".to_owned(),
        SetTime::To(t) => format!("{}.{:09}", t.secs, t.nanos),
    };
    add("atime", set.atime.map(time));
    add("mtime", set.mtime.map(time));
    add("btime", set.btime.map(time));
    add("dos", set.dos.map(|dos| format!("{dos:#x}")));
    text
}

impl Layer for Audit {
    fn below(&self) -> &Fs {
        &self.below
    }

    fn around<T>(&self, op: &Op<'_>, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if op.call.changes() {
            return self.told(op.cx.as_ref(), &describe(op), |_| String::new(), call);
        }
        let looks = matches!(
            op.call,
            Call::ReadDir | Call::ReadLink | Call::ListXattr | Call::Close
        );
        match &op.cx {
            Some(cx) if looks => self.looked(cx, || describe(op), |_| String::new(), call),
            Some(cx) if op.call == Call::Detach => {
                self.tell_left_out(cx);
                call()
            }
            _ => call(),
        }
    }

    fn create(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        how: Create,
        set: &SetAttr,
    ) -> Result<(Entry, OpenId)> {
        let what = format!(
            "{} how={how:?}{}",
            entry("create", dir, name),
            describe_set(set)
        );
        let told = |got: &(Entry, OpenId)| format!("{} open={}", made(&got.0), got.1.0);
        self.told(Some(cx), &what, told, || {
            self.below.create(cx, dir, name, how, set)
        })
    }

    fn mkdir(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>, set: &SetAttr) -> Result<Entry> {
        let what = format!("{}{}", entry("mkdir", dir, name), describe_set(set));
        self.told(Some(cx), &what, made, || {
            self.below.mkdir(cx, dir, name, set)
        })
    }

    fn mknod(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        kind: FileKind,
        rdev: u64,
        set: &SetAttr,
    ) -> Result<Entry> {
        let head = entry("mknod", dir, name);
        let what = format!("{head} kind={kind:?} rdev={rdev:#x}{}", describe_set(set));
        self.told(Some(cx), &what, made, || {
            self.below.mknod(cx, dir, name, kind, rdev, set)
        })
    }

    fn symlink(
        &self,
        cx: &Ctx<'_>,
        dir: NodeId,
        name: Name<'_>,
        target: &[u8],
        set: &SetAttr,
    ) -> Result<Entry> {
        let head = entry("symlink", dir, name);
        let what = format!("{head} target=\"{}\"{}", escape(target), describe_set(set));
        self.told(Some(cx), &what, made, || {
            self.below.symlink(cx, dir, name, target, set)
        })
    }

    fn link(&self, cx: &Ctx<'_>, node: NodeId, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let what = format!("{} node={}", entry("link", dir, name), node.ino);
        self.quiet(cx, &what, || self.below.link(cx, node, dir, name))
    }

    fn rename(
        &self,
        cx: &Ctx<'_>,
        from: NodeId,
        name: Name<'_>,
        to: NodeId,
        new_name: Name<'_>,
        flags: RenameFlags,
    ) -> Result<()> {
        let head = entry("rename", from, name);
        let what = format!("{head} to={} new={new_name:?} flags={}", to.ino, flags.0);
        self.quiet(cx, &what, || {
            self.below.rename(cx, from, name, to, new_name, flags)
        })
    }

    fn setattr(&self, cx: &Ctx<'_>, node: NodeId, set: &SetAttr) -> Result<volary_core::Attr> {
        let what = format!("setattr node={}{}", node.ino, describe_set(set));
        self.quiet(cx, &what, || self.below.setattr(cx, node, set))
    }

    fn setxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8], value: &[u8]) -> Result<()> {
        let (ino, len) = (node.ino, value.len());
        let what = format!("setxattr node={ino} xattr=\"{}\" len={len}", escape(name));
        self.quiet(cx, &what, || self.below.setxattr(cx, node, name, value))
    }

    fn removexattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<()> {
        let what = format!("removexattr node={} xattr=\"{}\"", node.ino, escape(name));
        self.quiet(cx, &what, || self.below.removexattr(cx, node, name))
    }

    fn allocate(
        &self,
        cx: &Ctx<'_>,
        open: OpenId,
        offset: u64,
        len: u64,
        hole: bool,
    ) -> Result<()> {
        let what = format!(
            "allocate open={} offset={offset} len={len} hole={hole}",
            open.0
        );
        self.quiet(cx, &what, || {
            self.below.allocate(cx, open, offset, len, hole)
        })
    }

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: Mode) -> Result<OpenId> {
        let what = || format!("open node={} mode={mode:?}", node.ino);
        let told = |open: &OpenId| format!(" open={}", open.0);
        let call = || self.below.open(cx, node, mode);
        if mode == Mode::Read {
            self.looked(cx, what, told, call)
        } else {
            self.told(Some(cx), &what(), told, call)
        }
    }

    fn lookup(&self, cx: &Ctx<'_>, dir: NodeId, name: Name<'_>) -> Result<Entry> {
        let what = || entry("lookup", dir, name);
        self.looked(cx, what, made, || self.below.lookup(cx, dir, name))
    }

    fn read(&self, cx: &Ctx<'_>, open: OpenId, offset: u64, buf: &mut [u8]) -> Result<usize> {
        let len = buf.len();
        let what = || format!("read open={} offset={offset} len={len}", open.0);
        let told = |got: &usize| format!(" got={got}");
        self.looked(cx, what, told, || self.below.read(cx, open, offset, buf))
    }

    fn getxattr(&self, cx: &Ctx<'_>, node: NodeId, name: &[u8]) -> Result<Vec<u8>> {
        let what = || format!("getxattr node={} xattr=\"{}\"", node.ino, escape(name));
        self.looked(
            cx,
            what,
            |_| String::new(),
            || self.below.getxattr(cx, node, name),
        )
    }

    /// Writes a line for each ioctl: what a driver's own codes change is not known.
    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let what = format!("ioctl open={} code={code:#x}", open.0);
        self.quiet(cx, &what, || self.below.ioctl(cx, open, code, input))
    }
}
