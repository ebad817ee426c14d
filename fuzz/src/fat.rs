//! The targets for FAT.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{
    attach, bound, bytes_of, live, make, must_mend, name, operate, tell, with_ctx,
};
use std::sync::{Arc, OnceLock};
use volary_core::{Create, Ctx, Format, Fs, Quiet, SetAttr, Tune};
use volary_fat::FAT;

/// Requests to the device, and KiB, that a run may make: so many, and so many
/// more for each KiB of the image.
const FUEL: u64 = 400_000;
const FUEL_PER_KIB: u64 = 400;

/// Attach, walk, read, write, detach, attach again.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let options = attach_options(input.byte());
    live(&FAT, &dev, options, |fs, cx, nodes| {
        operate(fs, cx, nodes, &mut input);
    });
}

/// fsck: what it says is mended is clean for a second run, and can be walked.
pub fn check(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let choice = input.byte();
    must_mend(&FAT, dev, choice & 1 == 1, check_options(choice >> 1));
}

/// info, map, dump, tune, badsect.
pub fn tools(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let dumps = [
        "boot",
        "fsinfo",
        "fat",
        "dir /",
        "chain /",
        "entry /d1/file 3 with a long name.dat",
        "cluster 5",
        "dir 9",
    ];
    tell(&FAT, &dev, &dumps);
    let _ = FAT.mark_bad(dev.clone(), &[u64::from(input.short())]);
    let how = Tune {
        compact: true,
        label: Some("X".into()),
        ..Tune::default()
    };
    let _ = FAT.tune(dev, &how, &Quiet);
}

fn attach_options(choice: u8) -> &'static str {
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
    texts[usize::from(choice) % texts.len()]
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

/// Returns a good volume with the changes that the input asks for.
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

fn make_base((kind, size, options, attached): Shape) -> Base {
    heap::limit(usize::MAX);
    let dev = Arc::new(Overlay::new(Arc::from(vec![0; size]), u64::MAX));
    make(&FAT, &dev, kind, options);
    let fs = FAT.attach(dev.clone(), &attach(attached));
    let fs = fs.expect("attach");
    with_ctx(|cx| fill(&fs, cx));
    let bytes = bytes_of(&dev);
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
