//! Who may what: what the modes give, also where one user alone can get to the mount.

use crate::mount::{Mount, can_mount, clock, memory, volume_of};
use rustix::fs::{CWD, Mode, OFlags, XattrFlags};
use rustix::io::Errno;
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::process::CommandExt;
use std::process::Command;
use volary_fuse::{Checks, MountOptions};
use volary_session::{Volume, VolumeOptions};

/// Runs `work` as root without any of root's rights, by a thread of its own.
fn as_plain_root(work: impl FnOnce() + Send) {
    std::thread::scope(|threads| {
        let plain = move || {
            let mut sets = capabilities(None).expect("capabilities");
            sets.effective = CapabilitySet::empty();
            set_capabilities(None, sets).expect("fewer capabilities");
            work();
        };
        threads.spawn(plain).join().expect("the thread");
    });
}

#[test]
fn root_without_its_rights_gets_what_the_modes_give() {
    if !can_mount() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to have no rights as root takes root");
        return;
    }
    let mount = Mount::new(&MountOptions::default()).expect("a mount");
    let (file, dir) = (mount.at("file"), mount.at("dir"));
    let below = dir.join("below");
    fs::write(&file, "secret").unwrap();
    fs::create_dir(&dir).unwrap();
    fs::write(&below, "").unwrap();
    for (path, mode) in [(&file, 0o600), (&below, 0o666), (&dir, 0o755)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        chown(path, Some(1000), Some(1000)).unwrap();
    }
    // Looked at by who may, so that nothing is refused for want of knowledge.
    assert_eq!(fs::read(&file).unwrap(), b"secret");
    as_plain_root(|| {
        let open = |flags| rustix::fs::open(&file, flags, Mode::empty()).map(drop);
        assert_eq!(open(OFlags::RDONLY), Err(Errno::ACCESS));
        assert_eq!(open(OFlags::WRONLY | OFlags::TRUNC), Err(Errno::ACCESS));
        let mode = Mode::from_raw_mode(0o777);
        assert_eq!(rustix::fs::chmod(&file, mode), Err(Errno::PERM));
        let to_root = rustix::fs::chown(&file, Some(rustix::fs::Uid::ROOT), None);
        assert_eq!(to_root, Err(Errno::PERM));
        let set = rustix::fs::setxattr(&file, "user.x", b"", XattrFlags::empty());
        assert_eq!(set, Err(Errno::ACCESS));
        let code = |done: std::io::Result<()>| done.map_err(|e| e.raw_os_error());
        let refused = Err(Some(Errno::ACCESS.raw_os_error()));
        assert_eq!(code(fs::remove_file(&below)), refused);
        assert_eq!(code(fs::write(dir.join("new"), "")), refused);
        assert_eq!(code(symlink("x", dir.join("link"))), refused);
        assert_eq!(code(fs::rename(&below, mount.at("moved"))), refused);
        // What the modes give, it gets.
        rustix::fs::openat(CWD, &below, OFlags::RDWR, Mode::empty()).unwrap();
        fs::write(mount.at("own"), "").unwrap();
    });
    assert_eq!(fs::read(&file).unwrap(), b"secret");
    let names = fs::read_dir(&dir).unwrap();
    assert_eq!(names.count(), 1, "nothing came or went");
}

/// Whoever checks: what somebody else has looked up is no way around a directory.
#[test]
fn a_directory_is_searched_by_who_may_though_the_kernel_knows_what_is_in_it() {
    if !can_mount() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to be another user takes root");
        return;
    }
    for checks in [Checks::Kernel, Checks::Session] {
        let options = MountOptions {
            allow_other: true,
            checks,
            ..MountOptions::default()
        };
        let volume = match checks {
            Checks::Kernel => volume_of(memory()),
            Checks::Session => Volume::new(memory(), VolumeOptions::new("test", clock)),
        };
        let mount = Mount::of_volume(volume, &options).expect("a mount");
        let dir = mount.at("private");
        let file = dir.join("file");
        fs::create_dir(&dir).unwrap();
        fs::write(&file, "secret").unwrap();
        for (path, mode) in [(&file, 0o644), (&dir, 0o700)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
            chown(path, Some(1000), Some(1000)).unwrap();
        }
        fs::set_permissions(mount.at(""), fs::Permissions::from_mode(0o755)).unwrap();
        let read_by = |user| {
            let mut cat = Command::new("cat");
            let output = cat.arg(&file).uid(user).gid(user).output().unwrap();
            String::from_utf8_lossy(&output.stdout).into_owned()
        };
        for (user, given) in [(1000, "secret"), (1001, ""), (1000, "secret"), (1001, "")] {
            assert_eq!(read_by(user), given, "{checks:?}, user {user}");
        }
    }
}

#[test]
fn a_directory_is_listed_by_who_may_not_search_it() {
    if !can_mount() || !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to be another user takes root");
        return;
    }
    let options = MountOptions {
        allow_other: true,
        checks: Checks::Session,
        ..MountOptions::default()
    };
    let volume = Volume::new(memory(), VolumeOptions::new("test", clock));
    let mount = Mount::of_volume(volume, &options).expect("a mount");
    let dir = mount.at("dir");
    fs::create_dir(&dir).unwrap();
    fs::write(dir.join("file"), "secret").unwrap();
    for (path, mode) in [(mount.at(""), 0o755), (dir.clone(), 0o744)] {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    }
    let run_by_other = |program: &str, args: &[&str]| {
        let mut command = Command::new(program);
        command.args(args).current_dir(mount.at(""));
        let output = command.uid(1001).gid(1001).output().unwrap();
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    assert_eq!(run_by_other("ls", &["-a", "dir"]), ".\n..\nfile\n");
    assert_eq!(run_by_other("cat", &["dir/file"]), "");
}
