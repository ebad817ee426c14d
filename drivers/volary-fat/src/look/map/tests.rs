use super::*;
use crate::make::make;
use crate::volume::layout::FatKind;
use crate::volume::ondisk::{DirEntry, attr};
use volary_block::MemDevice;
use volary_core::{Make, MapCell, Options};
use zerocopy::{FromZeros, IntoBytes};

fn sum(map: &VolumeMap) -> MapCell {
    map.cells.iter().fold(MapCell::default(), |mut all, c| {
        for what in Use::ALL {
            *what.of(&mut all) += *what.of(&mut c.clone());
        }
        all
    })
}

/// FAT16: /A in one piece of 2 clusters, /B in two of 1, /D a directory, a
/// bad cluster, a lost one.
fn volume() -> MemDevice {
    let dev = MemDevice::new(20 << 20);
    let how = Make {
        options: Options::parse("cluster=1k"),
        ..Make::default()
    };
    make(&dev, FatKind::Fat16, &how).unwrap();
    let layout = Layout::read(&dev).unwrap();
    let mut root = Vec::new();
    for (name, first, bits) in [
        (b"A          ", 2, 0),
        (b"B          ", 4, 0),
        (b"D          ", 7, attr::DIRECTORY),
    ] {
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = *name;
        entry.DIR_Attr = bits;
        entry.set_first_cluster(first, false);
        root.extend_from_slice(entry.as_bytes());
    }
    dev.write_at(layout.root_offset(), &root).unwrap();
    let fat: Vec<u8> = [3, 0xffff, 6, 0, 0xffff, 0xffff, 0xfff7, 0xffff_u16]
        .iter()
        .flat_map(|n| n.to_le_bytes())
        .collect();
    dev.write_at(layout.fat_offset(0) + 4, &fat).unwrap();
    dev
}

#[test]
fn every_byte_has_one_use() {
    let dev = volume();
    let layout = Layout::read(&dev).unwrap();
    for cells in [1, 7, 64, 1000, usize::MAX] {
        let map = map(&dev, cells).unwrap();
        assert!(map.cells.len() <= cells);
        let all = sum(&map);
        assert_eq!(
            (all.file, all.broken, all.dir, all.bad, all.lost),
            (2048, 2048, 1024, 1024, 1024)
        );
        assert_eq!(all.system, layout.cluster_offset(2) + all_rest(&layout));
        assert_eq!(map.breaks, 1);
        let total = u64::from(layout.total_sectors) * 512;
        assert_eq!(
            all.system + all.file + all.broken + all.dir + all.bad + all.lost + all.free,
            total
        );
    }
}

fn all_rest(layout: &Layout) -> u64 {
    u64::from(layout.total_sectors) * 512 - layout.cluster_offset(layout.last_cluster() + 1)
}

#[test]
fn circles_and_links_to_nowhere_end_a_chain() {
    let dev = volume();
    let layout = Layout::read(&dev).unwrap();
    // A: 2 -> 3 -> 2; B: 4 -> 60000; D holds itself as /D/D.
    dev.write_at(layout.fat_offset(0) + 6, &[2, 0, 0x60, 0xea])
        .unwrap();
    let mut entry = DirEntry::new_zeroed();
    entry.DIR_Name = *b"D          ";
    entry.DIR_Attr = attr::DIRECTORY;
    entry.set_first_cluster(7, false);
    dev.write_at(layout.cluster_offset(7), entry.as_bytes())
        .unwrap();
    let map = map(&dev, 10).unwrap();
    assert_eq!(sum(&map).dir, 1024);
}

#[test]
fn a_large_volume_is_mapped_in_little_memory() {
    let dev = MemDevice::new(64 << 30);
    make(
        &dev,
        FatKind::Fat32,
        &Make {
            options: Options::parse("cluster=64k"),
            ..Make::default()
        },
    )
    .unwrap();
    let map = map(&dev, 100).unwrap();
    assert_eq!(map.cells.len(), 100);
    assert_eq!(sum(&map).dir, 65_536);
}

#[test]
fn a_chain_that_many_entries_lead_to_is_followed_once() {
    let dev = volume();
    let layout = Layout::read(&dev).unwrap();
    // All of the root: each leads to the second file's chain, or to the end of it.
    let mut root = Vec::new();
    for number in 0..500_u32 {
        let mut entry = DirEntry::new_zeroed();
        entry.DIR_Name = *b"F          ";
        entry.DIR_Name[1..4].copy_from_slice(format!("{number:03}").as_bytes());
        entry.set_first_cluster(4 + number % 2 * 2, false);
        root.extend_from_slice(entry.as_bytes());
    }
    dev.write_at(layout.root_offset(), &root).unwrap();
    let map = map(&dev, 64).unwrap();
    let all = sum(&map);
    assert_eq!((map.breaks, all.broken, all.file), (1, 2048, 0));
}
