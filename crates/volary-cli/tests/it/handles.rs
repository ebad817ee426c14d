//! What NFS clients hold of a directory of the host when its server is killed.

use crate::sandbox::Sandbox;
use crate::serving::Serving;
use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use tempfile::TempDir;
use volary_testkit::nfs::client::{Client, How, Set};

const STALE: u32 = 70;

/// Returns where directories are served from: on a disk, and in memory.
fn grounds() -> Vec<TempDir> {
    let disk = TempDir::new_in(env!("CARGO_TARGET_TMPDIR"));
    let memory = TempDir::new_in("/dev/shm");
    vec![disk.unwrap(), memory.unwrap()]
}

fn serve(sandbox: &Sandbox, dir: &Path) -> Serving {
    let words = format!("--squash none host:{}", dir.display());
    Serving::start(sandbox, &words)
}

fn client(serving: &Serving) -> Client {
    let address: SocketAddr = serving.said["nfs"].as_str().unwrap().parse().unwrap();
    Client::new(address)
}

fn export(serving: &Serving) -> String {
    let export = serving.said["volumes"][0]["export"].as_str();
    export.unwrap().to_owned()
}

fn is_root() -> bool {
    fs::metadata("/proc/self").unwrap().uid() == 0
}

fn make(c: &mut Client, dir: &[u8], name: &str) -> Vec<u8> {
    let how = How::Guarded(Set::mode(0o644));
    let (fh, _) = c.create(dir, name.as_bytes(), how).unwrap();
    c.write(&fh, 0, name.as_bytes(), 2).unwrap();
    fh
}

fn dir_in(ground: &TempDir, path: &str) -> PathBuf {
    let dir = ground.path().join(path);
    fs::create_dir_all(&dir).unwrap();
    dir
}

#[test]
fn handles_of_a_directory_outlive_a_server_that_is_killed() {
    for ground in grounds() {
        let (sandbox, top) = (Sandbox::empty(), dir_in(&ground, "top"));
        let serving = serve(&sandbox, &top);
        let mut c = client(&serving);
        let root = c.mnt("/top").unwrap();
        let mkdir = |c: &mut Client, name| c.mkdir(&root, name, &Set::mode(0o755)).unwrap().0;
        let (dir, other) = (mkdir(&mut c, b"dir"), mkdir(&mut c, b"other"));
        let [kept, here, there, gone, out] =
            ["kept", "here", "there", "gone", "out"].map(|name| make(&mut c, &dir, name));
        c.rename((&dir, b"here"), (&dir, b"elsewhere")).unwrap();
        // Dropped, it is killed by a signal that it does not see.
        drop((c, serving));
        fs::rename(top.join("dir/there"), top.join("other/moved")).unwrap();
        fs::rename(top.join("other"), top.join("dir/other")).unwrap();
        fs::rename(top.join("dir/out"), ground.path().join("out")).unwrap();
        fs::remove_file(top.join("dir/gone")).unwrap();

        let serving = serve(&sandbox, &top);
        let mut c = client(&serving);
        if !is_root() {
            assert_eq!(c.getattr(&root).unwrap_err(), STALE);
            continue;
        }
        assert_eq!(c.mnt("/top").unwrap(), root);
        for (fh, content) in [(&kept, "kept"), (&here, "here"), (&there, "there")] {
            assert_eq!(c.read(fh, 0, 9).unwrap().0, content.as_bytes());
        }
        assert_eq!(c.lookup(&dir, b"kept").unwrap().0, kept);
        assert_eq!(c.lookup(&other, b"moved").unwrap().0, there);
        assert_eq!(c.lookup(&other, b"..").unwrap().0, dir);
        for fh in [&gone, &out] {
            assert_eq!(c.getattr(fh).unwrap_err(), STALE);
            assert_eq!(c.read(fh, 0, 9).unwrap_err(), STALE);
            assert_eq!(c.write(fh, 0, b"x", 2).unwrap_err(), STALE);
        }
        assert_eq!(fs::read(ground.path().join("out")).unwrap(), b"out");
        let new = make(&mut c, &other, "new");
        assert!(top.join("dir/other/new").exists() && new != gone);
    }
}

#[test]
fn handles_of_a_directory_of_a_volume_outlive_a_server_that_is_killed() {
    let sandbox = Sandbox::new();
    for words in ["mkdir unix.img:/in", "mkdir unix.img:/out"] {
        sandbox.run(words).ok();
    }
    fs::create_dir_all(sandbox.path("top/in")).unwrap();
    let mut volumes = vec!["unix.img"];
    if is_root() {
        volumes.push("host:top");
    }
    for volume in volumes {
        let serve = |path| {
            let words = format!("--squash none {volume}:{path}");
            Serving::start(&sandbox, &words)
        };
        let serving = serve("/in");
        let part = export(&serving);
        let mut c = client(&serving);
        let root = c.mnt(&part).unwrap();
        let (dir, _) = c.mkdir(&root, b"dir", &Set::mode(0o755)).unwrap();
        let [kept, moved, gone] = ["kept", "moved", "gone"].map(|name| make(&mut c, &dir, name));
        c.rename((&dir, b"moved"), (&root, b"elsewhere")).unwrap();
        drop((c, serving));

        // A handle of the whole volume leads nowhere in the part.
        let serving = serve("/");
        let mut c = client(&serving);
        let top = c.mnt(&export(&serving)).unwrap();
        let secret = make(&mut c, &top, "secret");
        let inside = c.lookup(&top, b"in").unwrap().0;
        let dir_there = c.lookup(&inside, b"dir").unwrap().0;
        c.remove(&dir_there, b"gone").unwrap();
        drop((c, serving));

        let serving = serve("/in");
        let mut c = client(&serving);
        assert_eq!(c.mnt(&part).unwrap(), root);
        assert_eq!(c.read(&kept, 0, 9).unwrap().0, b"kept");
        // A file of FAT has another number once it is renamed and the server restarted.
        let lasts = if volume == "unix.img" { STALE } else { 0 };
        assert_eq!(c.read(&moved, 0, 9).err().unwrap_or(0), lasts);
        assert_eq!(c.lookup(&dir, b"kept").unwrap().0, kept);
        for fh in [&gone, &secret] {
            assert_eq!(c.getattr(fh).unwrap_err(), STALE);
        }
    }
}

#[test]
fn handles_of_one_directory_are_stale_to_another_under_its_name() {
    for ground in grounds() {
        let (sandbox, outer) = (Sandbox::empty(), dir_in(&ground, "top"));
        let inner = dir_in(&ground, "top/top");
        let serving = serve(&sandbox, &outer);
        let mut c = client(&serving);
        let root = c.mnt("/top").unwrap();
        let (dir, _) = c.lookup(&root, b"top").unwrap();
        let file = make(&mut c, &dir, "file");
        drop((c, serving));
        let serving = serve(&sandbox, &inner);
        let mut c = client(&serving);
        for fh in [&root, &dir, &file] {
            assert_eq!(c.getattr(fh).unwrap_err(), STALE);
        }
        let root = c.mnt("/top").unwrap();
        assert!(c.lookup(&root, b"file").unwrap().0 != file);
    }
}
