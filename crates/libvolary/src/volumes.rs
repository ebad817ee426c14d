//! Volumes: opening, making, checking and closing.
#![expect(
    unsafe_code,
    reason = "names that C calls, with pointers that it gives"
)]
#![expect(
    clippy::missing_safety_doc,
    reason = "the head of the header says it for all: pointers are to memory that is the caller's"
)]

use crate::abi::{VolaryCheck, VolaryFinding, VolaryOptions, VolarySpace, VolaryVol};
use crate::fault::{Fault, Outcome, done};
use crate::raw::{Place, bytes_of, maybe_text, options_of, text_of};
use crate::table::VOLUMES;
use std::ffi::{CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use volary::{CheckMode, Vol, VolOptions, escape};

/// Returns the version of the library: `0.1.0`.
#[unsafe(no_mangle)]
pub extern "C" fn volary_version() -> *const c_char {
    const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");
    VERSION.as_ptr().cast()
}

/// Opens a volume: an image file, a partition of one (`disk.img#2`), `mem:64M`, `host:DIR`,
/// `nfs://HOST/EXPORT`. It is read-only unless `options` ask for changes. `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_open(
    source: *const c_char,
    options: *const VolaryOptions,
    vol: *mut VolaryVol,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, source, given) =
            unsafe { (Place::at(vol)?, bytes_of(source)?, Given::of(options)?) };
        let source = OsStr::from_bytes(source);
        let opened = match given.writes {
            true => given.options.edit(source)?,
            false => given.options.open(source)?,
        };
        place.set(VOLUMES.add(opened));
        Ok(())
    })
}

/// Makes an image of `size` bytes with a volume of this kind (`fat32`, `ffs2`), open for changes.
/// An existing file is not overwritten unless `options` ask for it. `options` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_make(
    image: *const c_char,
    kind: *const c_char,
    size: u64,
    options: *const VolaryOptions,
    vol: *mut VolaryVol,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, image, kind, given) = unsafe {
            (
                Place::at(vol)?,
                bytes_of(image)?,
                text_of(kind)?,
                Given::of(options)?,
            )
        };
        let made = given.options.make(OsStr::from_bytes(image), kind, size)?;
        place.set(VOLUMES.add(made));
        Ok(())
    })
}

/// Closes a volume: makes everything durable and marks it as cleanly detached. The volume is closed
/// even if this returns an error. Its files, walks and servers return stale from now on, but must
/// still be closed.
#[unsafe(no_mangle)]
pub extern "C" fn volary_close(vol: VolaryVol) -> c_int {
    done(|| Ok(VOLUMES.take(vol)?.close()?))
}

/// Makes all changes so far durable.
#[unsafe(no_mangle)]
pub extern "C" fn volary_sync(vol: VolaryVol) -> c_int {
    done(|| Ok(VOLUMES.get(vol)?.sync()?))
}

/// Returns how full a volume is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_space(vol: VolaryVol, space: *mut VolarySpace) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let place = unsafe { Place::at(space) }?;
        let told = VOLUMES.get(vol)?.space()?;
        place.set(VolarySpace {
            size: told.size,
            free: told.free,
            block: told.block_size,
        });
        Ok(())
    })
}

/// Checks a volume that nobody has open. `finding`, which may be null, is called for each finding,
/// with `context`. `left` gets the number of findings that were not mended.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn volary_check(
    source: *const c_char,
    options: *const VolaryOptions,
    mode: VolaryCheckMode,
    finding: VolaryFinding,
    context: *mut c_void,
    left: *mut u64,
) -> c_int {
    done(|| {
        // SAFETY: the caller upholds this function's contract.
        let (place, source, given) =
            unsafe { (Place::at(left)?, bytes_of(source)?, Given::of(options)?) };
        let mode = check_mode(mode)?;
        let checked = given.options.check(OsStr::from_bytes(source), mode)?;
        for found in &checked.findings {
            let path = found
                .path
                .as_deref()
                .map(|path| c_text(&escape(path).to_string()));
            let (code, message) = (c_text(found.code), c_text(&found.message));
            if let Some(finding) = finding {
                let path = path.as_ref().map_or(std::ptr::null(), |path| path.as_ptr());
                // SAFETY: the texts live until it returns; the caller guarantees that it is a
                // function.
                unsafe { finding(context, code.as_ptr(), path, message.as_ptr()) };
            }
        }
        place.set(checked.report.left());
        Ok(())
    })
}

/// One of `VolaryCheck`. It is a plain number, so that any other value can be refused.
pub type VolaryCheckMode = c_int;

fn check_mode(mode: c_int) -> Outcome<CheckMode> {
    const MODES: [(VolaryCheck, CheckMode); 3] = [
        (VolaryCheck::Look, CheckMode::Look),
        (VolaryCheck::Preen, CheckMode::Preen),
        (VolaryCheck::Mend, CheckMode::Mend),
    ];
    let found = MODES.iter().find(|(code, _)| *code as c_int == mode);
    let unknown = || Fault::invalid(format!("{mode} is no mode of a check"));
    found.map(|(_, mode)| *mode).ok_or_else(unknown)
}

/// Returns a C string. A text with a zero byte ends there.
fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(text.get(..end).unwrap_or_default()).unwrap_or_default()
}

/// Parsed options.
struct Given {
    options: VolOptions,
    writes: bool,
}

impl Given {
    /// # Safety
    /// As for [`options_of`], and for all texts in them.
    unsafe fn of(options: *const VolaryOptions) -> Outcome<Self> {
        let mut all = Vol::options();
        // SAFETY: the caller upholds this function's contract.
        let Some(given) = unsafe { options_of(options) }? else {
            return Ok(Self {
                options: all,
                writes: false,
            });
        };
        // SAFETY: the caller upholds this function's contract.
        let text = |text| unsafe { maybe_text(text) };
        if let Some(kind) = text(given.kind)? {
            all = all.kind(kind);
        }
        if let Some(options) = text(given.options)? {
            all = all.options(options);
        }
        for layer in text(given.layers)?.unwrap_or_default().lines() {
            all = all.layer(layer);
        }
        if given.memory != 0 {
            all = all.memory(given.memory);
        }
        if let Some(label) = text(given.label)? {
            all = all.label(label);
        }
        if let Some(options) = text(given.make_options)? {
            all = all.make_options(options);
        }
        if given.seed != 0 {
            all = all.seed(given.seed);
        }
        if given.overwrites != 0 {
            all = all.overwrite();
        }
        Ok(Self {
            options: all,
            writes: given.writes != 0,
        })
    }
}
