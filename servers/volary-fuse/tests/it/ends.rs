//! How mounts begin and end.

use crate::mount::{Mount, can_mount, is_mounted, start_server, until, volume};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::process::{Child, Command};
use std::sync::Arc;
use tempfile::TempDir;
use volary_core::{Cred, Kind};
use volary_fuse::{MountOptions, Stop, serve};
use volary_mem::MemOptions;

fn signal(server: &Child, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(server.id()).unwrap()).unwrap();
    kill_process(pid, signal).unwrap();
}

#[test]
fn unmounting_detaches_the_volume_and_leaves_the_directory() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    fs::write(mount.at("file"), "content").unwrap();
    let place = mount.mounted.path().to_path_buf();
    mount.mounted.unmount().unwrap();
    assert!(!is_mounted(&place));
    assert_eq!(mount.other().statfs().unwrap_err(), Kind::Stale);
    assert_eq!(fs::read_dir(place).unwrap().count(), 0);
}

#[test]
fn unmounting_by_hand_ends_the_server_cleanly() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let umount = Command::new("umount")
        .arg(mount.mounted.path())
        .status()
        .unwrap();
    assert!(umount.success());
    mount.mounted.wait().unwrap();
    assert_eq!(mount.other().statfs().unwrap_err(), Kind::Stale);
}

#[test]
fn a_mount_in_use_stays_until_it_is_not() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let file = File::create(mount.at("file")).unwrap();
    let busy = mount.mounted.unmount().unwrap_err();
    assert_eq!(busy, Kind::Busy);
    assert!(busy.to_string().contains("is in use"), "{busy}");
    fs::write(mount.at("other"), "still works").unwrap();
    drop(file);
    mount.mounted.unmount().unwrap();
}

#[test]
fn a_lazily_unmounted_file_can_be_used_until_it_is_closed() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let mut file = File::create_new(mount.at("file")).unwrap();
    mount.mounted.unmount_lazily().unwrap();
    assert!(!is_mounted(mount.mounted.path()));
    file.write_all(b"late").unwrap();
    drop(file);
    mount.mounted.wait().unwrap();
}

#[test]
fn a_mount_beside_servers_is_not_waited_for_when_it_was_lazily_unmounted() {
    if !can_mount() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let volume = volume(MemOptions::sized(1 << 20));
    let options = MountOptions::default();
    let mounted = serve(Arc::clone(&volume), dir.path(), &options, Stop::CallBeside);
    let mounted = mounted.unwrap();
    let mut file = File::create_new(dir.path().join("file")).unwrap();
    assert_eq!(mounted.unmount().unwrap_err(), Kind::Busy);
    mounted.unmount_lazily().unwrap();
    let next = serve(Arc::clone(&volume), dir.path(), &options, Stop::CallBeside).unwrap();
    drop(mounted);
    assert!(is_mounted(dir.path()), "by the next one");
    file.write_all(b"late").unwrap();
    next.unmount().unwrap();
    volume.detach().unwrap();
    let gone = file.write_all(b"later").and_then(|()| file.sync_all());
    assert!(gone.is_err(), "the volume is detached");
}

#[test]
fn a_signal_ends_a_server_cleanly() {
    if !can_mount() {
        return;
    }
    for which in [Signal::TERM, Signal::INT] {
        let dir = TempDir::new().unwrap();
        let mut server = start_server(dir.path());
        fs::write(dir.path().join("file"), "content").unwrap();
        signal(&server, which);
        assert!(server.wait().unwrap().success());
        assert!(!is_mounted(dir.path()));
    }
}

#[test]
fn a_signalled_server_serves_open_files_to_their_end_and_a_second_signal_ends_that() {
    if !can_mount() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let mut server = start_server(dir.path());
    fs::write(dir.path().join("file"), "content").unwrap();
    let mut file = File::open(dir.path().join("file")).unwrap();
    signal(&server, Signal::TERM);
    until("the mount is gone from its place", || {
        !is_mounted(dir.path())
    });
    let mut content = String::new();
    file.read_to_string(&mut content).unwrap();
    assert_eq!(content, "content");
    signal(&server, Signal::TERM);
    assert!(server.wait().unwrap().success());
}

#[test]
fn a_mount_point_left_by_a_killed_server_is_freed_and_used() {
    if !can_mount() {
        return;
    }
    let dir = TempDir::new().unwrap();
    let mut server = start_server(dir.path());
    signal(&server, Signal::KILL);
    server.wait().unwrap();
    until("the mount is dead", || fs::metadata(dir.path()).is_err());
    let volume = volume(MemOptions::default());
    let mounted = serve(volume, dir.path(), &MountOptions::default(), Stop::Call).unwrap();
    assert!(mounted.was_dead());
    fs::write(dir.path().join("file"), "content").unwrap();
    mounted.unmount().unwrap();
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn a_mount_point_in_use_is_refused_and_the_volume_stays_attached() {
    let Some(mount) = Mount::new(&MountOptions::default()) else {
        return;
    };
    let second = volume(MemOptions::default());
    let place = mount.mounted.path();
    let options = MountOptions::default();
    let refused = serve(Arc::clone(&second), place, &options, Stop::Call).unwrap_err();
    assert_eq!(refused, Kind::Busy);
    second.session(Cred::root()).statfs().unwrap();
}

#[test]
fn a_read_only_mount_refuses_changes() {
    let options = MountOptions {
        read_only: true,
        ..MountOptions::default()
    };
    let Some(mount) = Mount::new(&options) else {
        return;
    };
    let refused = File::create(mount.at("file")).unwrap_err();
    assert_eq!(refused.kind(), std::io::ErrorKind::ReadOnlyFilesystem);
}

#[test]
fn symlinks_are_shown_but_not_followed_if_asked_for() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: needs root");
        return;
    }
    let options = MountOptions {
        nosymfollow: true,
        ..MountOptions::default()
    };
    let Some(mount) = Mount::new(&options) else {
        return;
    };
    fs::write(mount.at("file"), "content").unwrap();
    std::os::unix::fs::symlink("file", mount.at("link")).unwrap();
    assert_eq!(
        fs::read_link(mount.at("link")).unwrap().to_str(),
        Some("file")
    );
    let refused = fs::read(mount.at("link")).unwrap_err();
    assert_eq!(
        refused.raw_os_error(),
        Some(rustix::io::Errno::LOOP.raw_os_error())
    );
}

#[test]
fn a_number_of_threads_past_the_bound_is_refused() {
    let options = MountOptions {
        threads: Some(65),
        ..MountOptions::default()
    };
    let place = TempDir::new().unwrap();
    let refused = serve(
        volume(MemOptions::default()),
        place.path(),
        &options,
        Stop::Call,
    );
    assert_eq!(
        refused.unwrap_err().to_string(),
        "option 'threads' is '65', expected 1 to 64"
    );
}
