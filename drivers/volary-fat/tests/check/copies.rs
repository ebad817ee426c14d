//! Copies of the FAT of which each is wrong somewhere: the driver reads what the other
//! has right, and a check keeps it.

use crate::check::base::{KINDS, base};
use crate::check::cuts::cut;
use crate::check::image::Image;
use crate::check::reader::files;
use crate::check::run::{Ram, mend, mend_with, show};
use crate::check::unreadable::{Worn, mends};
use std::sync::Arc;
use volary_core::{Attach, BlockDevice, Format, Kind, Name, Options, SetAttr};
use volary_fat::FAT;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::as_root;

/// Files whose chains take several clusters, as their names are stored.
const LONG: [&str; 3] = ["ONEBIN", "TWOBIN", "DIR1/SUB/DEEPBIN"];

/// Returns what damage makes of a link in a chain.
fn wrong(i: &Image, chain: &[u32]) -> Vec<u32> {
    let other = i.start(i.find("AFILEW~1TEX").at);
    let out = i.clusters + 20;
    vec![0, 1, i.end(), i.end() - 8, chain[0], out, other]
}

/// Returns all that the driver reads.
fn read(dev: Arc<dyn BlockDevice>, about: &str) -> Tree {
    let how = Attach::default();
    let fs = FAT
        .attach(dev, &how)
        .unwrap_or_else(|e| panic!("{about}: {e}"));
    as_root(|cx| Tree::read(&fs, cx).unwrap_or_else(|e| panic!("{about}: {e}")))
}

/// Sees that the driver reads all that is on the sound volume, leaves
/// every byte, and loses nothing by a change; and that a check keeps all of it, even one that is cut short.
fn is_read_and_mended(sound: &Image, image: &Image, about: &str) {
    let dev = Arc::new(Ram::new(&image.bytes));
    let all = read(Arc::new(Ram::new(&sound.bytes)), about);
    all.assert_same(&read(dev.clone(), about));
    assert!(dev.bytes() == image.bytes, "{about}: reading wrote");
    change_loses_nothing(sound, image, about);
    let done = mend(&image.bytes, about);
    let after = Image::new(done.bytes.clone()).unwrap();
    assert!(
        files(sound) == files(&after),
        "{about}: {}",
        show(&done.findings)
    );
    for n in 0..after.clusters + 2 {
        assert_eq!(after.fat(1, n), sound.fat(1, n), "{about}: {n}");
    }
    if about.starts_with("fat12") {
        cut(&image.bytes, about);
    }
}

/// A volume takes no changes once a chain was read by another copy, as it could be
/// another's. If it does, nothing is lost by it.
fn change_loses_nothing(sound: &Image, image: &Image, about: &str) {
    let dev = Arc::new(Ram::new(&image.bytes));
    let fs = FAT.attach(dev.clone(), &Attach::default()).unwrap();
    let made = as_root(|cx| {
        Tree::read(&fs, cx).unwrap();
        let name = Name::new(b"new").unwrap();
        let made = fs.mkdir(cx, fs.root(), name, &SetAttr::mode(0o755));
        fs.detach(cx).unwrap();
        made
    });
    let Err(e) = made else {
        let done = mend(&dev.bytes(), about);
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert!(files(sound) == after, "{about}: {}", show(&done.findings));
        return;
    };
    assert_eq!(e.kind(), Kind::ReadOnly, "{about}");
    assert!(e.to_string().contains("fsck -y"), "{about}: {e}");
    assert!(dev.bytes() == image.bytes, "{about}: it was written");
}

#[test]
fn each_copy_has_links_that_the_other_lacks() {
    for kind in KINDS {
        let sound = base(kind);
        let chains = LONG.map(|path| sound.chain(sound.start(sound.find(path).at)));
        for how in 0..7 {
            let mut image = sound.clone();
            for (i, chain) in chains.iter().enumerate() {
                let bad = wrong(&sound, chain)[how];
                // A chain that is wrong in the first, one in the second, one in both.
                let (first, second) = [(1, None), (9, Some(2)), (1, Some(3))][i];
                chain
                    .get(first)
                    .into_iter()
                    .for_each(|&n| image.set_fat_copy(0, n, bad));
                second
                    .into_iter()
                    .for_each(|at| image.set_fat_copy(1, chain[at], bad));
            }
            is_read_and_mended(&sound, &image, &format!("{kind}, {how}"));
        }
    }
}

#[test]
fn a_chain_that_the_first_copy_leads_into_another_file_is_told_by_what_that_has() {
    for kind in KINDS {
        let sound = base(kind);
        let chain = sound.chain(sound.start(sound.find("ONEBIN").at));
        let other = sound.start(sound.find("HELLOTXT").at);
        let mut image = sound.clone();
        // As long as the size says, either way.
        image.set_fat_copy(0, chain[chain.len() - 2], other);
        let done = mend(&image.bytes, kind);
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert!(files(&sound) == after, "{kind}: {}", show(&done.findings));
    }
}

#[test]
fn a_directory_that_the_first_copy_cuts_short_is_whole_by_the_second() {
    for kind in KINDS {
        let sound = base(kind);
        let chain = sound.chain(sound.start(sound.find("MANY").at));
        for bad in wrong(&sound, &chain) {
            let mut image = sound.clone();
            image.set_fat_copy(0, chain[0], bad);
            is_read_and_mended(&sound, &image, &format!("{kind}, {bad}"));
        }
    }
}

/// Sees that a check keeps all files. Ends in one copy where the other has free clusters may be
/// files of one cluster: what nothing leads to is saved beside them.
fn keeps_all_files(sound: &Image, image: &Image, about: &str) {
    let done = mend(&image.bytes, about);
    let after = files(&Image::new(done.bytes).unwrap());
    let lost: Vec<_> = files(sound)
        .into_iter()
        .filter(|(path, file)| after.get(path) != Some(file))
        .map(|(path, _)| path)
        .collect();
    assert!(lost.is_empty(), "{about}: {lost:?}");
}

#[test]
fn a_sector_of_anything_in_the_first_copy_is_taken_from_the_second() {
    let noise = |at: usize| (at as u32).wrapping_mul(2_654_435_761).to_be_bytes()[0];
    type Fill<'a> = &'a dyn Fn(usize) -> u8;
    let fills: [(&str, Fill<'_>); 4] = [
        ("zeros", &|_| 0),
        ("ones", &|_| 0xff),
        ("text", &|at| b"the quick brown fox "[at % 20]),
        ("noise", &noise),
    ];
    for kind in KINDS {
        let sound = base(kind);
        for (name, fill) in fills {
            for sector in 0..2 {
                let mut image = sound.clone();
                let from = image.reserved + sector * 512;
                let is_free = sound.bytes[from..from + 512].iter().all(|byte| *byte == 0);
                (from..from + 512).for_each(|at| image.bytes[at] = fill(at));
                if name == "ones" && is_free {
                    keeps_all_files(&sound, &image, kind);
                    continue;
                }
                is_read_and_mended(&sound, &image, &format!("{kind}, {name} in {sector}"));
            }
        }
    }
}

#[test]
fn sectors_that_cannot_be_read_are_read_from_the_other_copy() {
    for kind in KINDS {
        let sound = base(kind);
        let (first, second) = (sound.reserved, sound.reserved + sound.fat_len);
        let all = read(Arc::new(Ram::new(&sound.bytes)), kind);
        for bad in [
            &[first][..],
            &[first + 512],
            &[second],
            &[first, second + 512],
        ] {
            let about = format!("{kind}, {bad:?}");
            all.assert_same(&read(Worn::new(&sound.bytes, bad), &about));
        }
        let both = Worn::new(&sound.bytes, &[first, second]);
        let failed = FAT.attach(both, &Attach::default());
        assert_eq!(failed.err().unwrap().kind(), Kind::Io, "{kind}");
    }
}

#[test]
fn changes_leave_what_only_one_copy_has() {
    for kind in KINDS {
        let sound = base(kind);
        let chain = sound.chain(sound.start(sound.find("TWOBIN").at));
        let mut image = sound.clone();
        image.set_fat_copy(0, chain[1], 0);
        let dev = Arc::new(Ram::new(&image.bytes));
        let fs = FAT.attach(dev.clone(), &Attach::default()).unwrap();
        as_root(|cx| {
            for n in 0..20 {
                let name = format!("new {n}");
                let name = Name::new(name.as_bytes()).unwrap();
                fs.mkdir(cx, fs.root(), name, &SetAttr::mode(0o755))
                    .unwrap();
            }
            fs.detach(cx).unwrap();
        });
        let done = mend(&dev.bytes(), kind);
        let after = files(&Image::new(done.bytes.clone()).unwrap());
        assert!(files(&sound) == after, "{kind}: {}", show(&done.findings));
    }
}

/// Harm to a FAT32 volume's first sectors.
type Harm = fn(&mut Image);

#[test]
fn a_volume_is_read_by_the_copy_of_its_boot_sector_that_the_user_names() {
    let sound = base("fat32");
    let all = read(Arc::new(Ram::new(&sound.bytes)), "sound");
    let harms: [Harm; 3] = [
        |i| i.bytes[..512].fill(0),
        |i| i.bytes[..512].fill(0xdf),
        |i| i.bytes[14] += 1,
    ];
    let how = Attach {
        options: Options::parse("boot=6"),
        ..Attach::default()
    };
    for harm in harms {
        let mut image = sound.clone();
        harm(&mut image);
        let dev = Arc::new(Ram::new(&image.bytes));
        let fs = FAT.attach(dev.clone(), &how).unwrap();
        as_root(|cx| {
            all.assert_same(&Tree::read(&fs, cx).unwrap());
            let name = Name::new(b"new").unwrap();
            let e = fs.mkdir(cx, fs.root(), name, &SetAttr::mode(0o755));
            let e = e.err().unwrap();
            assert_eq!(e.kind(), Kind::ReadOnly);
            assert!(e.to_string().contains("fsck -y"), "{e}");
            fs.detach(cx).unwrap();
        });
        assert!(dev.bytes() == image.bytes);
        for options in ["boot=6", ""] {
            let done = mend_with(&image.bytes, options, "boot sector");
            assert!(done.has("boot-sector"), "{}", show(&done.findings));
            assert!(done.bytes == sound.bytes, "{options}");
        }
    }
    let far = Attach {
        options: Options::parse("boot=99999999"),
        ..Attach::default()
    };
    let e = FAT.attach(Arc::new(Ram::new(&sound.bytes)), &far).err();
    assert_eq!(e.unwrap().kind(), Kind::Invalid);
    let done = mend_with(&sound.bytes, "boot=6", "sound");
    assert_eq!(done.codes(), [""; 0]);
}

#[test]
fn first_sectors_that_cannot_be_read_are_written_again() {
    let sound = base("fat32");
    let all = read(Arc::new(Ram::new(&sound.bytes)), "sound");
    // The boot sector, FSInfo, the copy of the former.
    for (bad, code) in [
        (0, "boot-sector"),
        (512, "fsinfo"),
        (6 * 512, "boot-backup"),
    ] {
        let dev = Worn::new(&sound.bytes, &[bad]);
        let options = if bad == 0 { "boot=6" } else { "" };
        let how = Attach {
            options: Options::parse(options),
            ..Attach::default()
        };
        let fs = FAT.attach(dev.clone(), &how).unwrap();
        as_root(|cx| all.assert_same(&Tree::read(&fs, cx).unwrap()));
        drop(fs);
        mends(&sound, &[bad], code, false, code);
    }
}
