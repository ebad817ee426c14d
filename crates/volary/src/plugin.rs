//! Drivers that are loaded at run time: `volary_plugin`, and the scheme that opens their volumes.
//!
//! No registry has it by itself: whoever names a volume of a plug-in names code to run.
//!
//! ```
//! let registry = volary::Registry::default().with(volary::plugin::scheme());
//! let source = registry.source(b"plugin:sqlite?notes.db")?;
//! assert_eq!(source.to_string(), "plugin:sqlite?notes.db");
//! # Ok::<(), volary::Error>(())
//! ```

use crate::Scheme;
pub use volary_plugin::*;

/// Returns the scheme `plugin:NAME?CONFIG`, `plugin:/path/libNAME.so?name=NAME&CONFIG`: a volume of a plug-in, as
/// [`installed`] finds and runs it.
pub fn scheme() -> Scheme {
    Scheme::new("plugin", open)
        .help("NAME?CONFIG", "a driver that is loaded at run time")
        .options(OPTIONS)
        .label(|words| Words::parse(words).ok().map(|words| words.label()))
        .before(|words| {
            Words::parse(words)?;
            installed().prepare()
        })
}
