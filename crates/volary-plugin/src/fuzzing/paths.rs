//! A table of paths that answers whatever the input says.

#![expect(unsafe_code, reason = "a table as C has them")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "all for one reason: the host gives each function what the table says"
)]

use super::{Liar, of};
use crate::abi::*;
use crate::paths::Paths;
use parking_lot::Mutex;
use std::ffi::{CStr, c_char, c_void};
use std::sync::Arc;
use volary_core::{Attach, Cancel, Cred, Ctx, FileSystem, Result, Time};

type Fs = *mut c_void;
type Cx = *const VolaryContext;
type Path = *const c_char;

/// Attaches a table whose answers come from `input`.
///
/// # Errors
/// Those of attaching.
pub fn path_liar(input: &[u8]) -> Result<impl FileSystem> {
    let alive = Arc::new(());
    let liar = Box::into_raw(Box::new(Liar {
        said: Mutex::new((input.to_vec(), 0)),
        _alive: Arc::clone(&alive),
    }));
    let size = match unsafe { (*liar).byte() } {
        0 => unsafe { (*liar).number() as u32 },
        _ => size_of::<VolaryPathTable>() as u32,
    };
    let mut table = unsafe { std::mem::zeroed::<VolaryPathTable>() };
    table.version = VOLARY_PLUGIN_VERSION;
    table.size = size;
    table.fs = liar.cast();
    table.getattr = Some(getattr);
    table.readdir = Some(readdir);
    table.read = Some(read);
    table.caps = Some(caps);
    table.release = Some(super::release);
    table.create = Some(create);
    table.mkdir = Some(mkdir);
    table.link = Some(link);
    table.unlink = Some(unlink);
    table.rmdir = Some(unlink);
    table.rename = Some(rename);
    table.open = Some(open);
    table.write = Some(write);
    table.close = Some(close);
    let cx = Ctx {
        cred: &Cred::root(),
        now: Time::EPOCH,
        cancel: &Cancel::new(),
    };
    // There is room for few nodes, so that some are evicted.
    let how = Attach {
        memory: 1 << 20,
        ..Attach::default()
    };
    let attached = unsafe { Paths::attach(&raw const table, &how, &cx) };
    if attached.is_err() && Arc::strong_count(&alive) > 1 {
        // The table was refused before it could be released.
        drop(unsafe { Box::from_raw(liar) });
    }
    attached
}

/// # Safety
/// `path` ends with NUL.
unsafe fn check(path: Path) {
    let path = unsafe { CStr::from_ptr(path) }.to_bytes();
    let mut parts = path.split(|&b| b == b'/').skip(1);
    assert!(path.starts_with(b"/"), "a path without a slash");
    assert!(path == b"/" || parts.all(|part| !matches!(part, b"" | b"." | b"..")));
}

unsafe extern "C" fn getattr(fs: Fs, _: Cx, path: Path, out: *mut VolaryAttr) -> i32 {
    unsafe {
        check(path);
        *out = of(fs).attr();
        if CStr::from_ptr(path).to_bytes() == b"/" && of(fs).byte() < 200 {
            (*out).kind = VOLARY_DIR;
        }
        of(fs).code()
    }
}

unsafe extern "C" fn readdir(fs: Fs, _: Cx, path: Path, list: *const VolaryPathList) -> i32 {
    const NAMES: [&CStr; 8] = [
        c"name",
        c"other",
        c"",
        c".",
        c"..",
        c"a/b",
        c".volary-removed-1",
        c"a name of more bytes than most",
    ];
    unsafe {
        check(path);
        for _ in 0..of(fs).byte() % 16 {
            let name = match of(fs).byte() {
                255 => std::ptr::null(),
                n => NAMES[usize::from(n) % NAMES.len()].as_ptr(),
            };
            (*list)
                .add
                .map(|add| add(list, name, of(fs).number() as u32));
        }
        of(fs).code()
    }
}

unsafe extern "C" fn read(
    fs: Fs,
    _: Cx,
    path: Path,
    _: u64,
    _: u64,
    _: *mut c_void,
    len: usize,
) -> i64 {
    unsafe {
        check(path);
        match of(fs).byte() {
            0 => len as i64,
            1 => len as i64 + 1,
            _ => of(fs).number() as i64,
        }
    }
}

unsafe extern "C" fn caps(fs: Fs, out: *mut VolaryCaps) -> i32 {
    unsafe {
        if of(fs).byte() == 1 {
            (*out).name_max = (of(fs).number() as u32).wrapping_mul(9);
            (*out).size_max = of(fs).number();
        }
        let all = VOLARY_CAN_WRITE | VOLARY_CAN_CASE | VOLARY_CAN_KEEP_CASE;
        (*out).can = u32::from(of(fs).byte()) << 3 | u32::from(of(fs).byte()) << 12 | all;
        0
    }
}

unsafe extern "C" fn create(
    fs: Fs,
    _: Cx,
    path: Path,
    _: *const VolarySetAttr,
    handle: *mut u64,
) -> i32 {
    unsafe {
        check(path);
        *handle = of(fs).number();
        of(fs).code()
    }
}

unsafe extern "C" fn mkdir(fs: Fs, _: Cx, path: Path, _: *const VolarySetAttr) -> i32 {
    unsafe {
        check(path);
        of(fs).code()
    }
}

unsafe extern "C" fn unlink(fs: Fs, _: Cx, path: Path) -> i32 {
    unsafe {
        check(path);
        of(fs).code()
    }
}

unsafe extern "C" fn link(fs: Fs, _: Cx, path: Path, to: Path) -> i32 {
    unsafe {
        check(path);
        check(to);
        of(fs).code()
    }
}

unsafe extern "C" fn rename(fs: Fs, _: Cx, path: Path, to: Path, _: u32) -> i32 {
    unsafe {
        check(path);
        check(to);
        of(fs).code()
    }
}

unsafe extern "C" fn open(fs: Fs, _: Cx, path: Path, _: u32, handle: *mut u64) -> i32 {
    unsafe {
        check(path);
        *handle = of(fs).number();
        of(fs).code()
    }
}

unsafe extern "C" fn write(
    fs: Fs,
    _: Cx,
    path: Path,
    _: u64,
    _: u64,
    _: *const c_void,
    _: usize,
) -> i32 {
    unsafe {
        check(path);
        of(fs).code()
    }
}

unsafe extern "C" fn close(fs: Fs, _: Cx, path: Path, _: u64) -> i32 {
    unsafe {
        if !path.is_null() {
            check(path);
        }
        of(fs).code()
    }
}
