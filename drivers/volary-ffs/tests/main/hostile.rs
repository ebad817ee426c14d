//! Damaged images: answers, never a panic, never without end.

use crate::makefs::make;
use crate::{attach_as, check, check_device, device, dump, shared};
use volary_core::{Attach, Format, Kind, Name};
use volary_ffs::FFS;
use volary_testkit::rng::{Rng, pattern};
use volary_testkit::volumes::look;

/// A small good volume.
pub(crate) struct Base {
    pub(crate) name: &'static str,
    pub(crate) image: Vec<u8>,
    pub(crate) superblock: usize,
    pub(crate) is_big: bool,
}

impl Base {
    /// Returns where a field is, as `dump` says.
    pub(crate) fn place(&self, topic: &str, field: &str) -> usize {
        let (place, _) = self.field(topic, field);
        usize::from_str_radix(place.trim_start_matches("0x"), 16).expect("a place")
    }

    /// Returns what it holds.
    pub(crate) fn value(&self, topic: &str, field: &str) -> usize {
        self.field(topic, field).1.parse().expect("a number")
    }

    fn field(&self, topic: &str, field: &str) -> (String, String) {
        let text = dump(&self.image, topic).expect("dump");
        let mut lines = text.lines().map(str::split_whitespace);
        let found = lines.find_map(|mut words| {
            let (place, name, value) = (words.next()?, words.next()?, words.next()?);
            (name == field).then(|| (place.to_owned(), value.to_owned()))
        });
        found.unwrap_or_else(|| panic!("no {field} in {text}"))
    }

    /// Returns the number of an inode in the root.
    pub(crate) fn inode(&self, name: &str) -> u64 {
        let fs = attach_as(&self.image, "").expect("attach");
        let name = Name::new(name.as_bytes()).expect("a name");
        let found = crate::as_root(|cx| fs.lookup(cx, fs.root(), name));
        found.expect("lookup").node.ino.get()
    }
}

/// Volumes of both formats and byte orders; none without makefs.
pub(crate) fn bases() -> Vec<Base> {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir(dir.path().join("dir")).expect("mkdir");
    std::fs::write(dir.path().join("file"), pattern(1, 5000)).expect("write");
    std::fs::write(dir.path().join("dir/large"), pattern(2, 60_000)).expect("write");
    std::os::unix::fs::symlink("file", dir.path().join("link")).expect("symlink");
    let ways = [
        ("UFS1", "le", "version=1,bsize=4096,fsize=512"),
        ("UFS1, big-endian", "be", "version=1,bsize=4096,fsize=512"),
        ("UFS2", "le", "version=2,bsize=4096,fsize=512"),
        ("UFS2, big-endian", "be", "version=2,bsize=4096,fsize=512"),
    ];
    let made = ways.into_iter().map_while(|(name, order, format)| {
        let image = make(dir.path(), &["-B", order, "-s", "1m", "-o", format])?;
        Some(Base {
            name,
            image,
            superblock: 8192,
            is_big: order == "be",
        })
    });
    made.collect()
}

fn try_all(bytes: &[u8]) {
    let dev = device(bytes);
    let how = Attach {
        memory: 1 << 20,
        ..Attach::default()
    };
    if let Ok(fs) = FFS.attach(dev.clone(), &how) {
        look(&fs, 60, |_| ());
    }
    let _ = check_device(dev.clone());
    let _ = FFS.info(dev.clone());
    let _ = FFS.map(dev.clone(), 100);
    let _ = FFS.probe(&*dev);
    for topic in [
        "superblock",
        "group 0",
        "bitmap 0",
        "inode 2",
        "inode 4",
        "directory 2",
    ] {
        let what: Vec<String> = topic.split(' ').map(str::to_owned).collect();
        let _ = FFS.dump(dev.clone(), &what, &mut String::new());
    }
}

#[test]
fn every_field_of_the_structures_can_be_wrong() {
    for (which, base) in bases().into_iter().enumerate() {
        let root = base.place("inode 2", "di_mode");
        let file = base.place(&format!("inode {}", base.inode("file")), "di_mode");
        let group = base.place("group 0", "cg_firstfield");
        let block: usize = base.value("inode 2", "di_db") * 512;
        let stretches = [
            (base.superblock, 220),
            (base.superblock + 852, 524),
            (group, 200),
            (root, 256),
            (file, 256),
            (block, 96),
        ];
        for (start, len) in stretches {
            for at in (start..start + len).step_by(4) {
                // Each base has its turn with each value in other fields.
                let values = [[0; 4], [0xff; 4], [0x7f, 0xff, 0xff, 0xff], [0, 0, 0, 1]];
                let mut bytes = base.image.clone();
                bytes[at..at + 4].copy_from_slice(&values[(which + at / 4) % 4]);
                try_all(&bytes);
            }
        }
    }
}

#[test]
fn images_can_end_anywhere() {
    for base in bases() {
        for len in [0, 1, 512, 8192, 9000, 9600, 12_000, 70_000, 500_000] {
            try_all(&base.image[..len]);
        }
    }
}

#[test]
fn damage_by_chance_hurts_nobody() {
    let mut rng = Rng::new(1984);
    for base in bases() {
        for _ in 0..40 {
            let mut bytes = base.image.clone();
            for _ in 0..=rng.below(40) {
                let at = base.superblock + rng.below(150_000) as usize;
                bytes[at] = rng.below(256) as u8;
            }
            try_all(&bytes);
        }
    }
}

#[test]
fn attributes_that_are_damaged_are_told() {
    let Some(image) = shared::image("ufs-little") else {
        return;
    };
    let base = Base {
        name: "ufs-little",
        superblock: 65_536,
        is_big: false,
        image,
    };
    let node = base.inode("xattrs");
    let block = 71 * 4096;
    for (at, value) in [(0, 33), (0, 0x80), (1, 1), (5, 200), (6, 255)] {
        let mut bytes = base.image.clone();
        bytes[block + at] = value;
        let fs = attach_as(&bytes, "").expect("attach");
        let name = Name::new(b"xattrs").expect("a name");
        let e = crate::as_root(|cx| {
            let node = fs.lookup(cx, fs.root(), name).expect("lookup").node;
            fs.listxattr(cx, node)
        });
        assert_eq!(e.unwrap_err(), Kind::Corrupt, "{at} of inode {node}");
    }
}

#[test]
fn an_indirect_block_that_holds_itself_ends() {
    for base in bases() {
        let dir = base.inode("dir");
        let large = dump(&base.image, &format!("directory {dir}")).expect("dump");
        let large = large
            .lines()
            .find(|line| line.ends_with("\"large\""))
            .expect("large");
        let words: Vec<&str> = large.split_whitespace().collect();
        let ino = words[4].parse::<u64>().expect("an inode");
        let topic = format!("inode {ino}");
        let text = dump(&base.image, &topic).expect("dump");
        let line = text
            .lines()
            .find(|line| line.contains(" di_ib "))
            .expect("di_ib");
        let first: usize = line
            .split_whitespace()
            .nth(2)
            .expect("a block")
            .parse()
            .expect("a number");
        let is_ufs2 = base.name.starts_with("UFS2");
        let pointer = match (is_ufs2, base.is_big) {
            (true, true) => (first as u64).to_be_bytes().to_vec(),
            (true, false) => (first as u64).to_le_bytes().to_vec(),
            (false, true) => (first as u32).to_be_bytes().to_vec(),
            (false, false) => (first as u32).to_le_bytes().to_vec(),
        };
        let mut bytes = base.image.clone();
        bytes[first * 512..first * 512 + 4096]
            .copy_from_slice(&pointer.repeat(4096 / pointer.len()));
        // Three levels of it, and a size that needs them.
        let (ib, size) = (base.place(&topic, "di_ib"), base.place(&topic, "di_size"));
        bytes[ib..ib + 3 * pointer.len()].copy_from_slice(&pointer.repeat(3));
        let long = 500_000_000_000_u64;
        let long = if base.is_big {
            long.to_be_bytes()
        } else {
            long.to_le_bytes()
        };
        bytes[size..size + 8].copy_from_slice(&long);
        try_all(&bytes);
        let told = check(&bytes).expect("check");
        assert!(
            told.iter()
                .any(|line| line.starts_with("duplicate-blocks: ")),
            "{told:#?}"
        );
    }
}
