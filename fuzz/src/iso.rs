//! The target for ISO 9660.

use crate::heap;
use crate::input::Input;
use crate::overlay::Overlay;
use crate::volume::{agree, bound, check, live, strangers, tell};
use std::sync::{Arc, OnceLock};
use volary_core::CheckMode;
use volary_iso9660::ISO9660;

/// Requests to the device, and KiB, that a run may make.
const FUEL: u64 = 4_000_000;
const SECTOR: usize = 2048;

/// Attach in every way, walk, read; check, info, map, dump.
pub fn driver(input: &[u8]) {
    let mut input = Input::new(input);
    let dev = damaged(&mut input);
    bound(&dev);
    let names = ["auto", "joliet", "plain", "iso"];
    let options = format!("names={}", names[usize::from(input.byte()) % 4]);
    live(&ISO9660, &dev, &options, |fs, cx, nodes| {
        let numbers = std::iter::repeat_with(|| u64::from(input.short()) * 2 + 20 * SECTOR as u64);
        strangers(fs, cx, numbers.take(16));
        agree(fs, cx, nodes);
    });
    let _ = check(&ISO9660, &dev, CheckMode::Look, "");
    let dumps = [
        "descriptors",
        "directory",
        "directory 21",
        "path-table",
        "boot",
    ];
    tell(&ISO9660, &dev, &dumps);
    assert_eq!(dev.writes(), 0, "it wrote");
    heap::limit(usize::MAX);
}

/// Returns a good volume with the changes that the input asks for.
fn damaged(input: &mut Input<'_>) -> Arc<Overlay> {
    static BASE: OnceLock<Arc<[u8]>> = OnceLock::new();
    let base = BASE.get_or_init(|| image().into()).clone();
    Overlay::damaged(base, FUEL, input, |input| {
        // Descriptors and directories, which are where the structures are.
        let block = match input.byte() % 12 {
            n @ 0..4 => 16 + u64::from(n),
            n => 16 + u64::from(n) - 2,
        };
        let within = u64::from(input.short()) % SECTOR as u64;
        let within = if input.byte() & 1 == 0 {
            within % 320
        } else {
            within
        };
        block * SECTOR as u64 + within
    })
}

fn both(n: u32) -> Vec<u8> {
    [n.to_le_bytes(), n.to_be_bytes()].concat()
}

/// Returns a directory record.
fn record(name: &[u8], block: u32, len: u32, flags: u8, system_use: &[u8]) -> Vec<u8> {
    let mut out = vec![0, 0];
    out.extend([both(block), both(len)].concat());
    out.extend([
        126,
        11,
        22,
        12,
        0,
        0,
        0,
        flags,
        0,
        0,
        1,
        0,
        0,
        1,
        name.len() as u8,
    ]);
    out.extend(name);
    if name.len().is_multiple_of(2) {
        out.push(0);
    }
    out.extend(system_use);
    out.resize(out.len().next_multiple_of(2), 0);
    out[0] = out.len() as u8;
    out
}

fn field(signature: &[u8; 2], data: &[u8]) -> Vec<u8> {
    [&signature[..], &[4 + data.len() as u8, 1], data].concat()
}

fn posix(mode: u32, links: u32, serial: u32) -> Vec<u8> {
    let numbers = [mode, links, 1, 2, serial].map(both).concat();
    field(b"PX", &numbers)
}

/// A volume of 40 sectors.
struct Image(Vec<u8>);

impl Image {
    fn put(&mut self, block: usize, at: usize, bytes: &[u8]) {
        let at = block * SECTOR + at;
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    fn directory(&mut self, block: usize, records: &[Vec<u8>]) {
        self.put(block, 0, &records.concat());
    }

    fn descriptors(&mut self) {
        for (block, kind, root) in [(16, 1, 21), (17, 2, 25)] {
            self.put(block, 0, &[kind]);
            self.put(block, 1, b"CD001\x01");
            self.put(block, 80, &both(40));
            self.put(block, 128, &[0, 8, 8, 0]);
            self.put(block, 132, &both(10));
            self.put(block, 140, &20u32.to_le_bytes());
            self.put(block, 156, &record(&[0], root, 2048, 2, &[]));
        }
        self.put(17, 88, &[0x25, 0x2f, 0x45]);
        self.put(18, 0, b"\0CD001\x01EL TORITO SPECIFICATION");
        self.put(18, 71, &[26]);
        self.put(19, 0, b"\xffCD001\x01");
        self.put(20, 0, &[1, 0, 21, 0, 0, 0, 1, 0, 0, 0]);
        self.put(26, 0, &[1]);
        self.put(26, 32, &[0x88, 0, 0, 0, 0, 0, 4, 0, 30]);
    }

    fn root(&mut self) {
        let sp = field(b"SP", &[0xbe, 0xef, 0]);
        let er = field(b"ER", b"\x0a\0\0\x01IEEE_P1282");
        let own = [sp, er, posix(0o40755, 3, 1)].concat();
        let more = field(b"CE", &[both(24), both(0), both(40)].concat());
        let target = field(b"SL", b"\0\x08\0\0\x03etc\x04\0");
        let link = [posix(0o120_777, 1, 4), target].concat();
        let twice = posix(0o100_644, 2, 3);
        let long = [twice.clone(), more].concat();
        let times = [&[0x0e][..], &[100, 1, 1, 0, 0, 0, 0].repeat(3)].concat();
        let timed = [posix(0o100_600, 1, 2), field(b"TF", &times)].concat();
        let number = field(b"PN", &[both(0), both(259)].concat());
        let device = [posix(0o20600, 1, 5), number].concat();
        let child = [posix(0o40700, 2, 6), field(b"CL", &both(23))].concat();
        let named = [posix(0o40755, 2, 7), field(b"NM", b"\0moved")].concat();
        self.directory(
            21,
            &[
                record(&[0], 21, 2048, 2, &own),
                record(&[1], 21, 2048, 2, &posix(0o40755, 3, 1)),
                record(b"A.;1", 30, 2048, 0x80, &timed),
                record(b"A.;1", 32, 100, 0, &posix(0o100_600, 1, 2)),
                record(b"B.;1", 33, 99, 0, &twice),
                record(b"C.;1", 33, 99, 0, &long),
                record(b"D", 22, 2048, 2, &named),
                record(b"L.;1", 0, 0, 0, &link),
                record(b"N.;1", 0, 0, 0, &device),
                record(b"M.;1", 0, 0, 0, &child),
            ],
        );
        self.put(24, 0, &field(b"NM", b"\x01long"));
        self.put(24, 9, &field(b"NM", b"\0 name"));
    }

    fn others(&mut self) {
        self.directory(
            22,
            &[
                record(&[0], 22, 2048, 2, &posix(0o40755, 2, 7)),
                record(&[1], 21, 2048, 2, &[]),
                record(b"M", 23, 2048, 2, &field(b"RE", &[])),
            ],
        );
        self.directory(
            23,
            &[
                record(&[0], 23, 2048, 2, &posix(0o40700, 2, 6)),
                record(&[1], 22, 2048, 2, &field(b"PL", &both(21))),
            ],
        );
        self.directory(
            25,
            &[
                record(&[0], 25, 2048, 2, &[]),
                record(&[1], 25, 2048, 2, &[]),
                record(b"\0W\0i\0d\0e", 30, 2048, 0, &[]),
            ],
        );
    }
}

/// Rock Ridge with every field that is known, Joliet, El Torito, a file in sections,
/// one with two names, a directory that was moved.
fn image() -> Vec<u8> {
    let mut image = Image(vec![0; 40 * SECTOR]);
    image.descriptors();
    image.root();
    image.others();
    image.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::volume::name;
    use crate::volume::with_ctx;
    use volary_core::{Attach, Format};

    #[test]
    fn the_volume_is_good_before_it_is_damaged() {
        let dev = Arc::new(Overlay::new(image().into(), FUEL));
        let fs = ISO9660.attach(dev.clone(), &Attach::default()).unwrap();
        with_ctx(|cx| {
            for text in ["a", "b", "long name", "moved", "l", "n", "m"] {
                fs.lookup(cx, fs.root(), name(text.as_bytes())).unwrap();
            }
        });
        let (found, _) = check(&ISO9660, &dev, CheckMode::Look, "").unwrap();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].starts_with("path-table: "), "{found:?}");
    }
}
