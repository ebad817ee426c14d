//! What runs with more rights than its caller's, on a mount that honours it (`-o suid`).

use crate::mounting::Mounting;
use crate::sandbox::{Run, Sandbox};
use crate::serving::can_mount;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use volary_testkit::oracle;

/// To whom the program belongs, and who runs it.
const OWNER: &str = "1000";
const OTHER: &str = "1001";

/// Changes a program without harm to it, at its end.
const CHANGE: &str = r#"
import ctypes, mmap, os, sys
way, path = sys.argv[1:]
f = os.open(path, os.O_RDWR | (os.O_DIRECT if way == 'direct' else 0))
end = os.fstat(f).st_size
up = (end + 4095) // 4096 * 4096
if way == 'write':
    os.lseek(f, end, os.SEEK_SET)
    assert os.write(f, b'x') == 1
elif way == 'pwrite':
    assert os.pwrite(f, b'x', end) == 1
elif way == 'direct':
    assert os.pwritev(f, [mmap.mmap(-1, 4096)], up) == 4096
elif way == 'fallocate':
    libc = ctypes.CDLL(None, use_errno=True)
    long = ctypes.c_long
    if libc.fallocate(f, 0, long(up), long(4096)) != 0:
        assert ctypes.get_errno() == 95
        print('unsupported')
elif way == 'ftruncate':
    os.ftruncate(f, end + 1)
elif way == 'truncate':
    os.truncate(path, end + 1)
elif way == 'copy':
    assert os.copy_file_range(f, f, 1, 0, end) == 1
os.close(f)
"#;

const WAYS: [&str; 7] = [
    "write",
    "pwrite",
    "direct",
    "fallocate",
    "ftruncate",
    "truncate",
    "copy",
];

const DRIVERS: [(&str, &str); 4] = [
    ("mem", "mem:32M"),
    ("host", "host:dir"),
    ("ffs2", "v.img"),
    ("cedar", "v.img"),
];

fn run_as(user: &str, program: &str, words: &[&str]) -> Run {
    let mut command = Command::new("setpriv");
    command.args(["--reuid", user, "--regid", user, "--clear-groups", program]);
    Run::of(&command.args(words).output().unwrap())
}

/// Mounts a volume of the driver; `None` where nothing can be mounted.
fn mounted(sandbox: &Sandbox, driver: &str, volume: &str) -> Option<Mounting> {
    if !can_mount() {
        return None;
    }
    match driver {
        "mem" => {}
        "host" => drop(sandbox.shell("mkdir -m 755 dir").ok()),
        driver => {
            let words = format!("mkfs -q -t {driver} --size 32M v.img");
            sandbox.run(&words).ok();
        }
    }
    sandbox.shell("chmod 755 . mnt").ok();
    Mounting::start(sandbox, &["-o", "suid,allow_other", volume])
}

/// A program that says as whom it runs, with set-uid and set-gid of the owner.
fn program(path: &Path) {
    oracle::install(Path::new("/usr/bin/id"), path);
    chown(path, Some(1000), Some(1000)).unwrap();
    fs::set_permissions(path, fs::Permissions::from_mode(0o6755)).unwrap();
}

#[test]
fn a_program_that_its_owner_has_written_runs_as_its_caller_at_once() {
    for (driver, volume) in DRIVERS {
        let sandbox = Sandbox::empty();
        let Some(mounting) = mounted(&sandbox, driver, volume) else {
            return;
        };
        for way in WAYS {
            let path = sandbox.path("mnt").join(way);
            let name = path.to_str().unwrap();
            program(&path);
            assert_eq!(
                run_as(OTHER, name, &["-u"]).ok().trim(),
                OWNER,
                "{driver} {way}"
            );
            let changed = run_as(OWNER, "/usr/bin/python3", &["-c", CHANGE, way, name]).ok();
            let expected = if changed.is_empty() { OTHER } else { OWNER };
            assert_eq!(
                run_as(OTHER, name, &["-u"]).ok().trim(),
                expected,
                "{driver} {way}"
            );
            let mode = fs::metadata(&path).unwrap().mode() & 0o7777;
            assert_eq!(mode == 0o755, expected == OTHER, "{driver} {way}: {mode:o}");
        }
        mounting.end();
    }
}

/// Of Linux's form: may bind low ports (VFS_CAP_REVISION_2).
const CAPABILITY: [u8; 20] = [1, 0, 0, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

#[test]
fn a_program_that_was_written_has_no_capabilities() {
    use rustix::fs::{XattrFlags, getxattr, setxattr};
    for (driver, volume) in [DRIVERS[0], DRIVERS[3]] {
        let sandbox = Sandbox::empty();
        let Some(mounting) = mounted(&sandbox, driver, volume) else {
            return;
        };
        for way in WAYS {
            let path = sandbox.path("mnt").join(way);
            program(&path);
            let name = "security.capability";
            setxattr(&path, name, &CAPABILITY, XattrFlags::empty()).unwrap();
            assert_eq!(getxattr(&path, name, &mut [0; 64][..]), Ok(20));
            let words = ["-c", CHANGE, way, path.to_str().unwrap()];
            run_as(OWNER, "/usr/bin/python3", &words).ok();
            let left = getxattr(&path, name, &mut [0; 64][..]);
            assert_eq!(left, Err(rustix::io::Errno::NODATA), "{driver} {way}");
        }
        mounting.end();
    }
}
