//! What the targets do with a damaged volume of any format.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use std::sync::Arc;
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, Cookie, Create, Cred, Ctx, DirBuf,
    Entry, FileKind, Finding, Format, Fs, Make, Mode, Name, NodeId, OpenId, Options, Place, Quiet,
    RenameFlags, SetAttr, Severity, Time,
};

/// The time of every call.
const NOW: Time = Time::from_secs(1_700_000_000);
/// Growth of the heap that a run may cause, beside twice the image.
const HEAP: usize = 32 << 20;
/// Nodes that a walk looks at.
const WALK_MAX: usize = 1000;
/// Operations of a run.
const OPERATIONS_MAX: usize = 64;

/// Bounds the heap from here on.
pub(crate) fn bound(dev: &Overlay) {
    let size = usize::try_from(dev.geometry().size).unwrap_or(usize::MAX);
    heap::limit(HEAP + 2 * size);
}

/// A good volume, to be damaged.
pub(crate) struct Base {
    pub(crate) bytes: Arc<[u8]>,
    /// Where structures begin, in bytes.
    pub(crate) places: Vec<u64>,
}

impl Base {
    /// Returns the volume with the changes that the input asks for: each begins within `reach` bytes of the start
    /// of a structure. The device takes `fuel` requests and KiB.
    pub(crate) fn damaged(&self, fuel: u64, reach: u64, input: &mut Input<'_>) -> Arc<Overlay> {
        Overlay::damaged(self.bytes.clone(), fuel, input, |input| {
            let place = self.places[usize::from(input.byte()) % self.places.len()];
            place + u64::from(input.short()) % reach
        })
    }
}

/// Makes a file with 700 bytes at each of these offsets.
pub(crate) fn file(fs: &Fs, cx: &Ctx<'_>, dir: NodeId, text: &[u8], at: &[u64]) -> NodeId {
    let made = fs.create(cx, dir, name(text), Create::New, &SetAttr::default());
    let (entry, open) = made.expect("create");
    for &offset in at {
        fs.write(cx, open, Some(offset), &[7; 700]).expect("write");
    }
    fs.close(cx, open).expect("close");
    entry.node
}

/// Returns where the first bytes of a node's content lie on the device.
pub(crate) fn first_place(fs: &Fs, cx: &Ctx<'_>, node: NodeId) -> u64 {
    let open = fs.open(cx, node, Mode::Read).expect("open");
    let mut runs = Vec::new();
    fs.extents(cx, open, 0, u64::MAX, &mut runs)
        .expect("extents");
    fs.close(cx, open).expect("close");
    let place = runs.iter().find_map(|run| match run.place {
        Place::Device(at) => Some(at),
        _ => None,
    });
    place.expect("content")
}

/// Checks and mends a volume as the input says: what is said to be mended must be clean for a second run, and a walk
/// must get through it.
pub(crate) fn check_damaged(format: &dyn Format, dev: Arc<Overlay>, input: &mut Input<'_>) {
    bound(&dev);
    let preens = input.byte() & 1 == 1;
    must_mend(format, dev, preens, "");
    heap::limit(usize::MAX);
}

/// Returns how a run attaches: in little memory.
pub(crate) fn attach(options: &str) -> Attach {
    Attach {
        memory: 4 << 20,
        options: Options::parse(options),
        ..Attach::default()
    }
}

/// Makes a good volume of zeros; what else it takes comes from `seed` 7.
pub(crate) fn make(format: &dyn Format, dev: &Arc<Overlay>, kind: &str, options: &str) {
    let how = Make {
        seed: 7,
        options: Options::parse(options),
        ..Make::default()
    };
    format.make(dev.clone(), kind, &how).expect("make");
}

/// Returns all of a device.
pub(crate) fn bytes_of(dev: &Overlay) -> Vec<u8> {
    let size = usize::try_from(dev.geometry().size).unwrap_or(usize::MAX);
    let mut bytes = vec![0; size];
    dev.read_at(0, &mut bytes).expect("read");
    bytes
}

/// Does something as root.
pub(crate) fn with_ctx<T>(work: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    work(&Ctx {
        cred: &cred,
        now: NOW,
        cancel: &cancel,
    })
}

/// Returns a name that is one.
pub(crate) fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a name")
}

/// Every node that a walk from the root reaches, within a bound; looks at all of each, and
/// reads some.
pub(crate) fn walk(fs: &Fs, cx: &Ctx<'_>) -> Vec<(NodeId, FileKind)> {
    let mut found = vec![(fs.root(), FileKind::Dir)];
    let mut next = 0;
    while let Some(&(node, kind)) = found.get(next) {
        next += 1;
        if found.len() > WALK_MAX {
            break;
        }
        look(fs, cx, node);
        let Ok(open) = fs.open(cx, node, Mode::Read) else {
            continue;
        };
        let _ = fs.extents(cx, open, 0, u64::MAX, &mut Vec::new());
        match kind {
            FileKind::Dir => list(fs, cx, (node, open), &mut found),
            _ => drop(fs.read(cx, open, 100, &mut [0; 5000])),
        }
        let _ = fs.close(cx, open);
    }
    let _ = fs.statfs(cx);
    found
}

fn look(fs: &Fs, cx: &Ctx<'_>, node: NodeId) {
    let _ = fs.getattr(cx, node);
    let _ = fs.readlink(cx, node);
    let _ = fs.parent(cx, node);
    for name in fs.listxattr(cx, node).unwrap_or_default() {
        let _ = fs.getxattr(cx, node, &name);
    }
}

fn list(fs: &Fs, cx: &Ctx<'_>, (dir, open): (NodeId, OpenId), found: &mut Vec<(NodeId, FileKind)>) {
    let mut from = Cookie::START;
    let mut buf = DirBuf::new(64, 8192, true);
    loop {
        buf.clear();
        let Ok(end) = fs.readdir(cx, open, from, &mut buf) else {
            return;
        };
        for entry in buf.iter() {
            let name = Name::new(entry.name).expect("readdir gave a bad name");
            let _ = fs.lookup(cx, dir, name);
            found.push((entry.node, entry.kind));
        }
        match buf.last_cookie() {
            Some(last) if !end && found.len() <= WALK_MAX => from = last,
            _ => return,
        }
    }
}

/// Looks at nodes that nobody named.
pub(crate) fn strangers(fs: &Fs, cx: &Ctx<'_>, numbers: impl Iterator<Item = u64>) {
    for node in numbers.filter_map(|number| NodeId::new(number, 0)) {
        let _ = fs.getattr(cx, node);
    }
}

/// Checks that a look-up finds each name of a listing, with the same kind. Damage can make two names
/// alike; a look-up then finds one of them.
pub(crate) fn agree(fs: &Fs, cx: &Ctx<'_>, nodes: &[(NodeId, FileKind)]) {
    for &(node, _) in nodes.iter().filter(|(_, kind)| *kind == FileKind::Dir) {
        let Ok(open) = fs.open(cx, node, Mode::Read) else {
            continue;
        };
        let mut out = DirBuf::new(64, 8192, true);
        let _ = fs.readdir(cx, open, Cookie::START, &mut out);
        for entry in out.iter() {
            let mut alike = out.iter().filter(|other| other.name == entry.name);
            if let Ok(there) = fs.lookup(cx, node, name(entry.name)) {
                assert!(alike.any(|other| other.kind == there.attr.kind));
            }
        }
        fs.close(cx, open).expect("close");
    }
}

/// Operations that the input asks for, on nodes that the walk found.
pub(crate) fn operate(fs: &Fs, cx: &Ctx<'_>, nodes: &[(NodeId, FileKind)], input: &mut Input<'_>) {
    let names: [&[u8]; 7] = [
        b"new",
        b"A longer name than eight.three",
        b"d1",
        b"FILE",
        b"x.y",
        b"file 3 with a long name.dat",
        b"file 0",
    ];
    for _ in 0..OPERATIONS_MAX {
        if input.is_empty() {
            return;
        }
        let (node, _) = nodes[usize::from(input.byte()) % nodes.len()];
        let (other, _) = nodes[usize::from(input.byte()) % nodes.len()];
        let first = name(names[usize::from(input.byte()) % names.len()]);
        let second = name(names[usize::from(input.byte()) % names.len()]);
        match input.byte() % 16 {
            0 => drop(fs.lookup(cx, node, first)),
            1 => write(
                fs,
                cx,
                fs.create(cx, node, first, Create::Open, &SetAttr::default())
                    .ok(),
                input,
            ),
            2 => drop(fs.mkdir(cx, node, first, &SetAttr::default())),
            3 => drop(fs.unlink(cx, node, first)),
            4 => drop(fs.rmdir(cx, node, first)),
            5 => drop(fs.rename(cx, node, first, other, second, RenameFlags::REPLACE)),
            6 => drop(fs.setattr(cx, node, &SetAttr::size(u64::from(input.short()) * 16))),
            7 => drop(fs.sync(cx)),
            8 => drop(fs.parent(cx, node)),
            9 => drop(fs.symlink(cx, node, first, b"target", &SetAttr::default())),
            10 => drop(fs.setattr(cx, node, &SetAttr::owned(0o640, 5, 6))),
            11 => drop(fs.link(cx, node, other, second)),
            12 => drop(fs.setxattr(cx, node, b"user.x", input.bytes(9))),
            13 => drop(fs.removexattr(cx, node, b"user.x")),
            14 => drop(fs.mknod(cx, node, first, FileKind::Fifo, 0, &SetAttr::default())),
            _ => drop(fs.getattr(
                cx,
                NodeId {
                    generation: node.generation ^ 1,
                    ..other
                },
            )),
        }
    }
}

fn write(fs: &Fs, cx: &Ctx<'_>, made: Option<(Entry, OpenId)>, input: &mut Input<'_>) {
    if let Some((_, open)) = made {
        let _ = fs.write(cx, open, Some(u64::from(input.short())), &[1; 3000]);
        let _ = fs.read(cx, open, 0, &mut [0; 4000]);
        let _ = fs.close(cx, open);
    }
}

/// Attach, walk, whatever else is to be done, detach; attach for reading, walk.
pub(crate) fn live(
    format: &dyn Format,
    dev: &Arc<Overlay>,
    options: &str,
    act: impl FnOnce(&Fs, &Ctx<'_>, &[(NodeId, FileKind)]),
) {
    let how = attach(options);
    if let Ok(fs) = format.attach(dev.clone(), &how) {
        with_ctx(|cx| {
            let nodes = walk(&fs, cx);
            act(&fs, cx, &nodes);
            let _ = fs.detach(cx);
        });
    }
    let how = Attach {
        read_only: true,
        ..how
    };
    if let Ok(fs) = format.attach(dev.clone(), &how) {
        with_ctx(|cx| drop(walk(&fs, cx)));
    }
}

/// What the format tells without attaching: probe, info, map, dumps.
pub(crate) fn tell(format: &dyn Format, dev: &Arc<Overlay>, dumps: &[&str]) {
    let as_dev = || -> Arc<dyn BlockDevice> { dev.clone() };
    let _ = format.probe(&**dev);
    let _ = format.info(as_dev());
    let _ = format.map(as_dev(), 64);
    for words in dumps {
        let what: Vec<String> = words.splitn(2, ' ').map(str::to_owned).collect();
        let _ = format.dump(as_dev(), &what, &mut String::new());
    }
}

/// Returns what a check found but notes, and how much of it is left; none if it gave up.
pub(crate) fn check(
    format: &dyn Format,
    dev: &Arc<Overlay>,
    mode: CheckMode,
    options: &str,
) -> Option<(Vec<String>, u64)> {
    let how = Check {
        mode,
        now: NOW,
        options: Options::parse(options),
    };
    let mut found = Vec::new();
    let mut tell = |finding: &Finding| {
        if finding.severity != Severity::Note {
            found.push(format!("{}: {}", finding.code, finding.message));
        }
        Answer::Yes
    };
    let report = format.check(dev.clone(), &how, &mut tell, &Quiet).ok()?;
    Some((found, report.left()))
}

/// fsck: looking writes nothing; of what is said to be mended in the mode that the input asks
/// for, a second run finds nothing and writes nothing, and it can be walked.
pub(crate) fn must_mend(format: &dyn Format, dev: Arc<Overlay>, preens: bool, options: &str) {
    let look = check(format, &dev, CheckMode::Look, options);
    assert_eq!(dev.writes(), 0, "fsck -n wrote");
    let mode = if preens {
        CheckMode::Preen
    } else {
        CheckMode::Mend
    };
    let first = check(format, &dev, mode, options);
    if first.as_ref().is_none_or(|(_, left)| *left != 0) {
        return;
    }
    let before = dev.writes();
    for again in [CheckMode::Look, CheckMode::Mend] {
        let found = check(format, &dev, again, options);
        let clean = found == Some((Vec::new(), 0));
        assert!(clean, "{again:?}: {found:?}; at first {look:?}, {first:?}");
    }
    assert_eq!(dev.writes(), before, "a second run wrote");
    let fs = format.attach(dev, &attach(""));
    let fs = fs.expect("mended, but does not attach");
    with_ctx(|cx| drop(walk(&fs, cx)));
}
