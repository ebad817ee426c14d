//! The registry that the command was begun with.

use crate::exit::{Done, Fail};
use std::sync::OnceLock;
use volary::{Options, Registry, Source};

static REGISTRY: OnceLock<Registry> = OnceLock::new();

/// Takes the registry of this process. The first counts: a command is run once.
pub(crate) fn begin(registry: Registry) {
    let _ = REGISTRY.set(with_plugins(registry));
}

/// Returns it; what is built in where no command was begun, as in tests.
pub(crate) fn registry() -> &'static Registry {
    REGISTRY.get_or_init(|| with_plugins(Registry::default()))
}

/// Adds `plugin:`, unless the program has a scheme of that name.
fn with_plugins(mut registry: Registry) -> Registry {
    let _ = registry.add_scheme(volary::plugin::scheme());
    registry
}

/// Does what a scheme has to do before this process gives up what it can, for a volume and for the one whose files it
/// keeps.
///
/// # Errors
/// Of the scheme.
pub(crate) fn prepare(source: &Source, options: &Options) -> Done {
    let remote = options.get("remote");
    let remote = remote.and_then(|text| registry().source(text.as_bytes()).ok());
    for source in [Some(source), remote.as_ref()].into_iter().flatten() {
        if let Source::Scheme { name, rest } = source
            && let Some(scheme) = registry().scheme(name)
        {
            scheme
                .prepare(rest, options)
                .map_err(|e| Fail::volume(source, &e))?;
        }
    }
    Ok(())
}
