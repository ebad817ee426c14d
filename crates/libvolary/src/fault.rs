//! Errors for C: a code that is returned, and a text that can be fetched.
#![expect(unsafe_code, reason = "a name that C calls")]

use crate::abi::VolaryError;
use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};
use volary::VolError;

/// The result of a function.
pub(crate) type Outcome<T> = Result<T, Fault>;

/// An error: its code and its text.
#[derive(Debug)]
pub(crate) struct Fault {
    code: VolaryError,
    text: String,
}

impl Fault {
    pub(crate) fn new(code: VolaryError, text: String) -> Self {
        Self { code, text }
    }

    pub(crate) fn invalid(text: String) -> Self {
        Self::new(VolaryError::Invalid, text)
    }
}

impl From<VolError> for Fault {
    fn from(e: VolError) -> Self {
        Self::new(e.kind().into(), e.to_string())
    }
}

thread_local! {
    /// The text of the last failure on this thread.
    static LAST: RefCell<CString> = RefCell::default();
}

/// Runs `work` for C: returns its result, or the negative of an error code, and keeps the error's
/// text. Catches panics.
pub(crate) fn answer(work: impl FnOnce() -> Outcome<i64>) -> i64 {
    let done = catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|_| {
        let words = "volary has panicked: a mistake in volary";
        Err(Fault::new(VolaryError::Panic, words.into()))
    });
    done.unwrap_or_else(|fault| {
        // An error's text has no zero bytes, as paths are escaped.
        let text = CString::new(fault.text).unwrap_or_default();
        // While a thread ends, nobody can ask for the text.
        let _ = LAST.try_with(|last| last.replace(text));
        -(fault.code as i64)
    })
}

/// As [`answer`], for work without a result.
pub(crate) fn done(work: impl FnOnce() -> Outcome<()>) -> i32 {
    let answered = answer(|| work().map(|()| 0));
    i32::try_from(answered).unwrap_or(i32::MIN)
}

/// Returns the last error on this thread, in words:
/// `cannot read disk.img:/a: no such file or directory`. Empty if there was none. The text is valid
/// until the next error on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn volary_error() -> *const c_char {
    let text = LAST.try_with(|last| last.borrow().as_ptr());
    text.unwrap_or(c"".as_ptr())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use volary::Kind;

    #[test]
    fn a_panic_is_a_code_and_a_text() {
        assert_eq!(answer(|| panic!("oh")), -99);
        // SAFETY: it is the text that was set just now.
        let text = unsafe { CStr::from_ptr(volary_error()) };
        assert!(text.to_str().unwrap().contains("panicked"));
    }

    #[test]
    fn every_kind_has_a_code_of_its_own() {
        let mut codes: Vec<i32> = Kind::ALL
            .iter()
            .map(|kind| VolaryError::from(*kind) as i32)
            .collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), Kind::ALL.len());
        assert!(!codes.contains(&0) && !codes.contains(&99));
    }
}
