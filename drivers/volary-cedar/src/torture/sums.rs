//! Files with checksums that are written in place: what a cut leaves is old, new, or some
//! of both, and none of it is refused for checksums of what it was.

use super::caught::few;
use super::cuts::volume;
use super::script::as_root;
use super::subject::Volume;
use crate::mistakes::plant;
use std::sync::Arc;
use volary_core::{Create, Fs, Mode, Name, Result, SetAttr};
use volary_sim::rng::{Rng, pattern};
use volary_sim::{Cow, Subject, Traced, crash_points};

/// Makes a volume with checksums.
pub(super) fn with_sums(volume: Volume) -> Volume {
    Volume {
        make: "page=512,name-table=48k,log=186k,checksums",
        ..volume
    }
}

/// Writes into the middle of a sealed file, and closes it, which seals it again.
fn write_in_place(fs: &Fs, name: Name<'_>, dev: &Traced) -> Result<()> {
    as_root(|cx| {
        let (_, open) = fs.create(cx, fs.root(), name, Create::New, &SetAttr::default())?;
        fs.write(cx, open, Some(0), &pattern(1, 3000))?;
        fs.close(cx, open)?;
        fs.sync(cx)?;
        dev.begin(1);
        let node = fs.lookup(cx, fs.root(), name)?.node;
        let open = fs.open(cx, node, Mode::Write)?;
        fs.write(cx, open, Some(700), &pattern(2, 1200))?;
        fs.fsync(cx, open, false)?;
        fs.close(cx, open)?;
        fs.sync(cx)?;
        dev.end(1);
        fs.detach(cx)
    })
}

/// Looks at states of a write in place.
///
/// # Errors
/// What is wrong with the first that is.
pub(super) fn patch(volume: Volume) -> std::result::Result<(), String> {
    let volume = with_sums(volume);
    let disk = volume.make()?;
    let traced = Arc::new(Traced::new(disk));
    plant(volume.mistake);
    let name = Name::new(b"patched").map_err(|_| "name")?;
    let fs = volume.attach(traced.clone(), false)?;
    write_in_place(&fs, name, &traced).map_err(|e| e.to_string())?;
    let mut rng = Rng::new(9);
    for point in crash_points(&traced.take(), false) {
        for choice in few(point.in_flight.len(), &mut rng) {
            let cow = Arc::new(Cow::new(point.disk_after(&choice)));
            volume.recover(cow.clone())?;
            volume.look(cow)?;
        }
    }
    Ok(())
}

#[test]
fn what_was_written_in_place_is_not_held_to_what_it_was() {
    for attach in ["", "commit=0"] {
        patch(volume(attach)).unwrap();
    }
}
