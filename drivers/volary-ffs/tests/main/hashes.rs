//! FreeBSD's check hashes: as FreeBSD left them, kept right by what we write, refused where they
//! are wrong, made anew by fsck.

use crate::volumes::{attach, check, shape};
use crate::{dump, shared};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{CheckMode, Create, FileKind, Kind, Mode, Name, Result, SetAttr};
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;
const HEAD: usize = 65_536;

/// CRC-32C bit by bit, from all ones on, not inverted at the end.
fn crc(bytes: &[u8]) -> u32 {
    bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| match sum & 1 {
            1 => sum >> 1 ^ 0x82f6_3b78,
            _ => sum >> 1,
        })
    })
}

/// An image, with what its superblock says.
struct Image {
    bytes: Vec<u8>,
    is_big: bool,
}

impl Image {
    fn new(bytes: Vec<u8>) -> Self {
        let is_big = bytes[HEAD + 1372..][..4] == [0x19, 0x54, 0x01, 0x19];
        Self { bytes, is_big }
    }

    fn number(&self, at: usize) -> usize {
        let four: [u8; 4] = self.bytes[at..at + 4].try_into().expect("four bytes");
        let n = if self.is_big {
            u32::from_be_bytes(four)
        } else {
            u32::from_le_bytes(four)
        };
        n as usize
    }

    fn field(&self, at: usize) -> usize {
        self.number(HEAD + at)
    }

    /// Returns where a group's part begins of which the superblock has the offset at `field`.
    fn part(&self, group: usize, field: usize) -> usize {
        (group * self.field(188) + self.field(field)) * self.field(52)
    }

    /// Returns whether the hash at byte `within` of a structure is of the rest of it.
    fn is_right(&self, at: usize, len: usize, within: usize) -> bool {
        let mut bytes = self.bytes[at..at + len].to_vec();
        bytes[within..within + 4].fill(0);
        crc(&bytes) as usize == self.number(at + within)
    }

    /// Returns everything that has a hash, wrong or right.
    fn all(&self) -> Vec<(String, bool)> {
        let sbsize = self.field(104);
        let mut all = vec![("superblock".into(), self.is_right(HEAD, sbsize, 1304))];
        for group in 0..self.field(44) {
            let replica = self.part(group, 8);
            all.push((
                format!("replica {group}"),
                self.is_right(replica, sbsize, 1304),
            ));
            let head = self.part(group, 12);
            let len = self.field(160);
            all.push((format!("group {group}"), self.is_right(head, len, 132)));
            for index in 0..self.number(head + 120) {
                let at = self.part(group, 16) + 256 * index;
                if self.bytes[at..at + 2] != [0, 0] {
                    all.push((
                        format!("inode {index} of {group}"),
                        self.is_right(at, 256, 244),
                    ));
                }
            }
        }
        all
    }

    fn wrong(&self) -> Vec<String> {
        let wrong = self.all().into_iter().filter(|(_, is_right)| !is_right);
        wrong.map(|(what, _)| what).collect()
    }
}

fn name(text: &str) -> Name<'_> {
    Name::new(text.as_bytes()).expect("a name")
}

/// Files that come, grow, go, and a directory.
fn lead_a_life(dev: &Arc<MemDevice>) {
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        let set = SetAttr::owned(0o640, 5, 6);
        let dir = fs
            .mkdir(cx, fs.root(), name("made"), &set)
            .expect("mkdir")
            .node;
        for i in 0..30 {
            let made = fs.create(cx, dir, name(&format!("{i}")), Create::New, &set);
            let (_, open) = made.expect("create");
            fs.write(cx, open, Some(0), &vec![i; 900 * usize::from(i)])
                .expect("write");
            fs.close(cx, open).expect("close");
        }
        fs.sync(cx).expect("sync");
        for i in (0..30).step_by(3) {
            fs.unlink(cx, dir, name(&format!("{i}"))).expect("unlink");
        }
        fs.symlink(cx, dir, name("link"), b"target", &set)
            .expect("symlink");
        fs.mknod(cx, dir, name("fifo"), FileKind::Fifo, 0, &set)
            .expect("mknod");
        fs.detach(cx).expect("detach");
    });
}

fn holds(image: &Image, inodes: usize) {
    assert_eq!(image.wrong(), Vec::<String>::new());
    let of_inodes = image
        .all()
        .into_iter()
        .filter(|(what, _)| what.starts_with("inode"));
    assert!(of_inodes.count() >= inodes);
    let told = dump(&image.bytes, "superblock").expect("dump");
    assert!(told.contains("fs_metackhash"));
    assert_eq!((image.field(1312) & 0x200, image.field(1308)), (0x200, 7));
}

#[test]
fn freebsd_s_hashes_stay_right() {
    for of in ["ufs-little", "ufs-big"] {
        let Some(bytes) = shared::image(of) else {
            return;
        };
        holds(&Image::new(bytes.clone()), 10);
        let dev = Arc::new(MemDevice::from_vec(bytes));
        lead_a_life(&dev);
        holds(&Image::new(dev.to_vec()), 30);
        let (report, found) = check(dev, CheckMode::Look);
        assert_eq!(report.found, 0, "{found:#?}");
    }
}

#[test]
fn hashes_that_mkfs_makes_stay_right() {
    for make in [
        "hashes",
        "hashes,order=big,block=16384",
        "hashes,block=65536,fragment=8192",
    ] {
        let dev = shape("ffs2", 16 * MIB).made(make).device();
        holds(&Image::new(dev.to_vec()), 1);
        lead_a_life(&dev);
        holds(&Image::new(dev.to_vec()), 23);
        let how = volary_core::Tune {
            options: volary_core::Options::parse("minfree=3"),
            ..Default::default()
        };
        let tuned =
            volary_core::Format::tune(&volary_ffs::FFS, dev.clone(), &how, &volary_core::Quiet);
        tuned.expect("tune");
        holds(&Image::new(dev.to_vec()), 23);
        let (report, found) = check(dev, CheckMode::Look);
        assert_eq!(report.found, 0, "{found:#?}");
    }
}

#[test]
fn without_the_option_there_are_none() {
    let dev = shape("ffs2", 16 * MIB).device();
    lead_a_life(&dev);
    let image = Image::new(dev.to_vec());
    assert_eq!(
        (
            image.field(1312) & 0x200,
            image.field(1308),
            image.field(1304)
        ),
        (0, 0, 0)
    );
}

/// Returns a volume that lived, with a byte turned where nothing but a hash would tell.
fn damaged(at: impl Fn(&Image) -> usize) -> Arc<MemDevice> {
    let dev = shape("ffs2", 16 * MIB).made("hashes").device();
    lead_a_life(&dev);
    let mut image = Image::new(dev.to_vec());
    let at = at(&image);
    image.bytes[at] ^= 0x10;
    Arc::new(MemDevice::from_vec(image.bytes))
}

/// Returns the time of the root's last access.
fn in_the_root(image: &Image) -> usize {
    image.part(0, 16) + 2 * 256 + 32
}

/// Returns where the last inode was found, in the first group.
fn in_a_group(image: &Image) -> usize {
    let at = image.part(0, 12) + 140;
    assert_eq!(image.part(0, 12) % 512, 0);
    at
}

/// Returns where the volume was mounted last.
fn in_the_superblock(_: &Image) -> usize {
    HEAD + 300
}

fn in_a_replica(image: &Image) -> usize {
    image.part(1, 8) + 300
}

#[test]
fn what_has_a_wrong_hash_is_refused() {
    let attach = |dev: Arc<MemDevice>| volary_testkit::volumes::attach(&volary_ffs::FFS, dev, "");
    let refused = |result: Result<()>, field: &str| {
        let e = result.expect_err(field);
        assert_eq!(e.kind(), Kind::Corrupt, "{e}");
        assert!(e.to_string().contains(field), "{e}");
    };
    refused(attach(damaged(in_the_superblock)).map(drop), "fs_ckhash");
    refused(attach(damaged(in_the_root)).map(drop), "di_ckhash");
    let fs = attach(damaged(in_a_group)).expect("attach");
    as_root(|cx| {
        let made = fs.create(cx, fs.root(), name("new"), Create::New, &SetAttr::default());
        refused(made.map(drop), "cg_ckhash");
        // What needs no group is read.
        let dir = fs.lookup(cx, fs.root(), name("made")).expect("lookup").node;
        let one = fs.lookup(cx, dir, name("1")).expect("lookup").node;
        let open = fs.open(cx, one, Mode::Read).expect("open");
        let mut bytes = [0; 900];
        assert_eq!(fs.read(cx, open, 0, &mut bytes).expect("read"), 900);
        assert_eq!(bytes, [1; 900]);
    });
}

#[test]
fn fsck_makes_wrong_hashes_anew() {
    type At = fn(&Image) -> usize;
    // How the volume was left is not known where the superblock is not whole.
    let all: [(At, &[&str]); 4] = [
        (in_the_superblock, &["dirty", "check-hash"]),
        (in_the_root, &["check-hash"]),
        (in_a_group, &["check-hash"]),
        (in_a_replica, &["check-hash"]),
    ];
    for (at, codes) in all {
        for mode in [CheckMode::Preen, CheckMode::Mend] {
            let dev = damaged(at);
            assert_eq!(Image::new(dev.to_vec()).wrong().len(), 1);
            let (report, found) = check(dev.clone(), mode);
            assert_eq!(report.left(), 0, "{found:#?}");
            let told: Vec<_> = found
                .iter()
                .filter_map(|line| line.split(':').next())
                .collect();
            assert_eq!(told, codes, "{found:#?}");
            holds(&Image::new(dev.to_vec()), 23);
            let (again, found) = check(dev.clone(), CheckMode::Mend);
            assert_eq!((again.found, again.written), (0, 0), "{found:#?}");
            lead_a_second_life(&dev);
        }
    }
}

fn lead_a_second_life(dev: &Arc<MemDevice>) {
    let fs = attach(dev.clone(), "");
    as_root(|cx| {
        fs.mkdir(cx, fs.root(), name("again"), &SetAttr::default())
            .expect("mkdir");
        fs.detach(cx).expect("detach");
    });
    holds(&Image::new(dev.to_vec()), 24);
}
