//! Draws a map of what each part of a volume is used for.

use crate::disk::ondisk::{kind, number};
use crate::files::bitmap::each_used;
use crate::files::node::Node;
use crate::files::stream::Stream;
use crate::look::info::look;
use crate::scan::{Scan, Visitor, is_of_volume};
use crate::store::Store;
use std::sync::Arc;
use volary_core::{BlockDevice, Error, Result, VolumeMap};
use volary_ondisk::Ranges;
use volary_ondisk::map::{MapBuilder, Use};

/// Maps the volume into at most `cells` cells. Skips what is damaged.
///
/// # Errors
/// Those of opening the volume; `Io`.
pub(crate) fn map(dev: &Arc<dyn BlockDevice>, cells: usize) -> Result<VolumeMap> {
    let store = look(dev)?;
    let volume = store.volume();
    let mut drawing = Drawing {
        store: &store,
        used: Ranges::default(),
        map: MapBuilder::new(dev.geometry().size, volume.cluster, cells),
    };
    Scan::new(store.mft(), &mut drawing).volume()?;
    drawing.lost()?;
    // The replica of the boot sector is after the clusters.
    let end = volume.clusters.saturating_mul(volume.cluster);
    let rest = volume.size().saturating_sub(end);
    drawing.map.add(end, rest, Use::System);
    Ok(drawing.map.finish(Use::Free))
}

struct Drawing<'a> {
    store: &'a Store,
    used: Ranges,
    map: MapBuilder,
}

impl Drawing<'_> {
    fn add(&mut self, first: u64, count: u64, what: Use) {
        let cluster = self.store.volume().cluster;
        let (start, len) = (first.saturating_mul(cluster), count.saturating_mul(cluster));
        self.map.add(start, len, what);
    }

    /// Adds the clusters that are in use by the bitmap, but belong to no file.
    fn lost(&mut self) -> Result<()> {
        let (store, cluster) = (self.store, self.store.volume().cluster);
        let (used, map) = (&self.used, &mut self.map);
        each_used(store.mft(), &mut |first, count| {
            used.gaps(first, count, |first, count| {
                let (at, len) = (first.saturating_mul(cluster), count.saturating_mul(cluster));
                map.add(at, len, Use::Lost);
            });
            Ok(())
        })
    }
}

fn use_of(node: &Node, kind: u32, name: &[u16], is_broken: bool) -> Use {
    let number = node.number();
    if number == number::BAD && kind == kind::DATA && !name.is_empty() {
        return Use::Bad;
    }
    match kind {
        _ if is_of_volume(number) || kind == kind::ATTRIBUTE_LIST => Use::System,
        kind::INDEX_ALLOCATION | kind::BITMAP => Use::Dir,
        _ if is_broken => Use::Broken,
        _ => Use::File,
    }
}

impl Visitor for Drawing<'_> {
    fn stream(&mut self, node: &Node, kind: u32, name: &[u16], stream: &Stream) -> Result<()> {
        let store = self.store;
        let (mut pieces, mut next) = (0u64, None);
        let _ = stream.each_place(store.mft(), &mut |first, count| {
            pieces += u64::from(next != Some(first));
            next = Some(first.saturating_add(count));
            Ok(())
        });
        let what = use_of(node, kind, name, pieces > 1);
        if matches!(what, Use::Broken) {
            self.map.add_breaks(pieces.saturating_sub(1));
        }
        let _ = stream.each_place(store.mft(), &mut |first, count| {
            self.used.take(first, count);
            self.add(first, count, what);
            Ok(())
        });
        Ok(())
    }

    fn bad(&mut self, _: u64, _: &'static str, _: Error) -> Result<()> {
        Ok(())
    }
}
