//! The only place where pointers from C are dereferenced.
#![expect(
    unsafe_code,
    reason = "memory of the caller's is read and written, as the header says that it may be"
)]

use crate::abi::{VolaryError, VolaryOptions};
use crate::fault::{Fault, Outcome};
use std::ffi::{CStr, c_char, c_void};

/// Returns the error for a null pointer where `what` is needed.
fn refused<T>(what: &str) -> Outcome<T> {
    Err(Fault::invalid(format!("a null pointer in place of {what}")))
}

/// Returns the bytes of a C string.
///
/// # Safety
/// The string must end with a zero byte, and stay unchanged as long as the result is used.
pub(crate) unsafe fn bytes_of<'a>(text: *const c_char) -> Outcome<&'a [u8]> {
    match text.is_null() {
        true => refused("a text"),
        // SAFETY: it is not null; the rest is the caller's to see to.
        false => Ok(unsafe { CStr::from_ptr(text) }.to_bytes()),
    }
}

/// Returns a C string that must be UTF-8.
///
/// # Safety
/// As for [`bytes_of`].
pub(crate) unsafe fn text_of<'a>(text: *const c_char) -> Outcome<&'a str> {
    // SAFETY: the caller upholds this function's contract.
    let bytes = unsafe { bytes_of(text) }?;
    std::str::from_utf8(bytes).map_err(|_| Fault::invalid("a text that is no UTF-8".into()))
}

/// Returns a C string, or `None` for a null pointer.
///
/// # Safety
/// As for [`bytes_of`].
pub(crate) unsafe fn maybe_text<'a>(text: *const c_char) -> Outcome<Option<&'a str>> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: the caller upholds this function's contract.
        false => unsafe { text_of(text) }.map(Some),
    }
}

/// Returns memory of the caller for reading.
///
/// # Safety
/// There must be `len` bytes, which stay unchanged as long as the result is used.
pub(crate) unsafe fn input<'a>(at: *const c_void, len: usize) -> Outcome<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if at.is_null() || isize::try_from(len).is_err() {
        return refused("bytes");
    }
    // SAFETY: it is not null, and no longer than memory can be; the caller upholds the rest.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

/// Returns memory of the caller for writing.
///
/// # Safety
/// There must be `len` bytes, which nobody else accesses as long as the result is used.
pub(crate) unsafe fn output<'a>(at: *mut c_void, len: usize) -> Outcome<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if at.is_null() || isize::try_from(len).is_err() {
        return refused("room for bytes");
    }
    // To Rust, memory that was never written holds no valid bytes.
    // SAFETY: it is not null, and no longer than memory can be; the caller upholds the rest.
    unsafe {
        std::ptr::write_bytes(at.cast::<u8>(), 0, len);
        Ok(std::slice::from_raw_parts_mut(at.cast(), len))
    }
}

/// The caller's memory for one result.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Returns the place for a result that is not known yet.
    ///
    /// # Safety
    /// There must be memory for one `T`, which nobody else accesses until it is set.
    pub(crate) unsafe fn at(place: *mut T) -> Outcome<Self> {
        match place.is_null() {
            true => refused("room for a result"),
            false => Ok(Self(place)),
        }
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: it is not null, and the caller promised memory for one `T`, whatever it held.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Writes a text and a zero byte into a buffer of `room` bytes.
///
/// # Errors
/// `TooBig`, saying how many bytes are needed.
///
/// # Safety
/// As for [`output`].
pub(crate) unsafe fn put_text(text: &[u8], at: *mut c_char, room: usize) -> Outcome<()> {
    let needs = text.len() + 1;
    if room < needs {
        let words = format!("room for {room} bytes of a text that needs {needs}");
        return Err(Fault::new(VolaryError::TooBig, words));
    }
    // SAFETY: the caller upholds this function's contract.
    let out = unsafe { output(at.cast(), needs) }?;
    for (to, from) in out.iter_mut().zip(text) {
        *to = *from;
    }
    Ok(())
}

/// Returns the options that C has filled in, or `None` for a null pointer. Refuses any other size
/// than this version's.
///
/// # Safety
/// The structure must begin with its size, and that many bytes must exist.
pub(crate) unsafe fn options_of<'a>(
    options: *const VolaryOptions,
) -> Outcome<Option<&'a VolaryOptions>> {
    if options.is_null() {
        return Ok(None);
    }
    if !options.is_aligned() {
        return Err(Fault::invalid("options that are not aligned".into()));
    }
    // SAFETY: it is neither null nor misaligned, and begins with its size.
    let size = unsafe { (*options).size };
    if size != size_of::<VolaryOptions>() {
        let words = format!(
            "options of {size} bytes, not {}: `size` is not set, or the header is another version's",
            size_of::<VolaryOptions>()
        );
        return Err(Fault::invalid(words));
    }
    // SAFETY: it has the expected size.
    Ok(Some(unsafe { &*options }))
}
