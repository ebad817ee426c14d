//! Volumes of Linux and Windows, served: each client of Linux sees in them what its own driver sees.

use crate::served::Server;
use std::fs;
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::Path;
use std::process::Command;
use volary_testkit::oracle::{self, MKE2FS, ntfs, vm};

/// What is done in the guest.
const PROGRAM: &str = include_str!("seen.py");

const CONFIG: &str = "
[[volume]]
volume = 'linux.img'
name = 'linux'
read-only = true
squash = 'none'

[[volume]]
volume = 'windows.img'
name = 'windows'
read-only = true
squash = 'none'
";

/// Files of all lengths about which they are stored differently, many names in one directory, holes, links.
fn fill(root: &Path) {
    fs::create_dir_all(root.join("deep/er/and/deeper")).unwrap();
    fs::create_dir(root.join("many")).unwrap();
    fs::create_dir(root.join("empty")).unwrap();
    for number in 0..120 {
        let name = format!("many/a name of some length, number {number}");
        fs::write(root.join(name), number.to_string()).unwrap();
    }
    for len in [0, 1, 60, 61, 700, 1023, 4096, 4097, 70_000, 300_003] {
        let bytes = volary_testkit::rng::pattern(len, len as usize);
        fs::write(root.join(format!("deep/er/{len}")), bytes).unwrap();
    }
    let holes = fs::File::create(root.join("holes")).unwrap();
    holes.write_all_at(b"begin", 0).unwrap();
    holes.write_all_at(b"middle", 500_001).unwrap();
    holes.set_len(900_000).unwrap();
    fs::write(root.join("äöü ñ 日本"), "names").unwrap();
    symlink("deep/er/61", root.join("link")).unwrap();
    fs::hard_link(root.join("deep/er/700"), root.join("hard")).unwrap();
    let mode = fs::Permissions::from_mode(0o640);
    fs::set_permissions(root.join("deep/er/1"), mode).unwrap();
}

fn make_linux(dir: &Path) {
    let mut command: Command = MKE2FS.command();
    command
        .args(["-q", "-t", "ext4", "-d"])
        .arg(dir.join("tree"));
    let made = command
        .arg(dir.join("linux.img"))
        .arg("24M")
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
}

fn make_windows(dir: &Path) {
    let image = dir.join("windows.img");
    ntfs::make(&image, 16 << 20, "");
    let mounted = ntfs::Mounted::new(&image, &dir.join("place"), "umask=022");
    let copied = Command::new("cp")
        .args(["-a", "tree/.", "place"])
        .current_dir(dir)
        .output();
    drop(mounted);
    let copied = copied.unwrap();
    assert!(copied.status.success(), "{copied:?}");
}

#[test]
fn volumes_of_linux_and_windows_are_served_as_the_kernel_sees_them() {
    let Some(vmrun) = vm::find() else { return };
    if !oracle::have(&[MKE2FS]) || !ntfs::can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    fill(&dir.path().join("tree"));
    make_linux(dir.path());
    make_windows(dir.path());
    fs::write(dir.path().join("serve.toml"), CONFIG).unwrap();
    let server = Server::start(
        dir.path(),
        "serve --json --nfs 127.0.0.1:0 --smb=127.0.0.1:0 --key key --user tester --config serve.toml",
    );
    let script = format!(
        "chroot /host /usr/bin/python3 -I - {} {} {} <<'END'\n{PROGRAM}\nEND\n",
        env!("CARGO_BIN_EXE_volary"),
        server.port("nfs"),
        server.port("smb"),
    );
    let [linux, windows] = ["linux.img", "windows.img"].map(|name| {
        let path = dir.path().join(name);
        format!("{},ro", path.display())
    });
    let options = [
        "--hostroot",
        "--timeout",
        "400",
        "--disk",
        &linux,
        "--disk",
        &windows,
    ];
    let printed =
        vm::with_network(&vmrun, &options, &script).unwrap_or_else(|words| panic!("{words}"));
    assert_eq!(printed.matches(" the same\n").count(), 6, "{printed}");
}
