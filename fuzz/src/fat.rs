//! The targets for FAT.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use std::sync::{Arc, OnceLock};
use volary_core::{
    Answer, Attach, BlockDevice, Cancel, Check, CheckMode, Cookie, Create, Cred, Ctx, DirBuf,
    Entry, FileKind, Format, Fs, Make, Mode, Name, NodeId, Options, Quiet, RenameFlags, SetAttr,
    Time, Tune,
};
use volary_fat::FAT;

/// Growth of the heap that a run may cause, beside twice the image.
const HEAP: usize = 32 << 20;
/// Requests to the device, and KiB, that a run may make: so many, and so many
/// more for each KiB of the image.
const FUEL: u64 = 400_000;
const FUEL_PER_KIB: u64 = 400;
/// Nodes that a walk looks at.
const WALK_MAX: usize = 2000;

/// Attach, walk, read, write, detach, attach again.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let how = Attach {
        options: attach_options(input.byte()),
        ..attach_bound()
    };
    if let Ok(fs) = FAT.attach(dev.clone(), &how) {
        with_ctx(|cx| {
            let nodes = walk(&fs, cx);
            operate(&fs, cx, &nodes, &mut input);
            let _ = fs.detach(cx);
        });
    }
    if let Ok(fs) = FAT.attach(
        dev,
        &Attach {
            read_only: true,
            ..attach_bound()
        },
    ) {
        with_ctx(|cx| drop(walk(&fs, cx)));
    }
}

/// fsck: what it says is mended is clean for a second run, and can be walked.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let choice = input.byte();
    let options = check_options(choice >> 1);
    let look = check_with(&dev, CheckMode::Look, options);
    assert_eq!(dev.writes(), 0, "fsck -n wrote");
    let first = if choice & 1 == 0 {
        CheckMode::Mend
    } else {
        CheckMode::Preen
    };
    let Some((_, left)) = check_with(&dev, first, options) else {
        return;
    };
    if left != 0 {
        return;
    }
    let before = dev.writes();
    assert_eq!(
        check_with(&dev, CheckMode::Look, options),
        Some((0, 0)),
        "found more; at first: {look:?}"
    );
    assert_eq!(
        check_with(&dev, CheckMode::Mend, options),
        Some((0, 0)),
        "mended twice"
    );
    assert_eq!(dev.writes(), before, "a second run wrote");
    let fs = FAT
        .attach(dev, &attach_bound())
        .expect("mended, but does not attach");
    with_ctx(|cx| drop(walk(&fs, cx)));
}

/// info, map, dump, tune, badsect.
pub fn tools(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let as_dev = || -> Arc<dyn BlockDevice> { dev.clone() };
    let _ = FAT.probe(&*dev);
    let _ = FAT.info(as_dev());
    let _ = FAT.map(as_dev(), 64);
    for words in [
        "boot",
        "fsinfo",
        "fat",
        "dir /",
        "chain /",
        "entry /d1/file 3 with a long name.dat",
        "cluster 5",
        "dir 9",
    ] {
        let what: Vec<String> = words.splitn(2, ' ').map(str::to_owned).collect();
        let _ = FAT.dump(as_dev(), &what, &mut String::new());
    }
    let _ = FAT.mark_bad(as_dev(), &[u64::from(input.short())]);
    let how = Tune {
        compact: true,
        label: Some("X".into()),
        ..Tune::default()
    };
    let _ = FAT.tune(as_dev(), &how, &Quiet);
}

fn bound(dev: &Overlay) {
    let size = usize::try_from(dev.geometry().size).unwrap_or(usize::MAX);
    heap::limit(HEAP + 2 * size);
}

fn attach_bound() -> Attach {
    Attach {
        memory: 4 << 20,
        ..Attach::default()
    }
}

fn attach_options(choice: u8) -> Options {
    let texts = [
        "",
        "unix=on",
        "unix=off",
        "unix=dosfs",
        "names=dos",
        "names=lower",
        "names=unix",
        "iosize=16k",
    ];
    Options::parse(
        texts
            .get(usize::from(choice) % texts.len())
            .copied()
            .unwrap_or_default(),
    )
}

/// Mostly none.
fn check_options(choice: u8) -> &'static str {
    match choice % 16 {
        1 => "unix=dosfs",
        2 => "unix=reset",
        3 => "lost=free",
        4 => "unix=dosfs,lost=free",
        _ => "",
    }
}

/// Findings and those left, or `None` if the check gave up.
fn check_with(dev: &Arc<Overlay>, mode: CheckMode, options: &str) -> Option<(u64, u64)> {
    let how = Check {
        mode,
        now: Time::from_secs(1_700_000_000),
        options: Options::parse(options),
    };
    let report = FAT
        .check(dev.clone(), &how, &mut |_| Answer::Yes, &Quiet)
        .ok()?;
    Some((report.found, report.left()))
}

pub(crate) fn with_ctx<T>(work: impl FnOnce(&Ctx<'_>) -> T) -> T {
    let (cred, cancel) = (Cred::root(), Cancel::new());
    work(&Ctx {
        cred: &cred,
        now: Time::from_secs(1_700_000_000),
        cancel: &cancel,
    })
}

/// A good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    let base = base(input.byte());
    let size = base.bytes.len() as u64;
    let dev = Overlay::new(base.bytes.clone(), FUEL + size / 1024 * FUEL_PER_KIB);
    for _ in 0..input.byte() % 32 {
        let spot = base.spots[usize::from(input.byte()) % base.spots.len()];
        let offset = spot.0 + u64::from(input.short()) % spot.1;
        let len = usize::from(input.byte() % 16) + 1;
        dev.poke(offset, input.bytes(len));
    }
    Arc::new(dev)
}

struct Base {
    bytes: Arc<[u8]>,
    /// Where structures lie: offset and length.
    spots: Vec<(u64, u64)>,
}

/// A volume to begin with: its kind, bytes, and options of mkfs and of the
/// attachment that fills it.
type Shape = (&'static str, usize, &'static str, &'static str);

/// As small as they can be and still have everything: a run's time is mostly
/// that of going through the FAT.
const SMALL: [Shape; 8] = [
    ("fat12", 256 << 10, "", ""),
    ("fat16", 2304 << 10, "cluster=512", ""),
    ("fat32", 512 << 10, "cluster=512,small", ""),
    ("fat12", 256 << 10, "unix", ""),
    ("fat32", 512 << 10, "cluster=512,small,unix", ""),
    ("fat12", 256 << 10, "", "unix=dosfs"),
    ("fat12", 360 << 10, "fats=1,root-entries=112", ""),
    ("fat32", 1 << 20, "sector=1024,cluster=2k,small,fats=3", ""),
];
/// Of the sizes that there are outside.
const LARGE: [Shape; 2] = [("fat16", 9 << 20, "", ""), ("fat32", 40 << 20, "", "")];

/// Small ones mostly. Each is made once, when it is first asked for.
fn base(choice: u8) -> &'static Base {
    static BASES: [OnceLock<Base>; SMALL.len() + LARGE.len()] =
        [const { OnceLock::new() }; SMALL.len() + LARGE.len()];
    let number = match choice {
        0xfe => SMALL.len(),
        0xff => SMALL.len() + 1,
        small => usize::from(small) % SMALL.len(),
    };
    let shapes = || SMALL.iter().chain(&LARGE);
    let shape = shapes().nth(number).expect("a shape");
    BASES[number].get_or_init(|| make_base(*shape))
}

fn make_base((kind, size, make, attach): Shape) -> Base {
    heap::limit(usize::MAX);
    let dev = Arc::new(Overlay::new(Arc::from(vec![0; size]), u64::MAX));
    let how = Make {
        seed: 7,
        options: Options::parse(make),
        ..Make::default()
    };
    FAT.make(dev.clone(), kind, &how).expect("make");
    let how = Attach {
        options: Options::parse(attach),
        ..Attach::default()
    };
    let fs = FAT.attach(dev.clone(), &how).expect("attach");
    with_ctx(|cx| fill(&fs, cx));
    let mut bytes = vec![0; size];
    dev.read_at(0, &mut bytes).expect("read");
    let layout = volary_fat::volume::Layout::read(&*dev).expect("layout");
    let data = layout.cluster_offset(2);
    let last = layout.fat_count - 1;
    let spots = vec![
        (0, 512),
        (512, 4096),
        (layout.fat_offset(0), 512),
        (layout.fat_offset(last), 512),
        (data - 512.min(data), 4096),
        (data, 65_536),
        (0, 65_536),
    ];
    Base {
        bytes: bytes.into(),
        spots,
    }
}

/// Some directories, files and long names.
fn fill(fs: &Fs, cx: &Ctx<'_>) {
    for d in 0..4 {
        let dir_name = format!("d{d}");
        let dir = fs
            .mkdir(
                cx,
                fs.root(),
                name(dir_name.as_bytes()),
                &SetAttr::default(),
            )
            .expect("mkdir");
        for f in 0..12 {
            let file = format!("file {f} with a long name.dat");
            let made = fs.create(
                cx,
                dir.node,
                name(file.as_bytes()),
                Create::New,
                &SetAttr::default(),
            );
            let (_, open) = made.expect("create");
            fs.write(cx, open, Some(0), &vec![f as u8; 300 * (f + d)])
                .expect("write");
            fs.close(cx, open).expect("close");
        }
    }
    fs.detach(cx).expect("detach");
}

fn name(bytes: &[u8]) -> Name<'_> {
    Name::new(bytes).expect("a name")
}

/// Every node that a walk from the root reaches, within a bound; reads a bit
/// of each file.
pub(crate) fn walk(fs: &Fs, cx: &Ctx<'_>) -> Vec<(NodeId, FileKind)> {
    let mut found = vec![(fs.root(), FileKind::Dir)];
    let mut next = 0;
    while let Some(&(node, kind)) = found.get(next) {
        next += 1;
        if found.len() > WALK_MAX {
            break;
        }
        let _ = fs.getattr(cx, node);
        let Ok(open) = fs.open(cx, node, Mode::Read) else {
            continue;
        };
        match kind {
            FileKind::Dir => list(fs, cx, open, &mut found),
            _ => drop(fs.read(cx, open, 100, &mut [0; 5000])),
        }
        let _ = fs.close(cx, open);
    }
    let _ = fs.statfs(cx);
    found
}

fn list(fs: &Fs, cx: &Ctx<'_>, open: volary_core::OpenId, found: &mut Vec<(NodeId, FileKind)>) {
    let mut from = Cookie::START;
    let mut buf = DirBuf::new(64, 8192, true);
    loop {
        buf.clear();
        let Ok(end) = fs.readdir(cx, open, from, &mut buf) else {
            return;
        };
        for entry in buf.iter() {
            assert!(Name::new(entry.name).is_ok(), "readdir gave a bad name");
            found.push((entry.node, entry.kind));
        }
        match buf.last_cookie() {
            Some(last) if !end && found.len() <= WALK_MAX => from = last,
            _ => return,
        }
    }
}

/// Operations that the input asks for, on nodes that the walk found.
pub(crate) fn operate(fs: &Fs, cx: &Ctx<'_>, nodes: &[(NodeId, FileKind)], input: &mut Input<'_>) {
    let names: [&[u8]; 6] = [
        b"new",
        b"A longer name than eight.three",
        b"d1",
        b"FILE",
        b"x.y",
        b"file 3 with a long name.dat",
    ];
    for _ in 0..64 {
        if input.is_empty() {
            return;
        }
        let (node, _) = nodes[usize::from(input.byte()) % nodes.len()];
        let (other, _) = nodes[usize::from(input.byte()) % nodes.len()];
        let first = name(names[usize::from(input.byte()) % names.len()]);
        let second = name(names[usize::from(input.byte()) % names.len()]);
        match input.byte() % 12 {
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

fn write(fs: &Fs, cx: &Ctx<'_>, made: Option<(Entry, volary_core::OpenId)>, input: &mut Input<'_>) {
    if let Some((_, open)) = made {
        let _ = fs.write(cx, open, Some(u64::from(input.short())), &[1; 3000]);
        let _ = fs.read(cx, open, 0, &mut [0; 4000]);
        let _ = fs.close(cx, open);
    }
}
