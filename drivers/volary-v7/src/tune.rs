//! Changing the superblock in place: the label, the mark of a volume that was cleanly left.

use crate::attached::commit::mark;
use crate::disk::ondisk::SUPER_AT;
use crate::disk::volume::Volume;
use crate::make::name;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Fact, Kind, Result, Tune};

/// Does what `how` asks; says what was done. The superblock is one sector: it is changed as a whole.
///
/// # Errors
/// `Unsupported` for compaction; `Invalid` for an option or a label that is too long; `Corrupt` for
/// a superblock that makes no sense; `ReadOnly`; `Io`.
pub(crate) fn tune(dev: &Arc<dyn BlockDevice>, how: &Tune) -> Result<Vec<Fact>> {
    how.options.check_known(&[])?;
    let volume = Volume::new(&**dev, None)?;
    if how.compact {
        let words = "a v7 volume is put in order by copying it to a new one";
        return Err(Error::note(Kind::Unsupported, words));
    }
    let (mut head, mut facts) = (volume.head.clone(), Vec::new());
    if let Some(text) = &how.label {
        let label = name(text, "label")?;
        let at = volume.variant.fields().fname;
        if let Some(room) = head.get_mut(at..at + 6) {
            room.fill(0);
            for (to, from) in room.iter_mut().zip(&label) {
                *to = *from;
            }
        }
        facts.push(Fact::word("label", text.as_str()));
    }
    if let Some(dirty) = how.dirty {
        mark(&volume, &mut head, !dirty, how.now);
        facts.push(Fact::word("mark", if dirty { "dirty" } else { "clean" }));
    }
    dev.write_at(SUPER_AT, &head)?;
    dev.flush()?;
    Ok(facts)
}
