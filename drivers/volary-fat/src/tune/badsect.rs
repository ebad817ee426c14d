//! Marking sectors bad.

use crate::table::fat::{Link, Table};
use crate::table::marks;
use crate::volume::layout::Layout;
use std::collections::BTreeSet;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Fact, Kind, Result};

/// Memory for the FAT's segments meanwhile, in bytes.
const TABLE_MEMORY: u64 = 4 << 20;

/// Marks the clusters that hold these sectors bad, in every FAT. The sectors
/// are counted from the start of the volume.
///
/// # Errors
/// `Invalid` for a sector outside of the data area; `Busy` for one that holds
/// a file's data; nothing is marked then. `Io`.
pub(crate) fn mark(dev: &Arc<dyn BlockDevice>, sectors: &[u64]) -> Result<Vec<Fact>> {
    let layout = Layout::read(&**dev)?;
    let table = Table::new(dev.clone(), &layout, TABLE_MEMORY);
    let mut fresh = BTreeSet::new();
    for &sector in sectors {
        let cluster = cluster_of(&layout, sector)?;
        match table.follow(cluster, 1)?.1 {
            Link::Bad => {}
            Link::Free => {
                fresh.insert(cluster);
            }
            _ => {
                return Err(Error::note(
                    Kind::Busy,
                    format!(
                        "sector {sector} is in cluster {cluster}, which holds a file's data; move or delete the file first"
                    ),
                ));
            }
        }
    }
    table.check_alike()?;
    let hints = marks::read_fsinfo(&**dev, &layout)?;
    table.believe(hints.and_then(|h| h.count), hints.and_then(|h| h.next));
    for &cluster in &fresh {
        table.set_bad(cluster)?;
    }
    table.write()?;
    table.write_copies()?;
    marks::write_fsinfo(&**dev, &layout, &table)?;
    dev.flush()?;
    Ok(vec![
        Fact::number("sectors given", sectors.len() as u64, ""),
        Fact::number("clusters marked bad", fresh.len() as u64, ""),
    ])
}

fn cluster_of(layout: &Layout, sector: u64) -> Result<u32> {
    let per_cluster = u64::from(layout.cluster_len / layout.sector_len);
    let end = u64::from(layout.data_sector) + u64::from(layout.cluster_count) * per_cluster;
    if (u64::from(layout.data_sector)..end).contains(&sector) {
        let cluster = (sector - u64::from(layout.data_sector)) / per_cluster + 2;
        return u32::try_from(cluster).map_err(|_| Kind::Invalid.into());
    }
    let words = format!(
        "sector {sector} is not in the data area, which is sectors {} to {}",
        layout.data_sector,
        end - 1
    );
    Err(Error::note(Kind::Invalid, words))
}
