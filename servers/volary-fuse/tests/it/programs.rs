//! Programs of the host at work on a mounted volume.

use crate::mount::{Mount, can_mount};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::{self, File};
use std::path::Path;
use std::process::Command;
use tempfile::TempDir;
use volary_fuse::MountOptions;

/// Runs a program in `dir`; fails with its words if it does.
fn run(dir: &Path, program: &str, args: &[&str]) {
    let mut command = Command::new(program);
    let done = command.args(args).current_dir(dir).output().unwrap();
    let words = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {args:?}: {words}");
}

/// As many mounts as there are ways for the kernel to write.
fn mounts() -> Vec<Mount> {
    let through = MountOptions {
        write_back: Some(false),
        ..MountOptions::default()
    };
    let back = MountOptions {
        write_back: Some(true),
        ..MountOptions::default()
    };
    [through, back].iter().filter_map(Mount::new).collect()
}

#[test]
fn a_repository_is_cloned_and_found_sound() {
    if !can_mount() {
        return;
    }
    let host = TempDir::new().unwrap();
    let repo = host.path().join("repo");
    fs::create_dir(&repo).unwrap();
    run(&repo, "git", &["init", "-q"]);
    for n in 0..50 {
        fs::write(
            repo.join(format!("file{n}")),
            format!("{n}\n").repeat(n * 20),
        )
        .unwrap();
    }
    run(&repo, "git", &["add", "."]);
    let who = ["-c", "user.name=t", "-c", "user.email=t@example.org"];
    run(
        &repo,
        "git",
        &[&who[..], &["commit", "-qm", "all"]].concat(),
    );
    for mount in mounts() {
        let from = repo.to_str().unwrap();
        run(
            mount.mounted.path(),
            "git",
            &["clone", "-q", "--no-local", from, "clone"],
        );
        let clone = mount.at("clone");
        run(&clone, "git", &["fsck", "--strict"]);
        run(
            &clone,
            "git",
            &["-c", "core.fileMode=true", "diff", "--exit-code"],
        );
        run(&clone, "git", &["gc", "-q"]);
        run(&clone, "git", &["fsck", "--strict"]);
    }
}

#[test]
fn an_archive_is_unpacked_as_it_was_packed() {
    if !can_mount() {
        return;
    }
    let host = TempDir::new().unwrap();
    let tree = host.path().join("tree");
    fs::create_dir_all(tree.join("deep/deeper")).unwrap();
    for n in 0..200 {
        fs::write(tree.join(format!("deep/file{n}")), vec![n as u8; n * 100]).unwrap();
    }
    std::os::unix::fs::symlink("../file1", tree.join("deep/deeper/link")).unwrap();
    fs::hard_link(tree.join("deep/file7"), tree.join("deep/deeper/same")).unwrap();
    run(host.path(), "tar", &["cf", "tree.tar", "tree"]);
    let archive = host.path().join("tree.tar");
    let archive = archive.to_str().unwrap();
    for mount in mounts() {
        run(mount.mounted.path(), "tar", &["xpf", archive]);
        run(mount.mounted.path(), "tar", &["df", archive]);
        run(mount.mounted.path(), "cp", &["-a", "tree", "copy"]);
        run(mount.mounted.path(), "diff", &["-r", "tree", "copy"]);
        run(mount.mounted.path(), "rm", &["-r", "tree", "copy"]);
    }
}

#[test]
fn a_crate_is_built_and_run() {
    for mount in mounts() {
        let krate = mount.at("hello");
        fs::create_dir_all(krate.join("src")).unwrap();
        let manifest =
            "[package]\nname = \"hello\"\nversion = \"0.1.0\"\nedition = \"2024\"\n[workspace]\n";
        fs::write(krate.join("Cargo.toml"), manifest).unwrap();
        fs::write(
            krate.join("src/main.rs"),
            "fn main() { println!(\"hello\"); }\n",
        )
        .unwrap();
        let target = krate.join("target");
        let mut cargo = Command::new(env!("CARGO"));
        cargo
            .args(["run", "-q", "--offline"])
            .current_dir(&krate)
            .env("CARGO_TARGET_DIR", target);
        let done = cargo.output().unwrap();
        let words = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{words}");
        assert_eq!(done.stdout, b"hello\n");
    }
}

#[test]
#[expect(unsafe_code, reason = "mapping memory is a system call")]
fn a_mapped_file_is_read_and_written_in_place() {
    use rustix::mm::{MapFlags, MsyncFlags, ProtFlags, mmap, msync, munmap};
    const LEN: usize = 64 << 10;
    for mount in mounts() {
        fs::write(mount.at("file"), vec![5; LEN]).unwrap();
        let file = File::options()
            .read(true)
            .write(true)
            .open(mount.at("file"))
            .unwrap();
        let prot = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses a place that is free; it is unmapped below
        // and not used after.
        unsafe {
            let place = mmap(std::ptr::null_mut(), LEN, prot, MapFlags::SHARED, &file, 0).unwrap();
            let bytes = std::slice::from_raw_parts_mut(place.cast::<u8>(), LEN);
            assert!(bytes.iter().all(|byte| *byte == 5));
            bytes[10_000] = 6;
            msync(place, LEN, MsyncFlags::SYNC).unwrap();
            munmap(place, LEN).unwrap();
        }
        let other = mount.other();
        let node = other.lookup(other.root(), b"file").unwrap().node;
        let open = other.open(node, volary_core::Mode::Read).unwrap();
        let mut byte = [0];
        other.read(open, 10_000, &mut byte).unwrap();
        assert_eq!(byte, [6]);
    }
}

#[test]
fn a_running_program_is_not_cut() {
    let sleep = fs::read("/bin/sleep").unwrap();
    for mount in mounts() {
        for round in 0..20 {
            let place = mount.at(&format!("program{round}"));
            fs::write(&place, &sleep).unwrap();
            run(
                mount.mounted.path(),
                "chmod",
                &["755", place.to_str().unwrap()],
            );
            let mut running = Command::new(&place).arg("600").spawn().unwrap();
            for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::RDONLY] {
                let opened = rustix::fs::open(&place, flags | OFlags::TRUNC, Mode::empty());
                assert_eq!(opened.err(), Some(Errno::TXTBSY), "{flags:?}");
            }
            running.kill().unwrap();
            running.wait().unwrap();
            assert!(fs::read(&place).unwrap() == sleep, "round {round}");
        }
    }
}

#[test]
fn an_open_cuts_what_it_is_to_cut() {
    for mount in mounts() {
        let place = mount.at("file");
        for flags in [OFlags::WRONLY, OFlags::RDWR, OFlags::RDONLY] {
            fs::write(&place, "something").unwrap();
            rustix::fs::open(&place, flags | OFlags::TRUNC, Mode::empty()).unwrap();
            assert_eq!(fs::read(&place).unwrap(), b"", "{flags:?}");
        }
    }
}
