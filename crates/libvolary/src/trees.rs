//! Files by their paths, and trees.
#![expect(
    unsafe_code,
    reason = "names that C calls, with pointers that it gives"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header says it for all: pointers are to memory that is the caller's"
)]

use crate::abi::{VolaryStat, VolaryVol, VolaryWalk};
use crate::fault::{answer, done};
use crate::raw::{Place, bytes_of, input, output, put_text};
use crate::table::{VOLUMES, WALKS};
use std::ffi::{OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::sync::{Arc, Mutex, PoisonError};
use volary::Time;

/// Returns the attributes of a file or directory. If `follow` is not zero, follows a symlink in the
/// last place.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_stat(
    vol: VolaryVol,
    path: *const c_char,
    follow: c_int,
    stat: *mut VolaryStat,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, path) = unsafe { (Place::at(stat)?, bytes_of(path)?) };
        let vol = VOLUMES.get(vol)?;
        let attr = match follow {
            0 => vol.symlink_metadata(path)?,
            _ => vol.metadata(path)?,
        };
        place.set((&attr).into());
        Ok(())
    })
}

/// Reads a file at byte `offset`. Returns the number of bytes read: less than `len` only at the end
/// of the file.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_read(
    vol: VolaryVol,
    path: *const c_char,
    offset: u64,
    bytes: *mut c_void,
    len: usize,
) -> i64 {
    answer(|| {
        let vol = VOLUMES.get(vol)?;
        // SAFETY: the caller upholds this function's contract.
        let (path, room) = unsafe { (bytes_of(path)?, output(bytes, len)?) };
        let read = vol.read_at(path, offset, room)?;
        Ok(i64::try_from(read).unwrap_or(i64::MAX))
    })
}

/// Makes a file with these bytes as its content, or replaces the content of an existing one. The
/// old content stays until all of the new is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_write(
    vol: VolaryVol,
    path: *const c_char,
    bytes: *const c_void,
    len: usize,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (path, bytes) = unsafe { (bytes_of(path)?, input(bytes, len)?) };
        Ok(VOLUMES.get(vol)?.write(path, bytes)?)
    })
}

/// Appends bytes to a file, which is made if it does not exist.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_append(
    vol: VolaryVol,
    path: *const c_char,
    bytes: *const c_void,
    len: usize,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (path, bytes) = unsafe { (bytes_of(path)?, input(bytes, len)?) };
        Ok(VOLUMES.get(vol)?.append(path, bytes)?)
    })
}

/// Makes a directory. If `parents` is not zero, makes missing ones above it too, and an existing
/// directory is no error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_mkdir(
    vol: VolaryVol,
    path: *const c_char,
    parents: c_int,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        let vol = VOLUMES.get(vol)?;
        match parents {
            0 => vol.mkdir(path)?,
            _ => vol.mkdir_all(path)?,
        }
        Ok(())
    })
}

/// Removes a file, a symlink or an empty directory; if `recursive` is not zero, a directory with
/// everything below it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_remove(
    vol: VolaryVol,
    path: *const c_char,
    recursive: c_int,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        let vol = VOLUMES.get(vol)?;
        match recursive {
            0 => vol.remove(path)?,
            _ => vol.remove_all(path)?,
        }
        Ok(())
    })
}

/// Moves a file or directory to another path, and replaces an existing file or empty directory
/// there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_rename(
    vol: VolaryVol,
    from: *const c_char,
    to: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (from, to) = unsafe { (bytes_of(from)?, bytes_of(to)?) };
        Ok(VOLUMES.get(vol)?.rename(from, to)?)
    })
}

/// Makes a symlink to `target` at `path`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_symlink(
    vol: VolaryVol,
    target: *const c_char,
    path: *const c_char,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (target, path) = unsafe { (bytes_of(target)?, bytes_of(path)?) };
        Ok(VOLUMES.get(vol)?.symlink(target, path)?)
    })
}

/// Writes a symlink's target, with a zero byte, into a buffer of `room` bytes; 4096 are enough.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_readlink(
    vol: VolaryVol,
    path: *const c_char,
    target: *mut c_char,
    room: usize,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        let held = VOLUMES.get(vol)?.read_link(path)?;
        // SAFETY: the caller upholds this function's contract.
        unsafe { put_text(&held, target, room) }
    })
}

/// Sets permission bits.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_chmod(vol: VolaryVol, path: *const c_char, mode: u32) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        Ok(VOLUMES.get(vol)?.set_mode(path, mode)?)
    })
}

/// Sets owner and group.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_chown(
    vol: VolaryVol,
    path: *const c_char,
    uid: u32,
    gid: u32,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        Ok(VOLUMES.get(vol)?.set_owner(path, uid, gid)?)
    })
}

/// Sets the times of the last access and the last change, in seconds since 1970 and nanoseconds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_set_times(
    vol: VolaryVol,
    path: *const c_char,
    atime: i64,
    atime_nanos: u32,
    mtime: i64,
    mtime_nanos: u32,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let path = unsafe { bytes_of(path) }?;
        let (accessed, changed) = (Time::new(atime, atime_nanos), Time::new(mtime, mtime_nanos));
        Ok(VOLUMES.get(vol)?.set_times(path, accessed, changed)?)
    })
}

/// Begins a walk through everything below a directory. Each directory comes before its entries.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_walk(
    vol: VolaryVol,
    path: *const c_char,
    walk: *mut VolaryWalk,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, path) = unsafe { (Place::at(walk)?, bytes_of(path)?) };
        let begun = VOLUMES.get(vol)?.walk(path);
        place.set(WALKS.add(Arc::new(Mutex::new(begun))));
        Ok(())
    })
}

/// Continues a walk: writes the next entry's path, with a zero byte, into a buffer of `room` bytes
/// (8192 are enough), and its attributes to `stat`. Returns 1, or 0 at the end. For a directory
/// that cannot be read, returns an error; the walk can be continued. An entry whose path does not
/// fit is skipped, with an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_walk_next(
    walk: VolaryWalk,
    path: *mut c_char,
    room: usize,
    stat: *mut VolaryStat,
) -> c_int {
    let answered = answer(|| {
        // SAFETY: the caller upholds this function's contract.
        let place = unsafe { Place::at(stat) }?;
        let walk = WALKS.get(walk)?;
        let next = walk.lock().unwrap_or_else(PoisonError::into_inner).next();
        let Some(found) = next.transpose()? else {
            return Ok(0);
        };
        // SAFETY: the caller upholds this function's contract.
        unsafe { put_text(&found.path, path, room) }?;
        let attr = found.entry.attr.as_ref();
        place.set(attr.map_or_else(VolaryStat::default, VolaryStat::from));
        Ok(1)
    });
    c_int::try_from(answered).unwrap_or(c_int::MIN)
}

/// Skips the entries of the directory that the walk returned last. So a walk can list one directory
/// alone.
#[unsafe(no_mangle)]
pub extern "C" fn volary_walk_skip(walk: VolaryWalk) -> c_int {
    done(|| {
        let walk = WALKS.get(walk)?;
        walk.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .skip_dir();
        Ok(())
    })
}

/// Ends a walk.
#[unsafe(no_mangle)]
pub extern "C" fn volary_walk_end(walk: VolaryWalk) -> c_int {
    done(|| WALKS.take(walk).map(drop))
}

/// Copies a file or a tree of the host into a volume. If some of it cannot be copied, copies the
/// rest and returns an error. `files`, which may be null, gets the number of files copied.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_copy_in(
    vol: VolaryVol,
    from: *const c_char,
    to: *const c_char,
    files: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (from, to) = unsafe { (bytes_of(from)?, bytes_of(to)?) };
        let copied = VOLUMES.get(vol)?.copy_in(OsStr::from_bytes(from), to)?;
        if !files.is_null() {
            // SAFETY: the caller upholds this function's contract.
            unsafe { Place::at(files) }?.set(copied.files);
        }
        Ok(())
    })
}

/// Copies a file or a tree from a volume to the host, as `volary_copy_in` does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_copy_out(
    vol: VolaryVol,
    from: *const c_char,
    to: *const c_char,
    files: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (from, to) = unsafe { (bytes_of(from)?, bytes_of(to)?) };
        let copied = VOLUMES.get(vol)?.copy_out(from, OsStr::from_bytes(to))?;
        if !files.is_null() {
            // SAFETY: the caller upholds this function's contract.
            unsafe { Place::at(files) }?.set(copied.files);
        }
        Ok(())
    })
}
