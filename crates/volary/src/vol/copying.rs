//! Trees copied into a volume and out of it.

use super::error::{VolError, VolResult};
use super::held::Held;
use crate::Source;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use volary_copy::{
    Copies, CopyOptions, Damage, Failure, Observer, Origin, Summary, Target, Told, VolumePlace,
    image_id,
};
use volary_core::{Error, Kind};

/// Copies a path of the host to a path in the volume.
///
/// # Errors
/// As [`Vol::copy_in`](crate::Vol::copy_in).
pub(super) fn copy_in(held: &Held, from: &Path, to: &[u8]) -> VolResult<Summary> {
    let origin = Origin::Host(from.to_owned());
    copy(held, origin, Target::Volume(place(held, to)))
}

/// Copies a path in the volume to a path of the host.
///
/// # Errors
/// As [`Vol::copy_out`](crate::Vol::copy_out).
pub(super) fn copy_out(held: &Held, from: &[u8], to: &Path) -> VolResult<Summary> {
    let origin = Origin::Volume(place(held, from));
    copy(held, origin, Target::Host(to.to_owned()))
}

/// Returns a place in the volume.
pub(super) fn place(held: &Held, path: &[u8]) -> VolumePlace {
    let image = match &held.source {
        Source::Image { path, .. } => image_id(path),
        _ => None,
    };
    VolumePlace {
        session: held.session.clone(),
        path: path.to_vec(),
        device: held.device.clone(),
        image,
        host_dir: match &held.source {
            Source::Host { path } => Some(path.clone()),
            _ => None,
        },
    }
}

fn copy(held: &Held, origin: Origin<'_>, target: Target<'_>) -> VolResult<Summary> {
    let options = &held.options;
    let how = CopyOptions {
        umask: options.umask,
        ..CopyOptions::new(options.uid, options.gid, (options.clock)())
    };
    let first = First(Mutex::new(None));
    let copied = Copies::new(Told::None, None).copy(vec![origin], target, &how, &first);
    match (copied, first.take()) {
        (Err(failure), _) => Err(failed(held, &failure)),
        (Ok(_), Some(e)) => Err(VolError::new("copy all to or from", &held.source, e)),
        (Ok(summary), None) => Ok(summary),
    }
}

fn failed(held: &Held, failure: &Failure) -> VolError {
    VolError::new("copy to or from", &held.source, noted(failure))
}

fn noted(failure: &Failure) -> Error {
    Error::note(failure.kind(), failure.to_string())
}

/// Keeps the first failure of a copy.
struct First(Mutex<Option<Error>>);

impl First {
    fn keep(&self, e: Error) {
        // The stored error is complete, even if another thread has panicked.
        let mut first = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert(e);
    }

    fn take(self) -> Option<Error> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Observer for First {
    fn failed(&self, failure: &Failure) {
        self.keep(noted(failure));
    }

    fn damaged(&self, damage: &Damage) {
        self.keep(Error::note(Kind::Corrupt, damage.to_string()));
    }
}
