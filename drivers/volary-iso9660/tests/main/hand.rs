//! Images made by hand: what the usual makers do not make.

use crate::oracle::content;
use crate::{attach, attach_as};
use volary_core::{FileKind, Fs, Kind, Mode, Name, Result};
use volary_testkit::volumes::as_root;

pub(crate) const SECTOR: usize = 2048;

fn both16(n: u16) -> [u8; 4] {
    let ([a, b], [c, d]) = (n.to_le_bytes(), n.to_be_bytes());
    [a, b, c, d]
}

fn both32(n: u32) -> Vec<u8> {
    [n.to_le_bytes(), n.to_be_bytes()].concat()
}

/// A directory record.
pub(crate) struct Entry<'a> {
    pub(crate) name: &'a [u8],
    pub(crate) block: u32,
    pub(crate) len: u32,
    pub(crate) flags: u8,
    pub(crate) unit: u8,
    pub(crate) system_use: Vec<u8>,
}

impl<'a> Entry<'a> {
    pub(crate) fn file(name: &'a [u8], block: u32, len: u32) -> Self {
        Self {
            name,
            block,
            len,
            flags: 0,
            unit: 0,
            system_use: Vec::new(),
        }
    }

    pub(crate) fn dir(name: &'a [u8], block: u32) -> Self {
        Self {
            flags: 2,
            ..Self::file(name, block, SECTOR as u32)
        }
    }

    pub(crate) fn with(self, system_use: &[u8]) -> Self {
        Self {
            system_use: [&self.system_use, system_use].concat(),
            ..self
        }
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = vec![0, 0];
        out.extend(both32(self.block));
        out.extend(both32(self.len));
        out.extend([126, 11, 22, 12, 0, 0, 0]);
        out.extend([self.flags, self.unit, 0]);
        out.extend(both16(1));
        out.push(self.name.len() as u8);
        out.extend(self.name);
        if self.name.len().is_multiple_of(2) {
            out.push(0);
        }
        out.extend(&self.system_use);
        if out.len() % 2 == 1 {
            out.push(0);
        }
        out[0] = out.len() as u8;
        out
    }
}

/// Where the root directory is, and the first block after it.
pub(crate) const ROOT: u32 = 20;
const FREE: u32 = 21;

/// A volume of 64 sectors.
pub(crate) struct Image(Vec<u8>);

impl Image {
    pub(crate) fn new() -> Self {
        let mut image = Self(vec![0; 64 * SECTOR]);
        let root = Entry::dir(&[0], ROOT).bytes();
        image.put(16, 0, b"\x01CD001\x01");
        image.put(16, 8, &[b' '; 64]);
        image.put(16, 80, &both32(64));
        image.put(16, 120, &both16(1));
        image.put(16, 124, &both16(1));
        image.put(16, 128, &both16(2048));
        image.put(16, 132, &both32(10));
        image.put(16, 140, &18u32.to_le_bytes());
        image.put(16, 148, &18u32.to_be_bytes());
        image.put(16, 156, &root);
        image.put(16, 881, &[1]);
        image.put(17, 0, b"\xffCD001\x01");
        let mut table = vec![1, 0];
        table.extend(ROOT.to_le_bytes());
        table.extend([1, 0, 0, 0]);
        image.put(18, 0, &table);
        image
    }

    /// With this many sectors.
    pub(crate) fn long(mut self, sectors: u32) -> Self {
        self.0.resize(sectors as usize * SECTOR, 0);
        self.put(16, 80, &both32(sectors));
        self
    }

    pub(crate) fn put(&mut self, block: u32, at: usize, bytes: &[u8]) {
        let at = block as usize * SECTOR + at;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Makes a block a directory of these.
    pub(crate) fn directory(&mut self, block: u32, parent: u32, entries: &[Entry<'_>]) {
        let own = [Entry::dir(&[0], block), Entry::dir(&[1], parent)];
        let all = own.iter().chain(entries);
        self.put(block, 0, &all.flat_map(Entry::bytes).collect::<Vec<_>>());
    }

    /// The root with Rock Ridge.
    pub(crate) fn rocky(&mut self, entries: &[Entry<'_>]) {
        let sp = [b'S', b'P', 7, 1, 0xbe, 0xef, 0];
        let own = [
            Entry::dir(&[0], ROOT).with(&sp).with(&px(0o40755, 2)),
            Entry::dir(&[1], ROOT),
        ];
        let all = own.iter().chain(entries);
        self.put(ROOT, 0, &all.flat_map(Entry::bytes).collect::<Vec<_>>());
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

pub(crate) fn px(mode: u32, links: u32) -> Vec<u8> {
    let numbers = [mode, links, 7, 8].map(both32).concat();
    [b"PX\x24\x01", &numbers[..]].concat()
}

pub(crate) fn ce(block: u32, at: u32, len: u32) -> Vec<u8> {
    let numbers = [block, at, len].map(both32).concat();
    [b"CE\x1c\x01", &numbers[..]].concat()
}

fn nm(flags: u8, text: &[u8]) -> Vec<u8> {
    [&[b'N', b'M', 5 + text.len() as u8, 1, flags], text].concat()
}

/// One file in three sections that lie apart, the last one short.
pub(crate) fn in_sections() -> Vec<u8> {
    let mut image = Image::new();
    let section = |block, len, flags| Entry {
        flags,
        ..Entry::file(b"BIG.BIN;1", block, len)
    };
    image.directory(
        ROOT,
        ROOT,
        &[
            section(40, 4096, 0x80),
            section(30, 2048, 0x80),
            section(50, 100, 0),
            Entry::file(b"OTHER.;1", 31, 5),
        ],
    );
    for block in 22..60 {
        image.put(block, 0, &[block as u8; SECTOR]);
    }
    image.bytes()
}

fn find(fs: &Fs, name: &str) -> Result<volary_core::Entry> {
    as_root(|cx| fs.lookup(cx, fs.root(), Name::new(name.as_bytes())?))
}

#[test]
fn a_file_in_sections_is_one() {
    let fs = attach(&in_sections());
    let attr = find(&fs, "big.bin").unwrap().attr;
    assert_eq!(attr.size, 4096 + 2048 + 100);
    let want = [
        vec![40; 2048],
        vec![41; 2048],
        vec![30; 2048],
        vec![50; 100],
    ]
    .concat();
    assert_eq!(content(&fs, &attr), want);
    assert_eq!(find(&fs, "other").unwrap().attr.size, 5);
    as_root(|cx| {
        let open = fs.open(cx, attr.node, Mode::Read).unwrap();
        let mut part = [0; 10];
        assert_eq!(fs.read(cx, open, 4091, &mut part).unwrap(), 10);
        assert_eq!(part, [41, 41, 41, 41, 41, 30, 30, 30, 30, 30]);
        assert_eq!(fs.read(cx, open, 6240, &mut part).unwrap(), 4);
        assert_eq!(fs.read(cx, open, 9999, &mut part).unwrap(), 0);
        let mut extents = Vec::new();
        fs.extents(cx, open, 10, 6200, &mut extents).unwrap();
        let lens: Vec<_> = extents.iter().map(|e| (e.offset, e.len)).collect();
        assert_eq!(lens, [(10, 4086), (4096, 2048), (6144, 66)]);
        fs.close(cx, open).unwrap();
    });
}

#[test]
fn an_interleaved_file_is_refused_when_it_is_opened() {
    let mut image = Image::new();
    let file = Entry {
        unit: 2,
        ..Entry::file(b"A.;1", 30, 5)
    };
    image.directory(ROOT, ROOT, &[file]);
    let fs = attach(&image.bytes());
    let node = find(&fs, "a").unwrap().node;
    let refused = as_root(|cx| fs.open(cx, node, Mode::Read)).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unsupported);
    assert!(refused.to_string().contains("interleaved"));
}

#[test]
fn names_and_targets_go_on_in_other_areas() {
    let mut image = Image::new();
    let area = [nm(1, b" and"), ce(FREE, 100, 20)].concat();
    image.put(FREE, 0, &area);
    image.put(FREE, 100, &nm(0, b" the rest"));
    let file = Entry::file(b"A.;1", 30, 5)
        .with(&px(0o100_644, 1))
        .with(&nm(1, b"long"))
        .with(&ce(FREE, 0, area.len() as u32));
    let link = Entry::file(b"B.;1", 0, 0)
        .with(&px(0o120_777, 1))
        .with(b"SL\x0c\x01\x00\x08\x00\x00\x03etc");
    image.rocky(&[file, link]);
    let fs = attach(&image.bytes());
    let attr = find(&fs, "long and the rest").unwrap().attr;
    assert_eq!((attr.mode, attr.uid, attr.gid), (0o644, 7, 8));
    let link = find(&fs, "b").unwrap().node;
    assert_eq!(as_root(|cx| fs.readlink(cx, link)).unwrap(), b"/etc");
}

#[test]
fn areas_that_lead_to_themselves_are_damage() {
    let mut image = Image::new();
    image.put(FREE, 0, &ce(FREE, 0, 28));
    let file = Entry::file(b"A.;1", 30, 5).with(&ce(FREE, 0, 28));
    image.rocky(&[file]);
    let e = find(&attach(&image.bytes()), "a").unwrap_err();
    assert_eq!(e.as_corrupt().unwrap().what, "CE");
}

#[test]
fn a_moved_directory_is_seen_where_it_belongs() {
    let mut image = Image::new();
    let cl = [b"CL\x0c\x01", &both32(23)[..]].concat();
    let place = Entry::file(b"DEEP.;1", 0, 0)
        .with(&px(0o40755, 2))
        .with(&nm(0, b"Deep"))
        .with(&cl);
    let moved = Entry::dir(b"RR_MOVED", 22)
        .with(&px(0o40755, 2))
        .with(&nm(0, b"rr_moved"));
    image.rocky(&[place, moved]);
    let stays = Entry::dir(b"DEEP", 23)
        .with(&px(0o40755, 2))
        .with(b"RE\x04\x01");
    image.directory(22, ROOT, &[stays]);
    let pl = [b"PL\x0c\x01", &both32(ROOT)[..]].concat();
    let own = [
        Entry::dir(&[0], 23).with(&px(0o40711, 2)),
        Entry::dir(&[1], 22).with(&pl),
    ];
    image.put(
        23,
        0,
        &own.iter().flat_map(Entry::bytes).collect::<Vec<_>>(),
    );
    let fs = attach(&image.bytes());
    let deep = find(&fs, "Deep").unwrap();
    assert_eq!((deep.attr.kind, deep.attr.mode), (FileKind::Dir, 0o711));
    as_root(|cx| {
        assert_eq!(fs.parent(cx, deep.node).unwrap().node, fs.root());
        let moved = find(&fs, "rr_moved").unwrap().node;
        let name = Name::new(b"deep").unwrap();
        assert_eq!(fs.lookup(cx, moved, name).unwrap_err(), Kind::NotFound);
    });
}

#[test]
fn ids_that_are_none_are_stale() {
    let fs = attach(&in_sections());
    let good = find(&fs, "big.bin").unwrap().node;
    as_root(|cx| {
        for (ino, generation) in [
            (good.ino.get() + 1, 0),
            (good.ino.get(), 1),
            (1, 0),
            (u64::MAX, 0),
            // The second section is no file by itself, but nothing tells it from one.
            (u64::from(ROOT) * 2048 + 34, 0),
        ] {
            let id = volary_core::NodeId::new(ino, generation).unwrap();
            assert_eq!(fs.getattr(cx, id).unwrap_err(), Kind::Stale, "{ino}");
        }
        assert_eq!(fs.getattr(cx, good).unwrap().node, good);
        assert_eq!(fs.getattr(cx, fs.root()).unwrap().kind, FileKind::Dir);
    });
}

#[test]
fn options_and_places_that_make_no_sense_are_refused() {
    for (options, words) in [
        ("names=joliet", "no Joliet names"),
        ("names=rock", "no Rock Ridge names"),
        ("names=dos", "expected auto or rock"),
        ("nope", "unknown option"),
    ] {
        let e = attach_as(&in_sections(), options).err().unwrap();
        assert_eq!(e.kind(), Kind::Invalid);
        assert!(e.to_string().contains(words), "{e}");
    }
    let fs = attach(&in_sections());
    as_root(|cx| {
        let open = fs.open(cx, fs.root(), Mode::Read).unwrap();
        let mut out = volary_core::DirBuf::new(9, 999, false);
        for at in [1, 33, 35, 2049] {
            let place = volary_core::Cookie(at);
            let read = fs.readdir(cx, open, place, &mut out);
            assert_eq!(read.unwrap_err(), Kind::Invalid, "{at}");
        }
    });
}
