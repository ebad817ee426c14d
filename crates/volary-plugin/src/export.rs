//! Makes a plug-in from a Rust driver: [`export!`](crate::export!) and the functions that it calls.
//!
//! | module | what |
//! |---|---|
//! | `driver` | a driver, and the state behind its table |
//! | `told` | calls to the host |
//! | `enter` | one call: from C's context to volary's and back, with panics caught |
//! | `table` | the functions |

mod driver;
mod enter;
mod table;
mod told;

pub use driver::{Driver, Opening};
#[cfg(feature = "fuzzing")]
pub(crate) use table::EMPTY;

use crate::abi::{VOLARY_PLUGIN_VERSION, VolaryTable};
use driver::Exported;
use parking_lot::RwLock;
use std::ffi::{CStr, c_char};

/// Exports drivers: the one line that makes a plug-in from a crate whose type is `cdylib`.
///
/// ```
/// use volary_plugin::{Driver, Opening};
///
/// fn open(with: &Opening<'_>) -> volary_core::Result<volary_core::Fs> {
///     let kind = volary_core::Kind::NotFound;
///     Err(volary_core::Error::note(kind, format!("no volume '{}'", with.config)))
/// }
///
/// volary_plugin::export!(Driver { name: "nothing", open });
/// # fn main() {}
/// ```
#[macro_export]
macro_rules! export {
    ($($driver:expr),+ $(,)?) => {
        const _: () = {
            static DRIVERS: &[$crate::Driver] = &[$($driver),+];

            #[unsafe(export_name = "FileSystemCreate")]
            unsafe extern "C" fn create(
                name: *const ::std::ffi::c_char,
                config: *const ::std::ffi::c_char,
                version: u32,
            ) -> *const $crate::abi::VolaryTable {
                // SAFETY: the host's promise is the one that this function asks for.
                unsafe { $crate::create(DRIVERS, name, config, version) }
            }
        };
    };
}

/// Makes a table for one of `drivers`: the function that [`export!`](crate::export!) exports.
///
/// # Safety
/// `name` and `config` are NULL, or end with NUL.
#[expect(unsafe_code, reason = "the host gives texts as C has them")]
pub unsafe fn create(
    drivers: &'static [Driver],
    name: *const c_char,
    config: *const c_char,
    version: u32,
) -> *const VolaryTable {
    // SAFETY: as the caller promises.
    let (name, config) = unsafe { (text(name), text(config)) };
    let is_it = |driver: &&Driver| name.is_empty() || driver.name.as_bytes() == name;
    let Some(driver) = drivers.iter().find(is_it) else {
        return std::ptr::null();
    };
    if version != VOLARY_PLUGIN_VERSION {
        return std::ptr::null();
    }
    let exported = Box::into_raw(Box::new(Exported {
        driver: *driver,
        config: config.to_vec(),
        table: table::TABLE,
        attached: RwLock::new(None),
    }));
    // SAFETY: it was just made, and nobody else knows of it yet.
    unsafe {
        (*exported).table.fs = exported.cast();
        &raw const (*exported).table
    }
}

/// # Safety
/// `at` is NULL, or ends with NUL and lives as long as the answer.
#[expect(unsafe_code, reason = "the host gives texts as C has them")]
unsafe fn text<'a>(at: *const c_char) -> &'a [u8] {
    match at.is_null() {
        true => &[],
        // SAFETY: as the caller promises.
        false => unsafe { CStr::from_ptr(at) }.to_bytes(),
    }
}
