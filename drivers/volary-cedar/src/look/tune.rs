//! Changing a volume in place: its label.

use crate::disk::ondisk::LABEL_MAX;
use crate::disk::volume::Layout;
use volary_core::{BlockDevice, Error, Fact, Kind, Result, Tune};

/// Changes the label, copy by copy, each durable before the next.
///
/// # Errors
/// `Invalid` for a label that is too long and for options; `Unsupported` for
/// compaction and for a dirty mark, of which a cedar volume has none.
pub(crate) fn tune(dev: &dyn BlockDevice, how: &Tune) -> Result<Vec<Fact>> {
    how.options.check_known(&[])?;
    if how.compact || how.dirty.is_some() {
        let words =
            "a cedar volume has a label to tune: it keeps no dirty mark and is not compacted";
        return Err(Error::note(Kind::Unsupported, words));
    }
    let mut layout = Layout::read(dev)?;
    let Some(label) = &how.label else {
        return Ok(Vec::new());
    };
    if label.len() > LABEL_MAX {
        let words = format!("a label of {} bytes, at most {LABEL_MAX}", label.len());
        return Err(Error::note(Kind::Invalid, words));
    }
    layout.label.clone_from(label);
    layout.version += 1;
    for page in layout.roots() {
        dev.write_at(layout.offset(page), &layout.encode(page))?;
        dev.flush()?;
    }
    Ok(vec![Fact::word("label", label.clone())])
}
