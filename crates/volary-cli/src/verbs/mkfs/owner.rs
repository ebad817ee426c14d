//! Who owns the root directory of a new volume.

use crate::clock;
use crate::exit::{Done, Fail};
use crate::log::warn;
use crate::verbs::attrs::Owner;
use crate::verbs::change::{gid, uid};
use crate::verbs::info::failed;
use std::sync::Arc;
use volary::{BlockDevice, Fact, Format, Kind, Options, RootOwner, Source};

/// Returns the owner to set once the volume is made: whom `asked` names, or who runs this. A format with options for
/// the owner gets it by them; then, and where no owner is kept, returns `None`.
///
/// # Errors
/// Of the command line, if `asked` is for a volume that keeps no owners.
pub(super) fn of(
    asked: Option<Owner>,
    format: &dyn Format,
    kind: &str,
    options: &mut Options,
) -> Done<Option<RootOwner>> {
    let owner = RootOwner {
        uid: asked.and_then(|owner| owner.uid).unwrap_or_else(uid),
        gid: asked.and_then(|owner| owner.gid).unwrap_or_else(gid),
        is_asked: asked.is_some(),
    };
    owner
        .tell(format, kind, options)
        .map_err(|e| match e.kind() {
            Kind::Unsupported => Fail::usage(format!(
                "--owner: a volume of {kind} keeps owners with --unix only"
            )),
            _ => Fail::usage(format!("-o: {e}")),
        })
}

/// Sets the owner of a new volume's root directory.
///
/// # Errors
/// If somebody asked for it, why it cannot be; else that is a warning.
pub(super) fn give(
    owner: RootOwner,
    source: &Source,
    dev: Arc<dyn BlockDevice>,
    format: &dyn Format,
) -> Done<Option<Fact>> {
    let words = format!("{}:{}", owner.uid, owner.gid);
    match owner.give(dev, format, clock::now) {
        Ok(()) => Ok(Some(Fact::word("owner of the root", words))),
        Err(e) if owner.is_asked => Err(match e.kind() {
            Kind::Unsupported | Kind::Invalid => Fail::usage(format!(
                "--owner: this volume cannot keep {words} as an owner"
            )),
            _ => failed(source, &e),
        }),
        Err(e) => {
            warn(&format!("{source}: the root directory is root's: {e}"));
            Ok(None)
        }
    }
}
