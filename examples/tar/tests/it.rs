//! Archives that GNU tar made, and broken ones, under the conformance suite.

use std::path::Path;
use std::process::Command;
use volary_driver::core::{Attach, Format, Fs, Kind, Mode, Name, NodeId, Result, unkept};
use volary_example_tar::TAR;
use volary_testkit::volumes::{as_root, device, look};
use volary_testkit::{Fresh, Suite};

fn run(command: &mut Command) {
    assert!(
        command.status().expect("a program").success(),
        "{command:?}"
    );
}

/// Returns an archive of a tree of everything, in this of GNU tar's formats.
fn archive(format: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().expect("a directory");
    let tree = dir.path().join("tree");
    std::fs::create_dir_all(tree.join("dir/sub")).expect("a tree");
    std::fs::write(tree.join("file"), vec![7; 70_001]).expect("a file");
    std::fs::hard_link(tree.join("file"), tree.join("dir/other")).expect("a link");
    std::os::unix::fs::symlink("../file", tree.join("dir/link")).expect("a symlink");
    std::fs::write(tree.join("dir/sub").join("n".repeat(200)), "long").expect("a file");
    std::fs::write(tree.join("empty"), "").expect("a file");
    std::fs::create_dir(tree.join("many")).expect("a directory");
    for n in 0..50 {
        std::fs::write(tree.join(format!("many/{n}")), n.to_string()).expect("a file");
    }
    run(Command::new("mkfifo").arg(tree.join("fifo")));
    let out = dir.path().join("tree.tar");
    run(Command::new("tar")
        .args(["--format", format, "--xattrs", "-C"])
        .arg(&tree)
        .arg("-cf")
        .arg(&out)
        .arg("."));
    std::fs::read(out).expect("an archive")
}

fn attach(bytes: &[u8]) -> Result<Fs> {
    TAR.attach(device(bytes), &Attach::default())
}

fn walk(fs: &Fs, path: &str) -> NodeId {
    let step = |dir, part: &str| {
        as_root(|cx| fs.lookup(cx, dir, Name::new(part.as_bytes()).expect("a name")))
    };
    path.split('/')
        .fold(fs.root(), |dir, part| step(dir, part).expect(path).node)
}

#[test]
fn what_gnu_tar_made_is_a_volume_that_keeps_the_contract() {
    for format in ["gnu", "pax", "ustar"] {
        let bytes = archive(format);
        let fs = attach(&bytes).expect("attach");
        as_root(|cx| {
            let file = fs.getattr(cx, walk(&fs, "file")).expect("attributes");
            assert_eq!((file.size, file.nlink), (70_001, 2));
            assert_eq!(walk(&fs, "dir/other"), file.node);
            assert_eq!(
                fs.readlink(cx, walk(&fs, "dir/link")).expect("a target"),
                b"../file"
            );
            let long = walk(&fs, &format!("dir/sub/{}", "n".repeat(200)));
            let open = fs.open(cx, long, Mode::Read).expect("an open");
            let mut buf = [0; 9];
            assert_eq!(fs.read(cx, open, 0, &mut buf).expect("bytes"), 4);
            assert_eq!(&buf[..4], b"long");
            fs.close(cx, open).expect("closed");
        });
        assert!(fs.findings().is_empty());
        let again = bytes.clone();
        let make = move || {
            let again = again.clone();
            let device = device(&bytes);
            let fs = TAR.attach(device.clone(), &Attach::default());
            Fresh::new(fs.expect("attach"))
                .on(device)
                .reattach(move || attach(&again).expect("attach"))
        };
        let suite = Suite::coherent(format!("tar {format}"), make).expect("a look");
        assert!(suite.run().passed.len() > 50);
    }
}

#[test]
fn the_format_does_what_it_says() {
    assert_eq!(unkept(&TAR, &device(&[])), [""; 0]);
    assert!(
        TAR.probe(&*device(&archive("pax")))
            .expect("probe")
            .is_some()
    );
    assert!(TAR.probe(&*device(&[0; 1024])).expect("probe").is_none());
    assert!(TAR.probe(&*device(&[])).expect("probe").is_none());
}

#[test]
fn an_archive_that_is_cut_off_or_damaged_does_no_harm() {
    let bytes = archive("gnu");
    for len in (0..bytes.len()).step_by(4099) {
        match attach(&bytes[..len / 512 * 512]) {
            Ok(fs) => look(&fs, 200, |_| {}),
            Err(e) => assert_eq!(e, Kind::Corrupt),
        }
    }
    for at in (0..bytes.len().min(20_000)).step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x55;
        match attach(&damaged) {
            Ok(fs) => look(&fs, 200, |_| {}),
            Err(e) => assert_eq!(e, Kind::Corrupt, "byte {at}"),
        }
    }
}

#[test]
fn a_name_that_has_no_end_takes_no_memory() {
    let mut header = tar::Header::new_gnu();
    header.set_entry_type(tar::EntryType::GNULongName);
    header.set_path("././@LongLink").expect("a name");
    header.set_size(8 << 20);
    header.set_cksum();
    let mut bytes = header.as_bytes().to_vec();
    bytes.resize(512 + (8 << 20) + 1024, b'n');
    let e = attach(&bytes).err().expect("a refusal");
    assert!(e.to_string().contains("longer than it may be"), "{e}");
}

#[test]
fn a_sparse_file_is_left_out_and_told() {
    let dir = tempfile::tempdir().expect("a directory");
    let file = std::fs::File::create(dir.path().join("holes")).expect("a file");
    file.set_len(1 << 20).expect("a hole");
    std::fs::write(dir.path().join("plain"), "text").expect("a file");
    for format in ["gnu", "pax"] {
        let out = dir.path().join(format);
        archive_sparse(dir.path(), format, &out);
        let fs = attach(&std::fs::read(&out).expect("an archive")).expect("attach");
        let told: Vec<String> = fs
            .findings()
            .into_iter()
            .map(|finding| finding.message)
            .collect();
        assert!(told.len() == 1 && told[0].contains("holes"), "{told:?}");
        walk(&fs, "plain");
    }
}

fn archive_sparse(dir: &Path, format: &str, out: &Path) {
    let mut tar = Command::new("tar");
    run(tar
        .args(["-S", "--format", format, "-C"])
        .arg(dir)
        .arg("-cf")
        .arg(out)
        .args(["plain", "holes"]));
}
