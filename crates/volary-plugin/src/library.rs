//! Libraries that are loaded at run time, and the functions that they export.

use crate::abi::{VOLARY_PLUGIN_VERSION, VolaryCreate, VolaryCreatePaths};
use crate::loaded::Loaded;
use crate::paths::Paths;
use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;
use volary_core::{Attach, Ctx, Error, Fs, Kind, Result};

/// A loaded library. It is never unloaded, as its threads may still run.
#[derive(Debug)]
pub(crate) struct Library {
    /// `FileSystemCreate`, or NULL.
    create: *mut c_void,
    /// `FileSystemCreatePaths`, or NULL.
    create_paths: *mut c_void,
}

/// An attached file system of a library.
pub(crate) struct Volume {
    pub(crate) fs: Fs,
    /// Whether it wants calls of `forget`.
    pub(crate) forgets: bool,
}

impl Library {
    /// Loads a library. Its initialisation runs with all the rights of this process.
    ///
    /// # Errors
    /// `NotFound`; `Unsupported` if this program is linked statically; `Invalid` if the file is no
    /// library, or no plug-in.
    #[expect(unsafe_code, reason = "no safe dlopen")]
    pub(crate) fn load(path: &Path) -> Result<Self> {
        let shown = volary_core::escape(path.as_os_str().as_bytes()).to_string();
        if !path.exists() {
            return Err(Error::note(
                Kind::NotFound,
                format!("{shown}: there is no such plug-in"),
            ));
        }
        if cfg!(target_feature = "crt-static") {
            let words = "this program is linked statically and loads no libraries itself: leave \
                         plugin-in-process out";
            return Err(Error::note(Kind::Unsupported, words));
        }
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|_| Kind::Invalid)?;
        // SAFETY: the name ends with NUL. The user has decided to trust the library.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(Error::note(
                Kind::Invalid,
                format!("{shown} is no library: {}", why()),
            ));
        }
        let symbol = |name: &CStr| {
            // SAFETY: a handle of dlopen, and a name that ends with NUL.
            unsafe { libc::dlsym(handle, name.as_ptr()) }
        };
        let (create, create_paths) = (
            symbol(c"FileSystemCreate"),
            symbol(c"FileSystemCreatePaths"),
        );
        match create.is_null() && create_paths.is_null() {
            false => Ok(Self {
                create,
                create_paths,
            }),
            true => {
                let words = format!("{shown} is no plug-in: it exports no FileSystemCreate");
                Err(Error::note(Kind::Invalid, words))
            }
        }
    }

    /// Makes a file system, and attaches it.
    ///
    /// # Errors
    /// `Invalid` for texts with NUL in them; those of [`Loaded::attach`].
    #[expect(unsafe_code, reason = "calls the plug-in")]
    pub(crate) fn attach(
        &self,
        name: &[u8],
        config: &[u8],
        how: &Attach,
        cx: &Ctx<'_>,
    ) -> Result<Volume> {
        let text = |bytes: &[u8]| {
            let words = || Error::note(Kind::Invalid, "the plug-in's configuration holds NUL");
            CString::new(bytes).map_err(|_| words())
        };
        let (name, config) = (text(name)?, text(config)?);
        let (name, config) = (name.as_ptr(), config.as_ptr());
        // SAFETY: by its name, the symbol is a function of this type; without it, there is none.
        let create = unsafe { std::mem::transmute::<*mut c_void, VolaryCreate>(self.create) };
        // SAFETY: texts that end with NUL.
        let table = create.map(|f| unsafe { f(name, config, VOLARY_PLUGIN_VERSION) });
        let table = table.unwrap_or(std::ptr::null());
        // SAFETY: as above.
        let create =
            unsafe { std::mem::transmute::<*mut c_void, VolaryCreatePaths>(self.create_paths) };
        if let (true, Some(f)) = (table.is_null(), create) {
            // SAFETY: texts that end with NUL; the table was just made for this version, by a
            // library that its user trusts.
            let fs = unsafe { Paths::attach(f(name, config, VOLARY_PLUGIN_VERSION), how, cx)? };
            return Ok(Volume {
                fs: Arc::new(fs),
                forgets: true,
            });
        }
        // SAFETY: it was just made for this version, by a library that its user trusts.
        let fs = unsafe { Loaded::attach(table, how, cx)? };
        Ok(Volume {
            forgets: fs.forgets(),
            fs: Arc::new(fs),
        })
    }
}

/// Returns the loader's error message.
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
