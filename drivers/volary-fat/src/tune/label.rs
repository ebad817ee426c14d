//! The volume's label: an entry in the root directory, and its copy in the
//! boot sector.

use crate::directory::slots::{Event, Scanner};
use crate::make;
use crate::names::codepage::CodePage;
use crate::names::record::LongStyle;
use crate::table::fat::Table;
use crate::table::runs::Runs;
use crate::table::twofold::Of;
use crate::volume::layout::Layout;
use crate::volume::ondisk::{BootTail, DirEntry, END, ENTRY_LEN, FREE, Short, attr, tail_offset};
use crate::volume::time::{Zone, set_write};
use std::ops::ControlFlow;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Kind, Result, Time};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

/// What the boot sector says where there is no label.
const NO_NAME: Short = *b"NO NAME    ";

/// Sets the label; "" takes it away. The entry in the root directory is what
/// systems show, so it is changed first.
///
/// # Errors
/// `Invalid` for a label that cannot be kept; `NoSpace` if the root directory
/// is full; `Io`.
pub(super) fn set(
    dev: &Arc<dyn BlockDevice>,
    layout: &Layout,
    table: &Table,
    text: &str,
    now: Time,
) -> Result<()> {
    let page = CodePage::new(CodePage::DEFAULT)?;
    let label = match text {
        "" => None,
        text => Some(make::label(text, &page)?),
    };
    let root = Root::look(&**dev, layout, table)?;
    match label {
        Some(label) => root.put(&**dev, label, now)?,
        None => root.take_away(&**dev)?,
    }
    for sector in std::iter::once(0).chain(layout.backup_sector) {
        set_in_boot_sector(&**dev, layout, sector, label.unwrap_or(NO_NAME))?;
    }
    dev.flush()
}

/// Where a label stands, or can stand, in the root directory: byte offsets.
#[derive(Default)]
struct Root {
    label: Option<u64>,
    free: Option<u64>,
    /// The end mark, and the slot after it, which must be the end then.
    end: Option<(u64, Option<u64>)>,
}

impl Root {
    fn look(dev: &dyn BlockDevice, layout: &Layout, table: &Table) -> Result<Self> {
        let slots = Slots::of_root(layout, table)?;
        let mut root = Self::default();
        let mut scanner = Scanner::new(LongStyle::Vfat);
        for (offset, len) in &slots.stretches {
            let mut bytes = vec![0; *len];
            dev.read_at(*offset, &mut bytes)?;
            let _: ControlFlow<()> = scanner.feed(&bytes, |event| {
                match event {
                    Event::Record(r) if r.short.is_label() => {
                        root.label = root.label.or(slots.offset(r.slot));
                    }
                    Event::Free(slot) => root.free = root.free.or(slots.offset(slot)),
                    Event::End(slot) => {
                        root.end = slots.offset(slot).map(|at| (at, slots.offset(slot + 1)));
                    }
                    _ => {}
                }
                ControlFlow::Continue(())
            });
        }
        Ok(root)
    }

    fn put(&self, dev: &dyn BlockDevice, label: Short, now: Time) -> Result<()> {
        if let Some(at) = self.label {
            return dev.write_at(at, &label);
        }
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = label;
        entry.DIR_Attr = attr::VOLUME_ID;
        set_write(&mut entry, now, Zone::default());
        if let Some(at) = self.free {
            return dev.write_at(at, entry.as_bytes());
        }
        let Some((at, next)) = self.end else {
            return Err(Error::note(
                Kind::NoSpace,
                "the root directory has no room for a label",
            ));
        };
        if let Some(next) = next {
            dev.write_at(next, &[END])?;
            dev.flush()?;
        }
        dev.write_at(at, entry.as_bytes())
    }

    fn take_away(&self, dev: &dyn BlockDevice) -> Result<()> {
        match self.label {
            Some(at) => dev.write_at(at, &[FREE]),
            None => Ok(()),
        }
    }
}

/// Where the slots of the root directory lie.
struct Slots {
    /// Byte offset and length of each stretch.
    stretches: Vec<(u64, usize)>,
}

impl Slots {
    fn of_root(layout: &Layout, table: &Table) -> Result<Self> {
        if !layout.is_fat32() {
            let len = layout.root_entries as usize * ENTRY_LEN;
            return Ok(Self {
                stretches: vec![(layout.root_offset(), len)],
            });
        }
        let mut runs = Runs::from_first(layout.root_cluster, Of::Dir);
        runs.load_all(table)?;
        let cluster = layout.cluster_len as usize;
        let clusters = runs
            .as_slice()
            .iter()
            .flat_map(|run| run.first..run.first + run.len);
        Ok(Self {
            stretches: clusters
                .map(|c| (layout.cluster_offset(c), cluster))
                .collect(),
        })
    }

    fn offset(&self, slot: u32) -> Option<u64> {
        let mut at = slot as usize * ENTRY_LEN;
        for (offset, len) in &self.stretches {
            if at < *len {
                return Some(offset + at as u64);
            }
            at -= len;
        }
        None
    }
}

/// Changes the label in a boot sector or in its copy, if it is one with a label.
fn set_in_boot_sector(
    dev: &dyn BlockDevice,
    layout: &Layout,
    sector: u32,
    label: Short,
) -> Result<()> {
    let at = u64::from(sector) * u64::from(layout.sector_len);
    let mut bytes = vec![0; layout.sector_len as usize];
    dev.read_at(at, &mut bytes)?;
    let Some(tail) = bytes.get_mut(tail_offset(layout.is_fat32())..) else {
        return Ok(());
    };
    let Ok((tail, _)) = BootTail::mut_from_prefix(tail) else {
        return Ok(());
    };
    if tail.BS_BootSig != 0x29 || tail.BS_VolLab == label {
        return Ok(());
    }
    tail.BS_VolLab = label;
    dev.write_at(at, &bytes)
}
