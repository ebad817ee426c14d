//! Volumes that we make: read by us, by sleuthkit and by Linux, and compared with NetBSD's.

use crate::{attach, check, device, dump, shared};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::{BlockDevice, Cookie, DirBuf, Format, Kind, Make, Mode, Options, Result, Time};
use volary_ffs::FFS;
use volary_testkit::oracle::{Tool, have, sleuthkit, vm};
use volary_testkit::volumes::as_root;

/// Kind, options, size in KiB.
const WAYS: &[(&str, &str, u64)] = &[
    ("ffs1", "", 1024),
    ("ffs1", "order=big", 16_384),
    ("ffs1", "old", 4096),
    ("ffs1", "old,order=big,block=8192,fragment=8192", 30_000),
    ("ffs1", "block=65536,fragment=8192", 60_000),
    ("ffs1", "density=512,block=16384", 40_001),
    ("ffs1", "nsect=32,ntrak=8,rotdelay=4", 9001),
    ("ffs1", "old,order=big,nsect=17,ntrak=4,nrpos=4", 9001),
    ("ffs2", "", 1024),
    ("ffs2", "order=big", 40_000),
    ("ffs2", "block=65536,fragment=65536", 65_536),
    (
        "ffs2",
        "block=4096,fragment=512,density=1024,maxcontig=1",
        10_003,
    ),
    (
        "ffs2",
        "order=big,block=32768,fragment=4096,group=1056",
        20_000,
    ),
];

fn make_on(dev: Arc<dyn BlockDevice>, kind: &str, options: &str) -> Result<()> {
    let how = Make {
        label: (!options.contains("old")).then(|| "named".to_owned()),
        now: Time::from_secs(1_700_000_000),
        seed: 7,
        options: Options::parse(options),
    };
    FFS.make(dev, kind, &how).map(drop)
}

/// Returns the bytes of a new volume on a device that held something else.
fn make(kind: &str, options: &str, kib: u64) -> Result<Vec<u8>> {
    let dev = Arc::new(MemDevice::new(kib << 10));
    dev.write_at(0, &vec![0xa5; 600 << 10]).expect("room");
    make_on(dev.clone(), kind, options)?;
    let mut bytes = vec![0; (kib << 10) as usize];
    dev.read_at(0, &mut bytes)?;
    Ok(bytes)
}

#[test]
fn what_is_made_is_whole_and_empty() {
    for &(kind, options, kib) in WAYS {
        let way = format!("{kind} {options}");
        let image = make(kind, options, kib).expect(&way);
        assert_eq!(check(&image).expect(&way), Vec::<String>::new(), "{way}");
        let probe = FFS.probe(&*device(&image)).expect("probe").expect(&way);
        assert_eq!(probe.kind, kind);
        assert_eq!(probe.label.is_some(), !options.contains("old"), "{way}");
        let fs = attach(&image);
        as_root(|cx| {
            let root = fs.getattr(cx, fs.root()).expect("the root");
            assert_eq!((root.mode, root.nlink, root.size), (0o755, 2, 512));
            assert_eq!(root.mtime, Time::from_secs(1_700_000_000));
            assert_eq!(fs.parent(cx, fs.root()).expect("parent").node, fs.root());
            let open = fs.open(cx, fs.root(), Mode::Read).expect("open");
            let mut out = DirBuf::new(9, 999, false);
            assert!(
                fs.readdir(cx, open, Cookie::START, &mut out)
                    .expect("readdir")
            );
            assert!(out.is_empty());
            let stat = fs.statfs(cx).expect("statfs");
            assert!(
                stat.free < stat.size && stat.size < kib << 10,
                "{way}: {stat:?}"
            );
            assert!(stat.free > stat.size - (256 << 10), "{way}: {stat:?}");
            assert_eq!(stat.nodes - stat.nodes_free, 3);
        });
        let listed = dump(&image, "superblocks").expect("dump");
        let good = listed.lines().filter(|line| line.ends_with("good")).count();
        let text = dump(&image, "superblock").expect("dump");
        assert_eq!(
            good,
            number(&text, "fs_ncg") as usize + 1,
            "{way}: {listed}"
        );
    }
}

fn number(dumped: &str, field: &str) -> i64 {
    let line = dumped
        .lines()
        .find(|line| line.contains(&format!(" {field} ")));
    let line = line.unwrap_or_else(|| panic!("no {field} in {dumped}"));
    line.split_whitespace()
        .nth(2)
        .expect("a value")
        .parse()
        .expect("a number")
}

#[test]
fn the_same_seed_makes_the_same_bytes() {
    for kind in ["ffs1", "ffs2"] {
        let [a, b] = [0, 1].map(|_| make(kind, "", 2048).expect(kind));
        assert!(a == b);
    }
}

/// Fields of the superblock that say how a volume is laid out.
const FIELDS: &str = "fs_sblkno fs_cblkno fs_iblkno fs_dblkno fs_old_size fs_old_dsize fs_ncg \
    fs_bsize fs_fsize fs_frag fs_bmask fs_fmask fs_bshift fs_fshift fs_maxcontig \
    fs_maxbpg fs_fragshift fs_fsbtodb fs_sbsize fs_nindir fs_inopb fs_old_nspf \
    fs_old_npsect fs_old_interleave fs_old_csaddr fs_cssize fs_cgsize fs_old_nsect \
    fs_old_spc fs_old_ncyl fs_old_cpg fs_ipg fs_fpg fs_old_flags fs_contigsumsize \
    fs_maxsymlinklen fs_maxfilesize fs_qbmask fs_qfmask fs_old_postblformat \
    fs_old_nrpos fs_avgfilesize fs_avgfpdir fs_old_rps";
/// Those of them that 4.3BSD does not have.
const WIDE: &str = "fs_size fs_dsize fs_csaddr fs_sblockloc fs_maxbsize";
/// Fields of a cylinder group's head.
const HEADS: &str = "cg_ndblk cg_old_ncyl cg_old_niblk cg_old_btotoff cg_old_boff cg_iusedoff cg_freeoff \
    cg_nextfreeoff cg_clustersumoff cg_clusteroff cg_nclusterblks cg_niblk";

#[test]
fn the_layout_is_the_one_that_netbsd_makes() {
    let images = [
        ("ufs1-le", "ffs1", "block=8192"),
        ("ufs-4.3bsd", "ffs1", "old,block=8192"),
        ("ufs2-le", "ffs2", "block=16384"),
    ];
    for (name, kind, options) in images {
        let Some(theirs) = shared::image(name) else {
            return;
        };
        let ours = make(kind, options, 16_384).expect("make");
        let same = |topic: &str, fields: &str| {
            let (ours, theirs) = (
                dump(&ours, topic).expect("ours"),
                dump(&theirs, topic).expect("theirs"),
            );
            for field in fields.split(' ') {
                let found = (number(&ours, field), number(&theirs, field));
                assert_eq!(found.0, found.1, "{name}: {field}");
            }
        };
        // Its newfs fills unused fields of 4.3BSD's format, or leaves them.
        same("superblock", FIELDS);
        if !options.contains("old") {
            same("superblock", WIDE);
        }
        for group in 0..number(&dump(&theirs, "superblock").expect("theirs"), "fs_ncg") {
            same(&format!("group {group}"), HEADS);
        }
    }
}

#[test]
fn what_cannot_be_made_is_refused_and_nothing_is_written() {
    let cases = [
        ("ffs1", "nope", 1024, "unknown option"),
        ("ffs3", "", 1024, "unknown kind"),
        ("ffs1", "block=3000", 1024, "block=3000"),
        ("ffs1", "block=8192,fragment=512", 1024, "fragment=512"),
        ("ffs2", "old", 1024, "for ffs1"),
        ("ffs2", "minfree=100", 1024, "minfree=100"),
        ("ffs2", "group=7", 1024, "multiple of 8"),
        ("ffs2", "group=8", 1024, "too small"),
        ("ffs2", "order=middle", 1024, "little or big"),
        ("ffs1", "maxcontig=0", 1024, "maxcontig=0"),
        ("ffs1", "", 8, "too small"),
        ("ffs2", "", 100, "too small"),
        ("ffs1", "", 0, "too small"),
        ("ffs2", "block=65536", 200, "too small"),
    ];
    for (kind, options, kib, words) in cases {
        let dev = Arc::new(MemDevice::new(kib << 10));
        let e = make_on(dev.clone(), kind, options).expect_err(words);
        assert_eq!(e.kind(), Kind::Invalid, "{e}");
        assert!(e.to_string().contains(words), "{kind} {options}: {e}");
        let mut bytes = vec![1; (kib << 10) as usize];
        dev.read_at(0, &mut bytes).expect("read");
        assert!(bytes.iter().all(|&byte| byte == 0));
    }
    let long = Make {
        label: Some("x".repeat(32)),
        ..Make::default()
    };
    let dev = Arc::new(MemDevice::new(1 << 20));
    assert_eq!(FFS.make(dev, "ffs2", &long).unwrap_err(), Kind::Invalid);
}

#[test]
fn sleuthkit_sees_an_empty_volume() {
    const FSSTAT: Tool = Tool {
        program: "fsstat",
        package: "sleuthkit",
    };
    if !have(&[FSSTAT, sleuthkit::FLS]) {
        return;
    }
    // Of 4.3BSD's directories it reads nothing; fragments as large as blocks it refuses.
    for (kind, options, kib) in WAYS.iter().filter(|way| !way.1.contains("old")) {
        let image = make(kind, options, *kib).expect("make");
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), &image).expect("write");
        let out = FSSTAT.command().arg(file.path()).output().expect("fsstat");
        let text = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{kind} {options}: {out:?}");
        let ncg = number(&dump(&image, "superblock").expect("dump"), "fs_ncg");
        assert!(
            text.contains(&format!("Number of Cylinder Groups: {ncg}")),
            "{text}"
        );
        let out = sleuthkit::FLS
            .command()
            .arg(file.path())
            .output()
            .expect("fls");
        let listed = String::from_utf8_lossy(&out.stdout);
        let names: Vec<&str> = listed
            .lines()
            .filter(|line| !line.contains("$Orphan"))
            .collect();
        assert!(
            out.status.success() && names.is_empty(),
            "{kind} {options}: {listed}"
        );
    }
}

#[test]
fn linux_mounts_what_is_made() {
    let Some(vmrun) = vm::find() else { return };
    // It takes fragments of up to 4096 bytes.
    let is_small = |options: &str| {
        !["fragment=8192", "65536"]
            .iter()
            .any(|w| options.contains(w))
    };
    let ways: Vec<_> = WAYS.iter().filter(|way| is_small(way.1)).collect();
    let files: Vec<_> = ways
        .iter()
        .map(|(kind, options, kib)| {
            let file = tempfile::NamedTempFile::new().expect("a file");
            std::fs::write(file.path(), make(kind, options, *kib).expect("make")).expect("write");
            file
        })
        .collect();
    let disks: Vec<_> = files
        .iter()
        .map(|f| (f.path(), vm::Disk::ReadOnly))
        .collect();
    let mut script = String::new();
    for ((kind, options, _), disk) in ways.iter().zip('a'..) {
        let kind = match *kind {
            "ffs2" => "ufs2",
            _ if options.contains("old") => "old",
            _ => "44bsd",
        };
        script += &format!(
            "mount -t ufs -o ro,ufstype={kind} /dev/vd{disk} /mnt || exit 1\n\
             stat -c 'root %a %h' /mnt; ls -A /mnt; umount /mnt\n"
        );
    }
    let printed = vm::script(&vmrun, &disks, None, &script).expect("the guest");
    let roots = printed
        .lines()
        .filter(|line| line.trim() == "root 755 2")
        .count();
    assert_eq!(roots, ways.len(), "{printed}");
}
