//! The target for NTFS, on a volume that is laid out by hand.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{bound, check, live, strangers, tell};
use std::sync::{Arc, OnceLock};
use volary_core::CheckMode;
use volary_ntfs::NTFS;

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
/// Bytes of a cluster, of a record and of an index block.
const CLUSTER: usize = 1024;
const CLUSTERS: usize = 192;
const MFT: usize = 4;
const RECORDS: usize = 32;
const MIRROR: usize = 36;
/// Blocks of the root's index, clusters of files, and the table of upper-case forms.
const INDEX: usize = 40;
const DATA: usize = 42;
const UPCASE: usize = 60;
/// Records of files.
const FIRST: usize = 16;

/// Clusters with structures.
const HOT: &[usize] = &[
    0,
    MFT,
    MFT + 5,
    MFT + 6,
    MFT + 9,
    MFT + 10,
    MFT + 16,
    MFT + 17,
    MFT + 18,
    MFT + 19,
    MFT + 20,
    MFT + 21,
    MFT + 22,
    MFT + 23,
    MFT + 24,
    MFT + 25,
    INDEX,
    INDEX + 1,
    DATA,
    MIRROR,
];

/// Attach in every way, walk, read; check, info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let options = [
        "",
        "show_sys_files",
        "permissions",
        "show_sys_files,permissions",
    ];
    let options = options[usize::from(input.byte()) % options.len()];
    live(&NTFS, &dev, options, |fs, cx, _| {
        strangers(
            fs,
            cx,
            (0..RECORDS as u64 + 4).chain([1 << 32, 1 << 48 | 17, u64::MAX]),
        );
    });
    let _ = check(&NTFS, &dev, CheckMode::Look, "");
    let dumps = [
        "boot",
        "record",
        "record 17",
        "record 20",
        "list 19",
        "runs 0",
        "runs 19",
        "index",
        "index /dir",
        "security 16",
        "bitmap",
    ];
    tell(&NTFS, &dev, &dumps);
    let _ = volary_core::Format::replica(&NTFS, &*dev);
    assert_eq!(dev.writes(), 0, "it wrote");
    heap::limit(usize::MAX);
}

/// Returns a good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASE: OnceLock<Arc<[u8]>> = OnceLock::new();
    let base = BASE.get_or_init(|| image().into()).clone();
    Overlay::damaged(base, FUEL, input, |input| {
        let cluster = HOT[usize::from(input.byte()) % HOT.len()];
        let within = usize::from(input.short()) % CLUSTER;
        (cluster * CLUSTER + within) as u64
    })
}

fn wide(text: &str) -> Vec<u8> {
    text.encode_utf16().flat_map(u16::to_le_bytes).collect()
}

fn padded(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.resize(bytes.len().next_multiple_of(8), 0);
    bytes
}

/// Returns an attribute of a type with a name, whose value is here.
fn here(kind: u32, name: &str, id: u16, value: &[u8]) -> Vec<u8> {
    let units = wide(name);
    let from = (24 + units.len()).next_multiple_of(8);
    let len = (from + value.len()).next_multiple_of(8);
    let mut out = [kind, len as u32].map(u32::to_le_bytes).concat();
    out.extend([0, (units.len() / 2) as u8, 24, 0, 0, 0]);
    out.extend(id.to_le_bytes());
    out.extend((value.len() as u32).to_le_bytes());
    out.extend((from as u16).to_le_bytes());
    out.extend([0, 0]);
    out.extend(&units);
    out.resize(from, 0);
    out.extend(value);
    padded(out)
}

/// Clusters of an attribute: from which to before which, mapping pairs, sizes in bytes.
struct Map<'a> {
    flags: u16,
    clusters: (u64, u64),
    pairs: &'a [u8],
    size: u64,
    initialized: u64,
}

fn mapped(kind: u32, name: &str, id: u16, map: &Map<'_>) -> Vec<u8> {
    let units = wide(name);
    let from = (72 + units.len()).next_multiple_of(8);
    let len = (from + map.pairs.len()).next_multiple_of(8);
    let mut out = [kind, len as u32].map(u32::to_le_bytes).concat();
    out.extend([1, (units.len() / 2) as u8, 72, 0]);
    out.extend(map.flags.to_le_bytes());
    out.extend(id.to_le_bytes());
    let (first, end) = map.clusters;
    out.extend([first, end.wrapping_sub(1)].map(u64::to_le_bytes).concat());
    out.extend((from as u16).to_le_bytes());
    out.extend([if map.flags == 0 { 0 } else { 4 }, 0, 0, 0, 0, 0]);
    let (allocated, taken) = match map.flags {
        0 => (map.size.next_multiple_of(CLUSTER as u64), 0),
        1 => (map.size.next_multiple_of(16 * CLUSTER as u64), 1024),
        _ => (map.size.next_multiple_of(16 * CLUSTER as u64), 6 * 1024),
    };
    out.extend(
        [allocated, map.size, map.initialized, taken]
            .map(u64::to_le_bytes)
            .concat(),
    );
    out.extend(&units);
    out.resize(from, 0);
    out.extend(map.pairs);
    padded(out)
}

fn standard(flags: u32) -> Vec<u8> {
    let mut value = [132_000_000_000_000_000u64; 4]
        .map(u64::to_le_bytes)
        .concat();
    value.extend([flags, 0, 0, 0, 0, 0x100].map(u32::to_le_bytes).concat());
    value.extend([0; 16]);
    here(0x10, "", 1, &value)
}

const SEQUENCE: u64 = 1 << 48;

fn file_name(parent: u64, flags: u32, name: &str) -> Vec<u8> {
    let mut value = (parent | SEQUENCE).to_le_bytes().to_vec();
    value.extend([0; 48]);
    value.extend([flags, 0].map(u32::to_le_bytes).concat());
    let units = wide(name);
    value.extend([(units.len() / 2) as u8, 3]);
    value.extend(units);
    value
}

fn named(parent: u64, flags: u32, name: &str) -> Vec<u8> {
    [
        standard(flags),
        here(0x30, "", 2, &file_name(parent, flags, name)),
    ]
    .concat()
}

/// Returns an entry of an index: what it leads to, its key, and the block below.
fn entry(to: u64, key: &[u8], below: Option<u64>) -> Vec<u8> {
    let flags = u16::from(below.is_some()) | if key.is_empty() { 2 } else { 0 };
    let len = (16 + key.len()).next_multiple_of(8) + if below.is_some() { 8 } else { 0 };
    let mut out = to.to_le_bytes().to_vec();
    out.extend(
        [len as u16, key.len() as u16, flags, 0]
            .map(u16::to_le_bytes)
            .concat(),
    );
    out.extend(key);
    out = padded(out);
    out.extend(below.map(u64::to_le_bytes).into_iter().flatten());
    out
}

fn index_head(from: usize, entries: &[u8], flags: u8) -> Vec<u8> {
    let len = from + entries.len();
    let mut out = [from as u32, len as u32, len as u32]
        .map(u32::to_le_bytes)
        .concat();
    out.extend([flags, 0, 0, 0]);
    out
}

fn root_of(kind: u32, collation: u32, entries: &[u8], flags: u8) -> Vec<u8> {
    let mut out = [kind, collation, CLUSTER as u32, 1]
        .map(u32::to_le_bytes)
        .concat();
    out.extend(index_head(16, entries, flags));
    out.extend(entries);
    out
}

struct Image(Vec<u8>);

impl Image {
    fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Takes the place of the last word of each 512 bytes.
    fn protect(&mut self, at: usize, usa: usize) {
        self.put(at + usa, &[7, 0]);
        for stride in 0..CLUSTER / 512 {
            let last = at + (stride + 1) * 512 - 2;
            let word = [self.0[last], self.0[last + 1]];
            self.put(at + usa + 2 + 2 * stride, &word);
            self.put(last, &[7, 0]);
        }
    }

    fn record(&mut self, number: usize, flags: u16, base: u64, attrs: &[u8]) {
        let at = (MFT + number) * CLUSTER;
        let in_use = 56 + attrs.len() + 8;
        self.put(at, b"FILE\x30\0\x03\0");
        let words = [1u16, 1, 56, flags].map(u16::to_le_bytes).concat();
        self.put(at + 16, &words);
        self.put(
            at + 24,
            &[in_use as u32, CLUSTER as u32]
                .map(u32::to_le_bytes)
                .concat(),
        );
        self.put(at + 32, &base.to_le_bytes());
        self.put(at + 40, &[9, 0, 0, 0]);
        self.put(at + 44, &(number as u32).to_le_bytes());
        self.put(at + 56, attrs);
        self.put(at + 56 + attrs.len(), &[0xff; 4]);
        self.protect(at, 0x30);
    }

    fn block(&mut self, cluster: usize, vcn: u64, entries: &[u8]) {
        let at = cluster * CLUSTER;
        self.put(at, b"INDX\x28\0\x03\0");
        self.put(at + 16, &vcn.to_le_bytes());
        self.put(at + 24, &index_head(40, entries, 0));
        self.put(at + 64, entries);
        self.protect(at, 0x28);
    }

    fn boot(&mut self) {
        let mut boot = vec![0; 512];
        boot[3..11].copy_from_slice(b"NTFS    ");
        boot[0xb..0xe].copy_from_slice(&[0, 2, 2]);
        let words = [2 * CLUSTERS as u64, MFT as u64, MIRROR as u64];
        boot[0x28..0x40].copy_from_slice(&words.map(u64::to_le_bytes).concat());
        (boot[0x40], boot[0x44]) = (1, 1);
        boot[510..].copy_from_slice(&[0x55, 0xaa]);
        self.put(0, &boot);
        self.put(CLUSTERS * CLUSTER, &boot);
    }

    fn system(&mut self) {
        let plain = |pairs: &'static [u8], clusters: u64| Map {
            flags: 0,
            clusters: (0, clusters),
            pairs,
            size: clusters * CLUSTER as u64,
            initialized: clusters * CLUSTER as u64,
        };
        let own = |name: &str| named(5, 6, name);
        let data = mapped(
            0x80,
            "",
            3,
            &plain(&[0x11, RECORDS as u8, MFT as u8, 0], RECORDS as u64),
        );
        let bits = here(0xb0, "", 4, &[0x6f, 0x06, 0xff, 0x03]);
        self.record(0, 1, 0, &[own("$MFT"), data, bits].concat());
        let data = mapped(0x80, "", 3, &plain(&[0x11, 4, MIRROR as u8, 0], 4));
        self.record(1, 1, 0, &[own("$MFTMirr"), data].concat());
        self.record(
            2,
            1,
            0,
            &[own("$LogFile"), here(0x80, "", 3, &[0xff; 64])].concat(),
        );
        let about = [
            here(0x60, "", 3, &wide("V")),
            here(0x70, "", 4, &[0, 0, 0, 0, 0, 0, 0, 0, 3, 1, 0, 0]),
        ];
        self.record(3, 1, 0, &[own("$Volume"), about.concat()].concat());
        let mut used = vec![0xff; CLUSTERS / 8];
        used[7] = 0xf0;
        self.record(
            6,
            1,
            0,
            &[own("$Bitmap"), here(0x80, "", 3, &used)].concat(),
        );
        let data = mapped(0x80, "", 3, &plain(&[0x12, 128, 0, UPCASE as u8, 0], 128));
        self.record(10, 1, 0, &[own("$UpCase"), data].concat());
        for unit in 0..=u16::MAX {
            let upper = match unit {
                0x61..=0x7a => unit - 0x20,
                _ => unit,
            };
            self.put(
                UPCASE * CLUSTER + 2 * usize::from(unit),
                &upper.to_le_bytes(),
            );
        }
        self.secure();
    }

    /// One descriptor: all for root, reading for all.
    fn secure(&mut self) {
        let (owner, all) = (
            [1, 1, 0, 0, 0, 0, 0, 5, 18, 0, 0, 0],
            [1, 1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0],
        );
        let mut own = vec![1, 0, 4, 0x80];
        own.extend([20u32, 32, 0, 44].map(u32::to_le_bytes).concat());
        own.extend([owner, owner].concat());
        own.extend([2, 0, 28, 0, 1, 0, 0, 0, 0, 0, 20, 0, 0x21, 0, 0, 0]);
        own.extend(all);
        let mut head = [7u32, 0x100, 0, 0, 20 + own.len() as u32]
            .map(u32::to_le_bytes)
            .concat();
        let mut key = 0x100u32.to_le_bytes().to_vec();
        key.extend(&head);
        let sii = [entry(20 | 20 << 16, &key[..4], None), entry(0, &[], None)];
        let mut first = sii[0].clone();
        first.truncate(20);
        first.extend(&head);
        first[8] = 40;
        head.extend(own);
        let index = root_of(0, 0x10, &[padded(first), sii[1].clone()].concat(), 0);
        let attrs = [
            named(5, 6, "$Secure"),
            here(0x80, "$SDS", 3, &head),
            here(0x90, "$SII", 4, &index),
        ];
        self.record(9, 9, 0, &attrs.concat());
    }

    fn root(&mut self) {
        let name = |number: u64, flags: u32, name: &str| {
            entry(number | SEQUENCE, &file_name(5, flags, name), None)
        };
        let below = entry(22 | SEQUENCE, &file_name(5, 0x1000_0000, "dir"), Some(0));
        let root = root_of(0x30, 1, &[below, entry(0, &[], Some(1))].concat(), 1);
        let blocks = Map {
            flags: 0,
            clusters: (0, 2),
            pairs: &[0x11, 2, INDEX as u8, 0],
            size: 2 * CLUSTER as u64,
            initialized: 2 * CLUSTER as u64,
        };
        let attrs = [
            named(5, 0x1000_0006, "."),
            here(0x90, "$I30", 3, &root),
            mapped(0xa0, "$I30", 4, &blocks),
            here(0xb0, "$I30", 5, &[3, 0, 0, 0, 0, 0, 0, 0]),
        ];
        self.record(5, 3, 0, &attrs.concat());
        let end = entry(0, &[], None);
        let first = [
            name(16, 0, "a"),
            name(18, 0, "b"),
            name(19, 0, "c"),
            name(23, 0x400, "device"),
            end.clone(),
        ];
        self.block(INDEX, 0, &first.concat());
        let second = [
            name(25, 4, "interix"),
            name(21, 0x400, "link"),
            name(17, 0, "mapped"),
            name(24, 0, "sparse"),
            end,
        ];
        self.block(INDEX + 1, 1, &second.concat());
    }

    /// A file of one attribute besides its name.
    fn file(&mut self, number: usize, flags: u32, name: &str, attr: &[u8]) {
        let is_dir = u16::from(flags & 0x1000_0000 != 0);
        let attrs = [&named(5, flags, name)[..], attr].concat();
        self.record(number, 1 | is_dir << 1, 0, &attrs);
    }

    fn files(&mut self) {
        self.file(FIRST, 0, "a", &here(0x80, "", 3, b"resident"));
        let two = Map {
            flags: 0,
            clusters: (0, 3),
            pairs: &[0x11, 2, DATA as u8, 0x11, 1, 5, 0],
            size: 3000,
            initialized: 2500,
        };
        let stream = here(0x80, "stream", 4, b"of a stream");
        let both = [mapped(0x80, "", 3, &two), stream].concat();
        self.file(17, 0, "mapped", &both);
        let packed = Map {
            flags: 1,
            clusters: (0, 16),
            pairs: &[0x11, 1, DATA as u8 + 4, 0x01, 15, 0],
            size: 16_000,
            initialized: 16_000,
        };
        self.file(18, 0x800, "b", &mapped(0x80, "", 3, &packed));
        let chunk = [5, 0xb0, 2, b'x', 0xfc, 0x0f, 0, 0, 0];
        self.put((DATA + 4) * CLUSTER, &chunk);
        let sparse = Map {
            flags: 0x8000,
            clusters: (0, 16),
            pairs: &[0x01, 10, 0x11, 6, DATA as u8 + 6, 0],
            size: 15_000,
            initialized: 12_000,
        };
        self.file(24, 0, "sparse", &mapped(0x80, "", 3, &sparse));
        self.listed();
    }

    fn odd_files(&mut self) {
        self.file(21, 0x400, "link", &here(0xc0, "", 3, &link()));
        let dir = root_of(0x30, 1, &entry(0, &[], None), 0);
        self.file(22, 0x1000_0000, "dir", &here(0x90, "$I30", 3, &dir));
        let numbers = [1u32, 3].map(u32::to_le_bytes).concat();
        let ea = [&[0, 0, 0, 0, 0, 6, 8, 0][..], b"$LXDEV\0", &numbers].concat();
        let tag = here(0xc0, "", 3, &[0x25, 0, 0, 0x80, 0, 0, 0, 0]);
        let device = [tag, here(0xe0, "", 4, &ea)].concat();
        self.file(23, 0x400, "device", &device);
        let target = [b"IntxLNK\x01".to_vec(), wide("to")].concat();
        self.file(25, 4, "interix", &here(0x80, "", 3, &target));
    }

    /// A file whose second run is in another record.
    fn listed(&mut self) {
        let list = |kind: u32, lowest: u64, number: u64, id: u16| {
            let mut out = kind.to_le_bytes().to_vec();
            out.extend([32, 0, 0, 26]);
            out.extend([lowest, number | SEQUENCE].map(u64::to_le_bytes).concat());
            out.extend(id.to_le_bytes());
            padded(out)
        };
        let all = [
            list(0x10, 0, 19, 1),
            list(0x30, 0, 19, 2),
            list(0x80, 0, 19, 3),
            list(0x80, 2, 20, 1),
        ];
        let part = |clusters, pairs| Map {
            flags: 0,
            clusters,
            pairs,
            size: 3500,
            initialized: 3500,
        };
        let attrs = [
            standard(0),
            here(0x20, "", 5, &all.concat()),
            here(0x30, "", 2, &file_name(5, 0, "c")),
            mapped(0x80, "", 3, &part((0, 2), &[0x11, 2, DATA as u8 + 12, 0])),
        ];
        self.record(19, 1, 0, &attrs.concat());
        let more = mapped(0x80, "", 1, &part((2, 4), &[0x11, 2, DATA as u8 + 15, 0]));
        self.record(20, 1, 19 | SEQUENCE, &more);
    }
}

/// Returns a relative symlink of Windows.
fn link() -> Vec<u8> {
    let target = wide("mapped");
    let len = target.len() as u16;
    let mut data = [0, len, len, len, 1, 0].map(u16::to_le_bytes).concat();
    data.extend([&target[..], &target].concat());
    let mut out = 0xa000_000cu32.to_le_bytes().to_vec();
    out.extend((data.len() as u32).to_le_bytes());
    out.extend(data);
    out
}

fn image() -> Vec<u8> {
    let mut image = Image(vec![0; CLUSTERS * CLUSTER + 512]);
    image.boot();
    image.system();
    image.root();
    image.files();
    image.odd_files();
    let first = image.0[MFT * CLUSTER..(MFT + 4) * CLUSTER].to_vec();
    image.put(MIRROR * CLUSTER, &first);
    image.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The volume that inputs damage is a good one, so that they reach all of the driver.
    #[test]
    fn what_is_laid_out_is_read() {
        let dev = Arc::new(Overlay::new(image().into(), FUEL));
        let mut seen = 0;
        live(&NTFS, &dev, "", |_, _, nodes| seen = nodes.len());
        assert_eq!(seen, 10);
        let (found, _) = check(&NTFS, &dev, CheckMode::Look, "").expect("a check");
        // The volume's own files have no names, and nobody has the clusters before the table.
        let found: Vec<_> = found
            .iter()
            .filter(|line| {
                !["bitmap: ", "lost: "]
                    .iter()
                    .any(|code| line.starts_with(code))
            })
            .collect();
        assert!(found.is_empty(), "{found:?}");
    }
}
