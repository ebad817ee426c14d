//! Files of a file system that Linux has mounted, read from the block device below it.

use std::process::Command;
use volary_testkit::oracle::{self, MKE2FS, vm};

/// What is done in the guest.
const PROGRAM: &str = include_str!("below.py");

#[test]
fn files_of_a_mount_are_read_from_the_device_as_the_kernel_has_them() {
    let Some(vmrun) = vm::find() else { return };
    if !oracle::have(&[MKE2FS]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let image = dir.path().join("disk.img");
    // Times of small inodes count seconds: the coarsest that there are.
    let mut make: Command = MKE2FS.command();
    make.args(["-q", "-t", "ext4", "-I", "128", "-b", "1024"]);
    let made = make.arg(&image).arg("24M").output().unwrap();
    assert!(made.status.success(), "{made:?}");
    let volary = env!("CARGO_BIN_EXE_volary");
    let script = format!("chroot /host /usr/bin/python3 -I - {volary} <<'END'\n{PROGRAM}\nEND\n");
    let disk = image.display().to_string();
    let options = ["--hostroot", "--timeout", "400", "--disk", &disk];
    let printed =
        vm::with_network(&vmrun, &options, &script).unwrap_or_else(|words| panic!("{words}"));
    let expected = "at rest: as the kernel reads it\nwhile it is written: nothing of before\na journal of data: refused\n";
    assert_eq!(printed, expected);
}
