//! Pointers of C: the one place where they are followed.
#![expect(
    unsafe_code,
    reason = "memory of the caller's is read and written, as the header says that it may be"
)]

use crate::abi::{VolaryError, VolaryOptions};
use crate::fault::{Fault, Outcome};
use std::ffi::{CStr, c_char, c_void};

/// Returns the error for a null pointer in place of `what`.
fn refused<T>(what: &str) -> Outcome<T> {
    Err(Fault::invalid(format!("a null pointer in place of {what}")))
}

/// Returns the bytes of a text of C.
///
/// # Safety
/// The text lasts as long as the result, unchanged, and ends with a zero byte.
pub(crate) unsafe fn bytes_of<'a>(text: *const c_char) -> Outcome<&'a [u8]> {
    match text.is_null() {
        true => refused("a text"),
        // SAFETY: it is not null; the rest is the caller's to see to.
        false => Ok(unsafe { CStr::from_ptr(text) }.to_bytes()),
    }
}

/// Returns a text of C that is UTF-8.
///
/// # Safety
/// As of [`bytes_of`].
pub(crate) unsafe fn text_of<'a>(text: *const c_char) -> Outcome<&'a str> {
    // SAFETY: the caller upholds this function's contract.
    let bytes = unsafe { bytes_of(text) }?;
    std::str::from_utf8(bytes).map_err(|_| Fault::invalid("a text that is no UTF-8".into()))
}

/// Returns a text of C that may be missing.
///
/// # Safety
/// As of [`bytes_of`].
pub(crate) unsafe fn maybe_text<'a>(text: *const c_char) -> Outcome<Option<&'a str>> {
    match text.is_null() {
        true => Ok(None),
        // SAFETY: the caller upholds this function's contract.
        false => unsafe { text_of(text) }.map(Some),
    }
}

/// Returns memory to read.
///
/// # Safety
/// There are `len` bytes, which last as long as the result, unchanged.
pub(crate) unsafe fn input<'a>(at: *const c_void, len: usize) -> Outcome<&'a [u8]> {
    if len == 0 {
        return Ok(&[]);
    }
    if at.is_null() || isize::try_from(len).is_err() {
        return refused("bytes");
    }
    // SAFETY: it is not null, and no longer than memory can be; the rest is the caller's to see to.
    Ok(unsafe { std::slice::from_raw_parts(at.cast(), len) })
}

/// Returns memory to write.
///
/// # Safety
/// There are `len` bytes, which are nobody else's as long as the result is used.
pub(crate) unsafe fn output<'a>(at: *mut c_void, len: usize) -> Outcome<&'a mut [u8]> {
    if len == 0 {
        return Ok(&mut []);
    }
    if at.is_null() || isize::try_from(len).is_err() {
        return refused("room for bytes");
    }
    // Bytes that were never written are none to Rust.
    // SAFETY: it is not null, and no longer than memory can be; the rest is the caller's to see to.
    unsafe {
        std::ptr::write_bytes(at.cast::<u8>(), 0, len);
        Ok(std::slice::from_raw_parts_mut(at.cast(), len))
    }
}

/// A place for one result.
pub(crate) struct Place<T>(*mut T);

impl<T> Place<T> {
    /// Returns a place for a result, before it is known.
    ///
    /// # Safety
    /// There is room for one, which is nobody else's until it is set.
    pub(crate) unsafe fn at(place: *mut T) -> Outcome<Self> {
        match place.is_null() {
            true => refused("room for a result"),
            false => Ok(Self(place)),
        }
    }

    pub(crate) fn set(self, value: T) {
        // SAFETY: it is not null, and was promised to be room for one, whatever it held.
        unsafe { self.0.write_unaligned(value) };
    }
}

/// Writes a text and a zero byte into room for `room` bytes.
///
/// # Errors
/// `TooBig`, saying how much room it needs.
///
/// # Safety
/// As of [`output`].
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

/// Returns a structure that C has filled, of which it knows the first `size` bytes.
///
/// # Safety
/// There is one; its first field is its size, and as many bytes are there.
pub(crate) unsafe fn options_of<'a>(
    options: *const VolaryOptions,
) -> Outcome<Option<&'a VolaryOptions>> {
    if options.is_null() {
        return Ok(None);
    }
    if !options.is_aligned() {
        return Err(Fault::invalid("options that are not aligned".into()));
    }
    // SAFETY: it is not null and aligned, and begins with its size.
    let size = unsafe { (*options).size };
    if size != size_of::<VolaryOptions>() {
        let words = format!(
            "options of {size} bytes, not {}: `size` is not set, or the header is another version's",
            size_of::<VolaryOptions>()
        );
        return Err(Fault::invalid(words));
    }
    // SAFETY: it has the size that it is to have.
    Ok(Some(unsafe { &*options }))
}
