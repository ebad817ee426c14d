//! `--type`: what an image is that is not to be recognised.

use crate::registry::registry;
use volary::{Options, TYPE_OPTION};

/// What a volume is.
#[derive(clap::Args, Clone, Debug, Default)]
pub(crate) struct KindArg {
    #[arg(long = "type", value_name = "KIND", value_parser = kind, help = kinds_help())]
    kind: Option<String>,
}

impl KindArg {
    /// Returns whether no kind was said.
    pub(crate) fn is_none(&self) -> bool {
        self.kind.is_none()
    }

    /// As an option, among others.
    pub(crate) fn add_to(&self, options: &mut Options) {
        if let Some(kind) = &self.kind {
            options.set(TYPE_OPTION, kind.as_str());
        }
    }
}

/// Returns what `--type` is.
fn kinds_help() -> String {
    let names: Vec<&str> = registry().formats().iter().map(|f| f.name()).collect();
    format!(
        "What the images are, which are not recognised then: {}",
        names.join(", ")
    )
}

/// Returns the name of a kind on the command line.
pub(crate) fn kind(text: &str) -> Result<String, String> {
    let known = registry().format_of(text).map(|_| text.to_owned());
    known.map_err(|e| e.to_string())
}
