//! A listing of names, for plug-ins that work on paths.

use crate::abi::VolaryPathList;
use crate::convert;
use crate::names::Names;
use parking_lot::Mutex;
use std::ffi::c_char;

#[repr(C)]
pub(super) struct NamesCell {
    c: VolaryPathList,
    /// The listing to fill; `None` between calls.
    target: Mutex<Option<Target>>,
}

/// A listing in progress.
struct Target {
    names: Names,
    name_max: usize,
    room: usize,
    is_full: bool,
    lie: Option<String>,
}

impl NamesCell {
    /// Makes a cell that is never freed.
    pub(super) fn new() -> *mut Self {
        Box::leak(Box::new(Self {
            c: VolaryPathList {
                size: size_of::<VolaryPathList>() as u32,
                add: Some(add),
            },
            target: Mutex::new(None),
        }))
    }
}

/// Lists names of at most `name_max` bytes by `call`, which gets the listing of a cell.
///
/// # Errors
/// What was wrong with a name, or `None` if there was no room for all names.
#[expect(unsafe_code, reason = "the listing is in a leaked cell")]
pub(super) fn filled<T>(
    cell: *mut NamesCell,
    name_max: usize,
    room: usize,
    call: impl FnOnce(*const VolaryPathList) -> T,
) -> (T, Result<Names, Option<String>>) {
    // SAFETY: the cell is never freed; only its mutex is referred to.
    let live = unsafe { &(*cell).target };
    *live.lock() = Some(Target {
        names: Names::default(),
        name_max,
        room,
        is_full: false,
        lie: None,
    });
    let answer = call(cell.cast());
    let listed = match live.lock().take() {
        Some(Target { lie: Some(lie), .. }) => Err(Some(lie)),
        Some(Target { is_full: true, .. }) => Err(None),
        Some(target) => Ok(target.names),
        None => Ok(Names::default()),
    };
    (answer, listed)
}

#[expect(unsafe_code, reason = "called by plug-ins")]
unsafe extern "C" fn add(list: *const VolaryPathList, name: *const c_char, kind: u32) -> i32 {
    if list.is_null() {
        return 0;
    }
    // SAFETY: listings are first fields of cells that are never freed.
    let mut live = unsafe { (*list.cast::<NamesCell>()).target.lock() };
    let Some(target) = live.as_mut() else {
        return 0;
    };
    if target.is_full || target.lie.is_some() {
        return 0;
    }
    // SAFETY: the plug-in promises a text with NUL at its end; no more is read than a name may
    // have.
    let taken = unsafe { bounded(name, target.name_max) }.and_then(|name| target.add(name, kind));
    target.lie = taken.err();
    i32::from(!target.is_full && target.lie.is_none())
}

/// Returns a C string without the NUL at its end.
///
/// # Errors
/// A message, if it is longer than `most`.
///
/// # Safety
/// `at` is NULL, or points to a text that ends with NUL.
#[expect(unsafe_code, reason = "C gives pointers")]
unsafe fn bounded<'a>(at: *const c_char, most: usize) -> Result<&'a [u8], String> {
    if at.is_null() {
        return Err("listed a name that is NULL".to_owned());
    }
    // SAFETY: as the caller promises.
    unsafe {
        match libc::strnlen(at, most + 1) {
            len if len > most => Err(format!("listed a name of more than {most} bytes")),
            len => Ok(std::slice::from_raw_parts(at.cast(), len)),
        }
    }
}

impl Target {
    fn add(&mut self, name: &[u8], kind: u32) -> Result<(), String> {
        if matches!(name, b"." | b"..") {
            return Ok(());
        }
        if volary_core::Name::new(name).is_err() {
            let name = volary_core::escape_short(name);
            return Err(format!("listed \"{name}\", which is no name"));
        }
        if kind != 0 {
            convert::file_kind(kind)?;
        }
        if self.names.size() + name.len() >= self.room {
            self.is_full = true;
            return Ok(());
        }
        self.names.push(name, u8::try_from(kind).unwrap_or(0));
        Ok(())
    }
}
