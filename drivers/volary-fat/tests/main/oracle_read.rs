//! What others write, we read alike: mkfs.fat's variants filled by mcopy, and
//! volumes that Linux's own driver wrote.

use crate::samples::{comparable, samples, tree, write_to_host};
use crate::volumes::{Image, attach};
use std::path::Path;
use volary_testkit::oracle::{dosfstools, have, host, mtools, vm};
use volary_testkit::tree::Tree;
use volary_testkit::volumes::as_root;

const MIB: u64 = 1 << 20;

/// Bytes, and options of mkfs.fat: every kind, clusters, sectors, numbers of
/// FATs, reserved sectors, root entries.
const VARIANTS: &[(u64, &str)] = &[
    (4 * MIB, "-F 12 -s 4"),
    (6 * MIB, "-F 12 -s 8 -f 1"),
    (16 * MIB, "-F 12 -s 64 -r 512"),
    (6 * MIB, "-F 16 -s 1"),
    (12 * MIB, "-F 16 -s 2 -f 1 -r 256"),
    (12 * MIB, "-F 16 -s 4 -R 7"),
    (40 * MIB, "-F 16 -s 16 -a"),
    (36 * MIB, "-F 32 -s 1"),
    (36 * MIB, "-F 32 -s 1 -f 1 -R 17 -b 3"),
    (80 * MIB, "-F 32 -s 2 -a"),
    (12 * MIB, "-F 12 -S 1024 -s 4"),
    (24 * MIB, "-F 16 -S 2048 -s 1"),
    (32 * MIB, "-F 12 -S 4096 -s 4"),
    (300 * MIB, "-F 32 -S 4096 -s 1"),
];

/// Returns what we read in an image.
fn ours(image: &Image) -> Tree {
    let fs = attach(image.device(), "");
    as_root(|cx| {
        let seen = tree(&fs, cx);
        fs.detach(cx).expect("detach");
        seen
    })
}

fn made_by_mkfs(len: u64, options: &str) -> Image {
    let image = Image::new(len);
    let options: Vec<&str> = options.split(' ').collect();
    dosfstools::make(&image.path(), &options).expect("mkfs.fat");
    image
}

#[test]
fn we_read_what_mtools_writes_on_every_variant_of_mkfs_fat() {
    if !have(&[dosfstools::MKFS, mtools::MCOPY]) {
        return;
    }
    let beside = Image::new(0);
    let from = beside.beside("from");
    write_to_host(&from);
    let want = comparable(host::tree(&from).expect("the tree"));
    for (len, options) in VARIANTS {
        println!("mkfs.fat {options}");
        let image = made_by_mkfs(*len, options);
        mtools::copy_in(&image.path(), &from).expect("mcopy");
        want.assert_same(&ours(&image));
    }
}

#[test]
fn we_read_what_mtools_leaves_after_deleting_and_renaming() {
    if !have(&[dosfstools::MKFS, mtools::MCOPY]) {
        return;
    }
    let image = made_by_mkfs(12 * MIB, "-F 16 -s 2");
    let from = image.beside("from");
    write_to_host(&from);
    mtools::copy_in(&image.path(), &from).expect("mcopy");
    let path = image.path();
    let on = |program, args: &[&str]| {
        mtools::on(program, &path, args).expect(program);
    };
    on("mdeltree", &["::/deep/level 0/level 1"]);
    on("mdel", &["::/many/F*.DAT"]);
    on("mren", &["::/lower.txt", "::/a longer name for it.text"]);
    on("mmove", &["::/sizes", "::/many"]);
    on("mmd", &["::/New Directory"]);
    on("mattrib", &["+h", "+r", "::/UPPER.TXT"]);
    // In the holes that were left.
    let again = image.beside("again");
    let again_file = again.join("again and again.bin");
    host::write(&again_file, &vec![7; 500_000], volary_testkit::volumes::NOW).expect("a file");
    mtools::copy_in(&path, &again).expect("mcopy");
    let theirs = comparable(mtools::tree(&path).expect("mcopy"));
    assert!(theirs.0.len() > 150, "{} nodes", theirs.0.len());
    theirs.assert_same(&ours(&image));
}

#[test]
fn dos_attributes_are_read_as_mtools_sets_them() {
    if !have(&[dosfstools::MKFS, mtools::MCOPY, mtools::MATTRIB]) {
        return;
    }
    let image = made_by_mkfs(4 * MIB, "-F 12 -s 4");
    let from = image.beside("from");
    for name in ["plain", "hidden", "system", "read-only"] {
        host::write(&from.join(name), b"x", volary_testkit::volumes::NOW).expect("a file");
    }
    mtools::copy_in(&image.path(), &from).expect("mcopy");
    for (how, name) in [
        ("+h", "::/hidden"),
        ("+s", "::/system"),
        ("+r", "::/read-only"),
    ] {
        mtools::on("mattrib", &image.path(), &[how, name]).expect("mattrib");
    }
    let fs = attach(image.device(), "");
    as_root(|cx| {
        for (name, dos) in [("plain", 0x20), ("hidden", 0x22), ("system", 0x24)] {
            let name = volary_core::Name::new(name.as_bytes()).expect("a name");
            let attr = fs.lookup(cx, fs.root(), name).expect("lookup").attr;
            assert_eq!(attr.dos, Some(dos), "{name}");
            assert_ne!(attr.mode & 0o200, 0, "{name} can be written");
        }
        let name = volary_core::Name::new(b"read-only").expect("a name");
        let attr = fs.lookup(cx, fs.root(), name).expect("lookup").attr;
        assert_eq!((attr.dos, attr.mode & 0o222), (Some(0x21), 0));
    });
}

/// What Linux does in the guest, in the root of each volume: `$1` is where the
/// samples are.
const WRITE: &str = r#"
cp -a /share/. /mnt/
cd /mnt
mkdir -p 'Ein Verzeichnis/mit grünem/日本語'
# By the shell itself as far as it can: each process takes its time under emulation.
piece=$(printf '%3000s' '' | tr ' ' 'z')
i=0; while [ $i -lt 40 ]; do
  echo "line $i of one" >> 'Ein Verzeichnis/one in pieces.log'
  printf '%s' "$piece" >> 'Ein Verzeichnis/two in pieces.log'
  i=$((i+1))
done
i=0; while [ $i -lt 60 ]; do echo $i > "many/temporary file with a long name $i"; i=$((i+1)); done
rm many/temporary\ file\ with\ a\ long\ name\ *[02468]
mv lower.txt 'Ein Verzeichnis/renamed to something long.text'
mv sizes 'Ein Verzeichnis/mit grünem/sizes'
rm -r 'deep/level 0/level 1/level 2/level 3'
echo x > 'emoji 🦀.rs'
: > 'truncated'; dd if=/dev/zero of=sparse bs=1 count=1 seek=100000 2>/dev/null
touch -d '1985-06-07 08:09:10' truncated
touch -d '2099-12-31 23:59:58' sparse
chmod a-w UPPER.TXT
cd /
"#;

#[test]
fn we_read_what_linux_writes() {
    let Some(vmrun) = vm::find() else { return };
    if !have(&[dosfstools::MKFS]) {
        return;
    }
    let shapes = [
        (6 * MIB, "-F 12 -s 8"),
        (12 * MIB, "-F 16 -s 2"),
        (36 * MIB, "-F 32 -s 1"),
    ];
    let images: Vec<_> = shapes
        .iter()
        .map(|(len, o)| made_by_mkfs(*len, o))
        .collect();
    let from = images[0].beside("from");
    write_to_host(&from);
    written_by_linux(&vmrun, &images, &from);
    let paths: Vec<_> = images.iter().map(Image::path).collect();
    let volumes: Vec<_> = paths.iter().map(|path| vm::Volume::fat(path)).collect();
    let seen = vm::trees(&vmrun, &volumes).expect("Linux");
    for (image, seen) in images.iter().zip(seen) {
        assert!(
            seen.0.len() > samples().len() - 40,
            "{} nodes",
            seen.0.len()
        );
        comparable(seen).assert_same(&ours(image));
    }
}

fn written_by_linux(vmrun: &Path, images: &[Image], from: &Path) {
    let mut text = String::from("set -e\n");
    for disk in ["vda", "vdb", "vdc"] {
        let options = vm::FAT_OPTIONS;
        text += &format!("mount -t vfat -o {options} /dev/{disk} /mnt\n{WRITE}umount /mnt\n");
    }
    let paths: Vec<_> = images.iter().map(Image::path).collect();
    let disks: Vec<_> = paths
        .iter()
        .map(|p| (p.as_path(), vm::Disk::Write))
        .collect();
    vm::script(vmrun, &disks, Some(from), &text).expect("Linux");
}
