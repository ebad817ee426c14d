//! Writes a line for each change.

use parking_lot::Mutex;
use std::fmt::Write as _;
use std::io::Write;
use volary_core::{
    Create, Ctx, Entry, Error, FileKind, Fs, Kind, Layer, Name, NodeId, Op, OpenId, RenameFlags,
    Result, SetAttr, SetTime, escape,
};

/// Where the lines of an [`Audit`] go.
pub type AuditSink = Box<dyn Write + Send>;

/// Writes one line for each call that changes something, when it has been
/// answered: when (seconds since 1970), who, what, and the answer:
///
/// ```text
/// 1700000000.000000000 uid=1000 gid=100 unlink dir=1 name="a b" -> ok
/// 1700000000.000000000 uid=1000 gid=100 write open=7 offset=0 len=512 -> NoSpace
/// ```
///
/// Refused changes have their lines too. `create` and `open` to write tell the
/// node and the open, so that later lines about the open can be followed. Names
/// and targets are escaped: a line stays a line.
///
/// A line that cannot be written fails no change that has happened, but every
/// later one (`Io`): nothing goes on unseen. Changes no caps. Put it on top, to
/// see what clients ask for, or lowest, to see what reaches the volume.
pub struct Audit {
    below: Fs,
    sink: Mutex<Sink>,
}

struct Sink {
    to: AuditSink,
    failed: bool,
}

impl Audit {
    /// Over `below`; each line is one write to `sink`.
    pub fn new(below: Fs, sink: AuditSink) -> Self {
        let sink = Mutex::new(Sink {
            to: sink,
            failed: false,
        });
        Self { below, sink }
    }

    /// # Errors
    /// `Io` once a line could not be written.
    fn check(&self) -> Result<()> {
        if self.sink.lock().failed {
            let words = "the audit file cannot be written; nothing is changed without it";
            return Err(Error::note(Kind::Io, words));
        }
        Ok(())
    }

    /// Makes the call and writes its line; `told` adds what a success gave.
    fn told<T>(
        &self,
        cx: Option<&Ctx<'_>>,
        what: &str,
        told: impl FnOnce(&T) -> String,
        call: impl FnOnce() -> Result<T>,
    ) -> Result<T> {
        self.check()?;
        let answer = call();
        let mut line = String::new();
        // Writing to a string does not fail.
        if let Some(cx) = cx {
            let (now, cred) = (cx.now, cx.cred);
            let (secs, nanos) = (now.secs, now.nanos);
            let _ = write!(line, "{secs}.{nanos:09} uid={} gid={} ", cred.uid, cred.gid);
        }
        let _ = match &answer {
            Ok(got) => writeln!(line, "{what} -> ok{}", told(got)),
            Err(e) => writeln!(line, "{what} -> {:?}", e.kind()),
        };
        let mut sink = self.sink.lock();
        let written = sink
            .to
            .write_all(line.as_bytes())
            .and_then(|()| sink.to.flush());
        sink.failed |= written.is_err();
        answer
    }

    fn quiet<T>(&self, cx: &Ctx<'_>, what: &str, call: impl FnOnce() -> Result<T>) -> Result<T> {
        self.told(Some(cx), what, |_| String::new(), call)
    }
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
        if !op.call.changes() {
            return call();
        }
        self.told(op.cx.as_ref(), &describe(op), |_| String::new(), call)
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

    fn open(&self, cx: &Ctx<'_>, node: NodeId, mode: volary_core::Mode) -> Result<OpenId> {
        if mode == volary_core::Mode::Read {
            return self.below.open(cx, node, mode);
        }
        let what = format!("open node={} mode={mode:?}", node.ino);
        let told = |open: &OpenId| format!(" open={}", open.0);
        self.told(Some(cx), &what, told, || self.below.open(cx, node, mode))
    }

    /// What a driver's own codes change is not known: each has its line.
    fn ioctl(&self, cx: &Ctx<'_>, open: OpenId, code: u32, input: &[u8]) -> Result<Vec<u8>> {
        let what = format!("ioctl open={} code={code:#x}", open.0);
        self.quiet(cx, &what, || self.below.ioctl(cx, open, code, input))
    }
}
