//! Hides the entries that a protocol cannot show, so that the rest can be compared with a manifest.

use super::plain::Plain;
use crate::{Fresh, Lack};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use volary_core::{Caps, Ctx, Fs, Layer, Name, NameUse, NodeId, Result};

/// A volume with some names hidden.
struct Only {
    below: Fs,
    hidden: Arc<HashSet<Vec<u8>>>,
}

impl Layer for Only {
    const MAPS_NAMES: bool = true;

    fn below(&self) -> &Fs {
        &self.below
    }

    fn name_down(
        &self,
        _: &Ctx<'_>,
        _: NodeId,
        name: Name<'_>,
        of: NameUse,
    ) -> Result<Option<Vec<u8>>> {
        match self.hidden.contains(name.as_bytes()) {
            true => Err(of.refusal().into()),
            false => Ok(None),
        }
    }

    fn name_up(&self, name: &[u8]) -> Option<Vec<u8>> {
        (!self.hidden.contains(name)).then(|| name.to_vec())
    }
}

/// Restricts a volume, and its manifest, to what a protocol with the caps `shown` can show. Entries
/// that do not fit are hidden, and attributes in `lacks` are not compared. A volume without a
/// manifest stays as it is.
pub(super) fn fitting(all: &Plain, shown: fn(Caps) -> Caps, lacks: &[Lack]) -> Plain {
    let name = all.name.clone();
    let make = Arc::clone(&all.make);
    let Some(manifest) = &all.manifest else {
        let manifest = None;
        return Plain {
            name,
            make,
            manifest,
        };
    };
    let caps = shown(make().fs.caps());
    let fitted = manifest.clone().fitting(&caps);
    let fitted = lacks
        .iter()
        .fold(fitted, |fitted, lack| fitted.without(*lack));
    let paths: BTreeSet<&[u8]> = fitted.iter().map(|(path, _)| path).collect();
    // Of the names of a file with several, only the first is kept.
    let mut seen = HashSet::new();
    let missing = manifest.iter().filter(|(path, number)| {
        let is_another = !caps.has(Caps::HARD_LINKS) && !seen.insert(*number);
        is_another || !paths.contains(path)
    });
    let last = |path: &[u8]| path.rsplit(|&b| b == b'/').next().map(<[u8]>::to_vec);
    let hidden: HashSet<Vec<u8>> = missing.filter_map(|(path, _)| last(path)).collect();
    let hidden = Arc::new(hidden);
    // An entry with a hidden name in another directory is hidden too.
    let fitted = fitted.with_names(|name| !hidden.contains(name));
    let hide = move |below: Fs| -> Fs {
        Arc::new(Only {
            below,
            hidden: Arc::clone(&hidden),
        })
    };
    Plain {
        name,
        make: Arc::new(move || {
            let Fresh { fs, keep, .. } = make();
            let mut fresh = Fresh::new(hide(fs));
            fresh.keep = keep;
            fresh
        }),
        manifest: Some(fitted),
    }
}
