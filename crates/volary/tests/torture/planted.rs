//! Mistakes planted between a driver and its device, each of which must be
//! caught: tests of the tests.
//!
//! A layer sees which part of the volume a write goes to, and drops it, delays
//! it, or puts it elsewhere. What the driver does is right; what reaches the
//! trace is not.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use volary::torture::{Bounds, Depth, Explorer, Ops, Volume, volume};
use volary::{BlockDevice, Geometry, Result};

/// What the bytes of a volume are for.
type Part = &'static str;
const BOOT: Part = "boot sector";
const INFO: Part = "FSInfo";
const FIRST_FAT: Part = "first FAT";
const OTHER_FAT: Part = "other FAT";
/// Of FAT12.
const ROOT_DIR: Part = "root directory";
const SUPERBLOCK: Part = "superblock";
const GROUP: Part = "heads of groups";
const INODES: Part = "inodes";
const REST: Part = "rest";

/// What is done wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mistake {
    /// Flushes do nothing.
    NoFlush,
    /// Each n-th flush of an attachment, counted from 0, does nothing.
    OneFlush(usize),
    /// Writes to a part are lost.
    Lost(Part),
    /// Writes to a part come after the next flush.
    Late(Part),
    /// What is written between every other flush comes in the opposite order,
    /// each write durable before the next.
    Swapped,
    /// Only the first sector of each write to a part is written.
    Short(Part),
    /// Writes to a part go to the sector after it.
    Misplaced(Part),
    /// Writes to a part have a wrong bit.
    Flipped(Part),
    /// The third write to a part, and only that, is lost.
    ThirdLost(Part),
}

const FAT: [(&str, Mistake); 20] = [
    ("fat12", Mistake::NoFlush),
    ("fat12", Mistake::OneFlush(0)),
    ("fat12", Mistake::OneFlush(1)),
    ("fat12", Mistake::OneFlush(2)),
    ("fat12", Mistake::OneFlush(3)),
    ("fat12", Mistake::Lost(FIRST_FAT)),
    ("fat12", Mistake::Lost(OTHER_FAT)),
    ("fat12", Mistake::Lost(ROOT_DIR)),
    ("fat12", Mistake::Lost(REST)),
    ("fat32", Mistake::Lost(INFO)),
    ("fat12", Mistake::Late(FIRST_FAT)),
    ("fat12", Mistake::Late(REST)),
    ("fat12", Mistake::Late(ROOT_DIR)),
    ("fat12", Mistake::Swapped),
    ("fat12", Mistake::Short(REST)),
    ("fat12", Mistake::Misplaced(REST)),
    ("fat12", Mistake::Misplaced(ROOT_DIR)),
    ("fat12", Mistake::Flipped(FIRST_FAT)),
    ("fat12", Mistake::ThirdLost(REST)),
    // It never says that the volume is in use.
    ("fat12", Mistake::Lost(BOOT)),
];

const FFS: [(&str, Mistake); 18] = [
    ("ffs1", Mistake::NoFlush),
    ("ffs1", Mistake::OneFlush(0)),
    ("ffs1", Mistake::OneFlush(1)),
    ("ffs1", Mistake::OneFlush(2)),
    ("ffs1", Mistake::OneFlush(3)),
    ("ffs2", Mistake::Lost(SUPERBLOCK)),
    ("ffs1", Mistake::Lost(GROUP)),
    ("ffs2", Mistake::Lost(INODES)),
    ("ffs1", Mistake::Lost(REST)),
    ("ffs1", Mistake::Late(GROUP)),
    ("ffs1", Mistake::Late(INODES)),
    ("ffs2", Mistake::Late(REST)),
    ("ffs1", Mistake::Swapped),
    ("ffs1", Mistake::Short(REST)),
    ("ffs1", Mistake::Misplaced(INODES)),
    ("ffs2", Mistake::Misplaced(REST)),
    ("ffs1", Mistake::Flipped(GROUP)),
    ("ffs2", Mistake::ThirdLost(REST)),
];

/// Which mistake the next layer makes: a row of [`Volume`] has room for a
/// function only. One test plants them all, one after the other.
static PLANTED: Mutex<Mistake> = Mutex::new(Mistake::NoFlush);

struct Planted {
    dev: Arc<dyn BlockDevice>,
    mistake: Mistake,
    state: Mutex<State>,
    /// In order; what is in none is the rest.
    parts: Vec<(Range<u64>, Part)>,
}

#[derive(Default)]
struct State {
    flushes: usize,
    writes: usize,
    held: Vec<(u64, Vec<u8>)>,
}

fn plant(dev: Arc<dyn BlockDevice>, parts: Vec<(Range<u64>, Part)>) -> Arc<dyn BlockDevice> {
    Arc::new(Planted {
        dev,
        mistake: *PLANTED.lock().unwrap(),
        state: Mutex::default(),
        parts,
    })
}

fn in_fat(dev: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let mut boot = [0; 512];
    dev.read_at(0, &mut boot).unwrap();
    let word = |at: usize| u64::from(u16::from_le_bytes([boot[at], boot[at + 1]]));
    let (reserved, root) = (word(14), word(17) * 32);
    // FAT32 has an FSInfo sector after the boot sector.
    let (fat, info) = match word(22) {
        0 => (word(36), 1024),
        fat => (fat, 512),
    };
    let second = (reserved + fat) * 512;
    let root_at = second + fat * 512;
    let parts = vec![
        (0..512, BOOT),
        (512..info, INFO),
        (info..reserved * 512, BOOT),
        (reserved * 512..second, FIRST_FAT),
        (second..root_at, OTHER_FAT),
        (root_at..root_at + root, ROOT_DIR),
    ];
    plant(dev, parts)
}

fn in_ffs(dev: Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice> {
    let mut field = [0; 4];
    // UFS1's superblock, or UFS2's.
    let magic = [8192, 65_536].into_iter().find(|at| {
        dev.read_at(at + 1372, &mut field).unwrap();
        [0x0001_1954, 0x1954_0119].contains(&u32::from_le_bytes(field))
    });
    let superblock = magic.unwrap();
    let number = |at: u64| {
        let mut field = [0; 4];
        dev.read_at(superblock + at, &mut field).unwrap();
        u64::from(u32::from_le_bytes(field))
    };
    // fs_cblkno, fs_iblkno, fs_dblkno; fs_fsize; fs_ncg and fs_fpg; fs_old_cgoffset and its mask.
    let [heads, inodes, content] = [12, 16, 20].map(number);
    let (fragment, groups, len) = (number(52), number(44), number(188));
    let (offset, mask) = (number(24), number(28) as u32);
    let mut parts = vec![(superblock..superblock + 8192, SUPERBLOCK)];
    for group in 0..groups {
        let start = group * len + offset * u64::from(group as u32 & !mask);
        let at = |n: u64| (start + n) * fragment;
        parts.push((at(heads)..at(inodes), GROUP));
        parts.push((at(inodes)..at(content), INODES));
    }
    plant(dev, parts)
}

impl Planted {
    fn part(&self, offset: u64) -> Part {
        let found = self.parts.iter().find(|(part, _)| part.contains(&offset));
        found.map_or(REST, |(_, part)| *part)
    }
}

impl BlockDevice for Planted {
    fn geometry(&self) -> Geometry {
        self.dev.geometry()
    }

    /// The driver sees what it wrote.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.dev.read_at(offset, buf)?;
        for (at, data) in &self.state.lock().unwrap().held {
            for (i, byte) in data.iter().enumerate() {
                let at = (at + i as u64).checked_sub(offset);
                if let Some(place) = at.and_then(|at| buf.get_mut(at as usize)) {
                    *place = *byte;
                }
            }
        }
        Ok(())
    }

    fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        let part = self.part(offset);
        let mut state = self.state.lock().unwrap();
        match self.mistake {
            Mistake::Lost(p) if p == part => Ok(()),
            Mistake::Late(p) if p == part => {
                state.held.push((offset, data.to_vec()));
                Ok(())
            }
            Mistake::Swapped => {
                state.held.push((offset, data.to_vec()));
                Ok(())
            }
            Mistake::Short(p) if p == part => {
                let end = (offset / 512 + 1) * 512 - offset;
                let len = data.len().min(end as usize);
                self.dev.write_at(offset, &data[..len])
            }
            Mistake::Misplaced(p) if p == part => {
                let fits = offset + 512 + data.len() as u64 <= self.geometry().size;
                self.dev.write_at(offset + if fits { 512 } else { 0 }, data)
            }
            Mistake::Flipped(p) if p == part => {
                let mut wrong = data.to_vec();
                let middle = wrong.len() / 8;
                wrong[middle] ^= 0x10;
                self.dev.write_at(offset, &wrong)
            }
            Mistake::ThirdLost(p) if p == part => {
                state.writes += 1;
                if state.writes == 3 {
                    return Ok(());
                }
                self.dev.write_at(offset, data)
            }
            _ => self.dev.write_at(offset, data),
        }
    }

    fn flush(&self) -> Result<()> {
        let mut state = self.state.lock().unwrap();
        let nth = state.flushes;
        state.flushes += 1;
        match self.mistake {
            Mistake::OneFlush(n) if n == nth => Ok(()),
            Mistake::Late(_) => {
                self.dev.flush()?;
                let held = std::mem::take(&mut state.held);
                held.iter()
                    .try_for_each(|(at, data)| self.dev.write_at(*at, data))
            }
            Mistake::Swapped if nth % 2 == 1 => {
                let held = std::mem::take(&mut state.held);
                for (at, data) in held.iter().rev() {
                    self.dev.write_at(*at, data)?;
                    self.dev.flush()?;
                }
                Ok(())
            }
            Mistake::NoFlush | Mistake::Swapped => Ok(()),
            _ => self.dev.flush(),
        }
    }
}

/// Scripts that go through all that the order of writes is there for.
const SCRIPTS: [&str; 6] = [
    "create /new; write /new 0 3000; sync; detach",
    "write /a 1400 4000; sync; unlink /a; sync; create /new; write /new 0 2000; sync; detach",
    "rename /a /d/a; sync; rename /d/b /x; sync; detach",
    "create /full/9; create /full/10; create /full/11; create /full/12; sync; detach",
    "mkdir /new; create /new/f; write /new/f 0 900; sync; rename /new /d/new; sync; detach",
    "truncate /a 0; sync; write /a 0 800; sync; write /d/b 0 2400; sync; detach",
];

fn explore(row: &Volume) -> std::result::Result<(), String> {
    let depth = Depth {
        bounds: Bounds {
            eager: 8,
            random: 64,
            garbage: false,
            seed: 1,
        },
        ..Depth::default()
    };
    let mut explorer = Explorer::new(row, depth)?;
    for script in SCRIPTS {
        let script: Ops = script.parse()?;
        explorer.explore(&script).map_err(|f| f.to_string())?;
    }
    Ok(())
}

type Plant = fn(Arc<dyn BlockDevice>) -> Arc<dyn BlockDevice>;

fn catch(plant: Plant, mistakes: &[(&str, Mistake)]) {
    let mut missed = Vec::new();
    for &(name, mistake) in mistakes {
        *PLANTED.lock().unwrap() = mistake;
        let row = Volume {
            between: Some(plant),
            ..*volume(name).unwrap()
        };
        match explore(&row) {
            Err(what) => {
                let line = what.lines().next().unwrap_or_default().to_owned();
                println!("{name}, {mistake:?}: {line}");
            }
            Ok(()) => missed.push((name, mistake)),
        }
    }
    assert!(missed.is_empty(), "not caught: {missed:?}");
}

#[test]
fn each_mistake_in_the_order_of_writes_is_caught() {
    for name in ["fat12", "fat32", "ffs1", "ffs2"] {
        let row = volume(name).unwrap();
        explore(row).unwrap_or_else(|what| panic!("{name} without a mistake: {what}"));
    }
    catch(in_fat, &FAT);
    catch(in_ffs, &FFS);
}
