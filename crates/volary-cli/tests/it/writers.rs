//! Several writers at the same time, on a mount and by each server: where their files lie, and
//! parameters of a volume that is mounted.

use crate::mounting::Mounting;
use crate::sandbox::{Sandbox, noise};
use crate::serving::Serving;
use std::net::SocketAddr;
use std::process::Command;
use volary::{Attach, Name, Source, Time};
use volary_testkit::nfs::client as nfs;
use volary_testkit::smb::{self, access, disposition};
use volary_testkit::turns::runs;
use volary_testkit::volumes::as_root;

/// What is made, and the bytes of a cluster or block.
const KINDS: [(&str, &str, usize); 3] = [
    ("fat16", "-o cluster=4k", 4096),
    ("ffs1", "-o block=4096,fragment=1024", 4096),
    ("ffs2", "-o block=8192,fragment=1024", 8192),
];
const FILES: [&str; 3] = ["a", "b", "c"];
/// How many clusters each writer writes, one at a time.
const PIECES: usize = 200;
/// The most runs of a file.
const MOST: usize = 8;

fn make(sandbox: &Sandbox, (kind, options, _): (&str, &str, usize)) -> String {
    let image = format!("{kind}.img");
    let line = format!("mkfs -q -t {kind} --size 64M --seed 1 {options} {image}");
    sandbox.run(&line).ok();
    image
}

/// Holds if each file of an image has its content in few runs, and a check finds nothing.
fn lie_in_few_runs(sandbox: &Sandbox, image: &str, content: &[u8]) {
    sandbox.run(&format!("fsck -n {image}")).ok();
    let path = sandbox.path(image);
    let source = Source::parse(path.as_os_str().as_encoded_bytes()).unwrap();
    let how = Attach {
        read_only: true,
        ..Attach::default()
    };
    let fs = volary::open_volume(&source, &how, Time::from_secs(0))
        .unwrap()
        .fs;
    as_root(|cx| {
        for file in FILES {
            let name = Name::new(file.as_bytes()).unwrap();
            let node = fs.lookup(cx, fs.root(), name).unwrap().node;
            let runs = runs(&fs, cx, node);
            println!("{image}: {file} in {} runs", runs.len());
            assert!(runs.len() <= MOST, "{image}: {file}: {runs:?}");
        }
        fs.detach(cx).unwrap();
    });
    for file in FILES {
        sandbox.run(&format!("cp {image}:/{file} back-{file}")).ok();
        assert!(
            sandbox.read(&format!("back-{file}")) == content,
            "{image}: {file}"
        );
    }
}

#[test]
fn files_of_writers_on_a_mount_lie_in_few_runs() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        let image = make(&sandbox, kind);
        let content = noise(PIECES * kind.2);
        sandbox.write("content", &content);
        let Some(mount) = Mounting::start(&sandbox, &[&image]) else {
            return;
        };
        // Each write is on the disk before the next, so that the writers take turns.
        let writers = FILES.map(|file| {
            let mut dd = Command::new("dd");
            dd.args([
                "if=content",
                "oflag=append,dsync",
                "conv=notrunc",
                "status=none",
            ]);
            dd.args([format!("of=mnt/{file}"), format!("bs={}", kind.2)]);
            dd.current_dir(sandbox.path("")).spawn().unwrap()
        });
        for mut writer in writers {
            assert!(writer.wait().unwrap().success());
        }
        mount.stop();
        lie_in_few_runs(&sandbox, &image, &content);
    }
}

#[test]
fn files_of_writers_by_nfs_lie_in_few_runs() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        let image = make(&sandbox, kind);
        let content = noise(PIECES * kind.2);
        let serving = Serving::start(&sandbox, &format!("--squash none {image}"));
        let address: SocketAddr = serving.said["nfs"].as_str().unwrap().parse().unwrap();
        let mut client = nfs::Client::new(address);
        let root = client.mnt(&format!("/{}", kind.0)).unwrap();
        let files = FILES.map(|file| {
            let how = nfs::How::Guarded(nfs::Set::mode(0o644));
            client.create(&root, file.as_bytes(), how).unwrap().0
        });
        for (i, part) in content.chunks(kind.2).enumerate() {
            for file in &files {
                client.write(file, (i * kind.2) as u64, part, 0).unwrap();
            }
        }
        drop(client);
        serving.stop("-TERM");
        lie_in_few_runs(&sandbox, &image, &content);
    }
}

#[test]
fn files_of_writers_by_smb_lie_in_few_runs() {
    for kind in KINDS {
        let sandbox = Sandbox::empty();
        let image = make(&sandbox, kind);
        let content = noise(PIECES * kind.2);
        let words = ["serve", "--json", "--smb", "127.0.0.1:0", "--user", "me"];
        let mut command = sandbox.command(&[&words[..], &[&image]].concat());
        command.env("VOLARY_PASSWORD", "secret");
        let serving = Serving::of(command);
        let address: SocketAddr = serving.said["smb"].as_str().unwrap().parse().unwrap();
        let client = smb::Client::connect(address, "me", "secret", kind.0, [7; 16]);
        let client = client.unwrap().0;
        let how = smb::How {
            disposition: disposition::CREATE,
            ..smb::How::open(access::WRITE)
        };
        let opens = FILES.map(|file| client.open(file, &how).unwrap().open);
        for (i, part) in content.chunks(kind.2).enumerate() {
            for open in opens {
                client.write(open, (i * kind.2) as u64, part).unwrap();
            }
        }
        for open in opens {
            client.close(open).unwrap();
        }
        serving.stop("-TERM");
        lie_in_few_runs(&sandbox, &image, &content);
    }
}

#[test]
fn parameters_of_a_mounted_ffs_volume_are_changed_by_its_directory() {
    let sandbox = Sandbox::empty();
    let disk = "block=4096,fragment=512,nsect=32,ntrak=4,cpg=16,maxcontig=1";
    let line = format!("mkfs -q -t ffs1 --size 8M --seed 1 -o {disk} ffs.img");
    sandbox.run(&line).ok();
    let Some(mount) = Mounting::start(&sandbox, &["ffs.img"]) else {
        return;
    };
    let content = noise(8 * 4096);
    sandbox.write("mnt/before", &content);
    let said = sandbox.run("tune -o rotdelay=4,minfree=3 mnt").ok();
    assert!(said.contains("rotdelay") && said.contains('4'), "{said}");
    sandbox.write("mnt/after", &content);
    for (words, code, says) in [
        (
            "tune -o rotdelay=5000 mnt",
            2,
            "does not take these options",
        ),
        ("tune -L NAME mnt", 2, "only options"),
        ("tune -o rotdelay=4 tree", 3, "is a directory"),
    ] {
        let said = sandbox.run(words).fails(code);
        assert!(said.contains(says), "{said}");
    }
    mount.stop();
    sandbox.run("fsck -n ffs.img").ok();
    let dumped = sandbox.run("dump ffs.img superblock").ok();
    for (field, value) in [("fs_old_rotdelay", "4"), ("fs_minfree", "3")] {
        let mut lines = dumped.lines().map(|line| line.split_whitespace());
        let found = lines.find_map(|mut words| (words.nth(1)? == field).then(|| words.next())?);
        assert_eq!(found, Some(value), "{field}");
    }
    let path = sandbox.path("ffs.img");
    let source = Source::parse(path.as_os_str().as_encoded_bytes()).unwrap();
    let fs = volary::open_volume(&source, &Attach::default(), Time::from_secs(0))
        .unwrap()
        .fs;
    as_root(|cx| {
        for (file, count) in [("before", 1), ("after", 8)] {
            let name = Name::new(file.as_bytes()).unwrap();
            let node = fs.lookup(cx, fs.root(), name).unwrap().node;
            assert_eq!(runs(&fs, cx, node).len(), count, "{file}");
        }
        fs.detach(cx).unwrap();
    });
}
