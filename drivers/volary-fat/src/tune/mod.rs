//! Changes to a volume in place: its label, its marks, where its files lie.
//!
//! Every step leaves what the volume holds as it was: a stop at any point, by
//! a power cut too, leaves at worst clusters that nothing leads to, FATs that
//! differ and the dirty mark, which `fsck -p` mends.

pub(crate) mod badsect;
mod compact;
mod free;
mod items;
mod label;

use crate::table::fat::Table;
use crate::table::marks;
use crate::volume::layout::Layout;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Fact, Kind, Progress, Result, Tune};

/// Memory for the FAT's segments while a volume is tuned, in bytes.
const TABLE_MEMORY: u64 = 16 << 20;

/// Does what `how` asks, in the order label, compaction, mark; says what was
/// done.
///
/// # Errors
/// `Invalid` for an option or a label that cannot be kept; `Corrupt` for a
/// volume that `check` should see first; `Interrupted`; `Io`.
pub(crate) fn run(
    dev: &Arc<dyn BlockDevice>,
    how: &Tune,
    progress: &dyn Progress,
) -> Result<Vec<Fact>> {
    how.options.check_known(&[])?;
    let layout = Layout::read(&**dev)?;
    let mut facts = Vec::new();
    if let Some(text) = &how.label {
        let table = Table::new(dev.clone(), &layout, TABLE_MEMORY);
        label::set(dev, &layout, &table, text, how.now)?;
        facts.push(Fact::word("label", text.as_str()));
    }
    if how.compact {
        facts.extend(compacted(dev, &layout, progress)?);
    }
    if let Some(dirty) = how.dirty {
        set_mark(dev, &layout, dirty)?;
        facts.push(Fact::word("mark", if dirty { "dirty" } else { "clean" }));
    }
    Ok(facts)
}

/// Compacts under the dirty mark, which stays when the device fails.
fn compacted(
    dev: &Arc<dyn BlockDevice>,
    layout: &Layout,
    progress: &dyn Progress,
) -> Result<Vec<Fact>> {
    let table = Table::new(dev.clone(), layout, TABLE_MEMORY);
    if marks::is_dirty(layout, &table)? {
        return Err(Error::note(
            Kind::Corrupt,
            "the volume was not cleanly left; run fsck first",
        ));
    }
    let plan = compact::Compaction::new(&**dev, layout, &table)?;
    table.check_alike()?;
    marks::set_dirty(&**dev, layout, &table)?;
    let result = plan.run(progress);
    if result
        .as_ref()
        .is_err_and(|e| e.kind() != Kind::Interrupted)
    {
        return result;
    }
    table.write()?;
    dev.flush()?;
    marks::finish(&**dev, layout, &table, true)?;
    result
}

fn set_mark(dev: &Arc<dyn BlockDevice>, layout: &Layout, dirty: bool) -> Result<()> {
    let table = Table::new(dev.clone(), layout, TABLE_MEMORY);
    if dirty {
        marks::set_dirty(&**dev, layout, &table)
    } else {
        marks::finish(&**dev, layout, &table, true)
    }
}
