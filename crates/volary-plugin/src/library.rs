//! Libraries that are loaded at run time, and the one function that they export.

use crate::abi::{VOLARY_PLUGIN_VERSION, VolaryCreate, VolaryTable};
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use volary_core::{Error, Kind, Result};

/// A library that was loaded. It is never unloaded: threads of it may go on.
#[derive(Debug)]
pub(crate) struct Library {
    create: *mut c_void,
}

impl Library {
    /// Loads one. What it does as it is loaded, it does with all the rights of this process.
    ///
    /// # Errors
    /// `NotFound`; `Invalid` for what is no library, or no plug-in.
    #[expect(unsafe_code, reason = "no safe dlopen")]
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let shown = volary_core::escape(path.as_os_str().as_bytes()).to_string();
        if !path.exists() {
            return Err(Error::note(
                Kind::NotFound,
                format!("{shown}: there is no such plug-in"),
            ));
        }
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Kind::Invalid)?;
        // SAFETY: a name that ends with NUL. That the library can be trusted, its user says.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Error::note(
                Kind::Invalid,
                format!("{shown} is no library: {}", why()),
            ));
        }
        // SAFETY: a handle of dlopen.
        let create = unsafe { libc::dlsym(handle, c"FileSystemCreate".as_ptr()) };
        match create.is_null() {
            false => Ok(Self { create }),
            true => {
                let words = format!("{shown} is no plug-in: it exports no FileSystemCreate");
                Err(Error::note(Kind::Invalid, words))
            }
        }
    }

    /// Has it make a file system.
    ///
    /// # Errors
    /// `Invalid` for texts that hold NUL.
    #[expect(unsafe_code, reason = "calls the plug-in")]
    pub(crate) fn create(&self, name: &[u8], config: &[u8]) -> Result<*const VolaryTable> {
        let text = |bytes: &[u8]| {
            let words = || Error::note(Kind::Invalid, "the plug-in's configuration holds NUL");
            CString::new(bytes).map_err(|_| words())
        };
        let (name, config) = (text(name)?, text(config)?);
        // SAFETY: by its name, the symbol is a function of this type; without it, there is none.
        let create = unsafe { std::mem::transmute::<*mut c_void, VolaryCreate>(self.create) };
        let create = create.ok_or(Kind::Invalid)?;
        // SAFETY: texts that end with NUL.
        Ok(unsafe { create(name.as_ptr(), config.as_ptr(), VOLARY_PLUGIN_VERSION) })
    }
}

/// Returns what the loader says.
#[expect(unsafe_code, reason = "no safe dlerror")]
fn why() -> String {
    // SAFETY: the text is the loader's, until this thread calls it again.
    let words = unsafe {
        let text = libc::dlerror();
        match text.is_null() {
            true => c"no reason is known",
            false => CStr::from_ptr(text),
        }
    };
    volary_core::escape(words.to_bytes()).to_string()
}
