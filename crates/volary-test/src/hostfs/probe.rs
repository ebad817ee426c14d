//! What a directory of the host can do, found out by looking, or by trying.

use super::unix_caps;
use rustix::fs::{
    AtFlags, CWD, FallocateFlags, FileType, Mode, RenameFlags, fallocate, mknodat, renameat_with,
    statvfs, utimensat,
};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{MetadataExt, PermissionsExt, lchown, symlink};
use std::path::Path;
use volary_core::Caps;

/// Returns what a directory that is only read claims: all of UNIX, but that the case of names is told
/// only where a name is not found in the other case.
///
/// # Errors
/// What the host answers.
pub fn caps_by_looking(dir: &Path) -> io::Result<Caps> {
    let mut caps = with_name_max(unix_caps().without(Caps::WRITE), dir)?;
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        if swapped(&name).is_some_and(|other| fs::symlink_metadata(dir.join(other)).is_ok()) {
            caps = caps.without(Caps::CASE_SENSITIVE);
        }
    }
    Ok(caps)
}

fn with_name_max(mut caps: Caps, dir: &Path) -> io::Result<Caps> {
    let stat = statvfs(dir)?;
    caps.name_max = u16::try_from(stat.f_namemax).unwrap_or(u16::MAX);
    Ok(caps)
}

/// Returns a name in the other case, if it has letters.
fn swapped(name: &OsStr) -> Option<std::ffi::OsString> {
    let swap = |b: &u8| match b {
        b'a'..=b'z' => b.to_ascii_uppercase(),
        b => b.to_ascii_lowercase(),
    };
    let other: Vec<u8> = name.as_bytes().iter().map(swap).collect();
    (other != name.as_bytes()).then(|| std::ffi::OsString::from_vec(other))
}

/// Returns what a directory can do that takes changes, by trying each in it. All that is made is
/// removed again.
///
/// # Errors
/// What the host answers to the simplest of changes.
pub fn caps_by_trying(dir: &Path) -> io::Result<Caps> {
    let at = dir.join("probe");
    fs::create_dir(&at)?;
    let caps = try_each(&at);
    fs::remove_dir_all(&at)?;
    caps
}

fn try_each(dir: &Path) -> io::Result<Caps> {
    let mut caps = with_name_max(unix_caps(), dir)?;
    let (file, other) = (dir.join("file"), dir.join("other"));
    fs::write(&file, [1; 8192])?;
    fs::write(&other, "")?;
    let open = File::options().write(true).open(&file)?;
    let punch = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    let abilities = [
        (Caps::SYMLINKS, symlink("x", dir.join("symlink")).is_ok()),
        (
            Caps::HARD_LINKS,
            fs::hard_link(&file, dir.join("link")).is_ok(),
        ),
        (
            Caps::DEVICES,
            mknodat(CWD, dir.join("fifo"), FileType::Fifo, Mode::RUSR, 0).is_ok(),
        ),
        (Caps::MODES, keeps_modes(&file)),
        (
            Caps::CASE_SENSITIVE,
            fs::symlink_metadata(dir.join("FILE")).is_err(),
        ),
        (
            Caps::PREALLOCATE,
            fallocate(&open, FallocateFlags::KEEP_SIZE, 0, 65_536).is_ok(),
        ),
        (Caps::HOLES, fallocate(&open, punch, 0, 4096).is_ok()),
        (
            Caps::SWAP,
            renameat_with(CWD, &file, CWD, &other, RenameFlags::EXCHANGE).is_ok(),
        ),
        (
            Caps::ANY_NAME,
            fs::write(dir.join(OsStr::from_bytes(b"a:*?\n\xff")), "").is_ok(),
        ),
    ];
    for (ability, _) in abilities.into_iter().filter(|(_, has)| !has) {
        caps = caps.without(ability);
    }
    caps.time_step = time_step(&other)?;
    // Where there are no holes, a size takes room.
    if caps.has(Caps::HOLES) {
        caps.size_max = size_max(&open);
        open.set_len(0)?;
    }
    Ok(caps)
}

/// Returns the greatest size that a file takes and shows.
fn size_max(file: &File) -> u64 {
    let takes = |size: u64| {
        let shown = || file.metadata().is_ok_and(|stat| stat.len() == size);
        file.set_len(size).is_ok() && shown()
    };
    let (mut taken, mut refused) = (8192, i64::MAX as u64 + 1);
    while taken + 1 < refused {
        let size = taken + (refused - taken) / 2;
        match takes(size) {
            true => taken = size,
            false => refused = size,
        }
    }
    taken
}

fn keeps_modes(file: &Path) -> bool {
    let set = fs::set_permissions(file, fs::Permissions::from_mode(0o2751));
    let owned = lchown(file, Some(1), Some(2)).is_ok();
    let stat = fs::metadata(file).ok();
    // Linux takes the set-group-id bit off with the owner.
    let kept = stat.is_some_and(|s| s.mode() & 0o751 == 0o751 && (s.uid(), s.gid()) == (1, 2));
    set.is_ok() && owned && kept
}

/// Returns the steps in which a time comes back.
fn time_step(file: &Path) -> io::Result<u64> {
    let time = rustix::fs::Timespec {
        tv_sec: 1_600_000_001,
        tv_nsec: 123_456_789,
    };
    let times = rustix::fs::Timestamps {
        last_access: time,
        last_modification: time,
    };
    utimensat(CWD, file, &times, AtFlags::empty())?;
    let stat = fs::metadata(file)?;
    let got = (stat.mtime(), stat.mtime_nsec());
    Ok(match got {
        (_, 123_456_789) => 1,
        (_, 123_456_700) => 100,
        (_, 123_456_000) => 1000,
        (_, 123_000_000) => 1_000_000,
        (_, 120_000_000) => 10_000_000,
        (1_600_000_001, _) => 1_000_000_000,
        _ => 2_000_000_000,
    })
}
