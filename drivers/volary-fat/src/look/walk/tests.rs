use super::*;
use crate::make::make;
use std::sync::Arc;
use volary_block::{Faulty, How, MemDevice, On, When};
use volary_core::{Make, Options};

fn volume(kind: FatKind, size: u64, options: &str) -> MemDevice {
    let dev = MemDevice::new(size);
    let how = Make {
        options: Options::parse(options),
        ..Make::default()
    };
    make(&dev, kind, &how).unwrap();
    dev
}

/// Chains as FAT32 entries from cluster 3 on.
fn chains(entries: &[u32]) -> MemDevice {
    let dev = volume(FatKind::Fat32, 4 << 20, "small");
    let layout = Layout::read(&dev).unwrap();
    let bytes: Vec<u8> = entries.iter().flat_map(|n| n.to_le_bytes()).collect();
    dev.write_at(layout.fat_offset(0) + 12, &bytes).unwrap();
    dev
}

fn runs(dev: &MemDevice, first: u32) -> (Vec<(u32, u32)>, Result<()>) {
    let layout = Layout::read(dev).unwrap();
    let mut all = Vec::new();
    let end = Walker::new(dev, &layout).runs(first, &mut |r| {
        all.push((r.first, r.len));
        all.len() < 100
    });
    (all, end)
}

const END: u32 = 0x0fff_ffff;

#[test]
fn chains_are_told_in_runs() {
    let dev = chains(&[4, 5, 8, END, 0, 0xf000_0009, END]);
    assert_eq!(runs(&dev, 3), (vec![(3, 3), (8, 2)], Ok(())));
    assert_eq!(runs(&dev, 6), (vec![(6, 1)], Ok(())));
}

#[test]
fn damage_in_a_chain_is_told_after_what_comes_before_it() {
    let bad = Err(Kind::Corrupt.into());
    assert_eq!(runs(&chains(&[4, 0]), 3), (vec![(3, 2)], bad));
    let bad = || Err(Kind::Corrupt.into());
    assert_eq!(runs(&chains(&[4, 0x0fff_fff7]), 3), (vec![(3, 2)], bad()));
    assert_eq!(runs(&chains(&[4, 0x00ff_ffff]), 3), (vec![(3, 2)], bad()));
    assert_eq!(runs(&chains(&[4, 1]), 3), (vec![(3, 2)], bad()));
    assert_eq!(runs(&chains(&[]), 1), (vec![], bad()));
    for circle in [vec![3], vec![4, 3], vec![4, 5, 6, 7, 8, 5]] {
        assert!(runs(&chains(&circle), 3).1.is_err());
    }
}

#[test]
fn an_entry_of_fat12_across_a_window_is_read() {
    // Entries 43690 and 43691 would be the first across 64 KiB; FAT12 has fewer
    // than that, so all entries are read against a second way of reading.
    let dev = volume(FatKind::Fat12, 2 << 20, "cluster=512");
    let layout = Layout::read(&dev).unwrap();
    let bytes: Vec<u8> = (0..layout.fat_len()).map(|i| (i * 7 % 251) as u8).collect();
    dev.write_at(layout.fat_offset(0), &bytes).unwrap();
    let walker = Walker::new(&dev, &layout);
    for n in 0..=layout.last_cluster() {
        let bit = n as usize * 12;
        let at = |i: usize| u32::from(bytes[bit / 8 + i]);
        let expected = (at(0) | at(1) << 8) >> (bit % 8) & 0xfff;
        assert_eq!(walker.fat_entry(n), Ok(expected), "{n}");
    }
    assert!(walker.fat_entry(5000).is_err());
}

#[test]
fn another_copy_of_the_fat_is_read_where_the_first_cannot_be() {
    let dev = volume(FatKind::Fat16, 10 << 20, "");
    let layout = Layout::read(&dev).unwrap();
    let faulty = Faulty::new(Arc::new(dev));
    let fat = layout.fat_offset(0);
    faulty.bad_reads(fat..fat + layout.fat_len());
    assert_eq!(Walker::new(&faulty, &layout).fat_entry(1), Ok(0xffff));
    faulty.bad_reads(fat..fat + 2 * layout.fat_len());
    assert_eq!(
        Walker::new(&faulty, &layout).fat_entry(1).unwrap_err(),
        Kind::Io
    );
    faulty.heal();
    faulty.fail(On::Read, When::From(0), How::Io);
    assert!(Walker::new(&faulty, &layout).fat_entry(1).is_err());
}

#[test]
fn all_values_are_those_of_each_entry() {
    for (kind, size) in [
        (FatKind::Fat12, 1 << 20),
        (FatKind::Fat16, 20 << 20),
        (FatKind::Fat32, 200 << 20),
    ] {
        let dev = volume(kind, size, "");
        let layout = Layout::read(&dev).unwrap();
        let bytes: Vec<u8> = (0..3000_u32).map(|i| (i * 7 % 251) as u8).collect();
        dev.write_at(layout.fat_offset(0) + 100, &bytes).unwrap();
        let walker = Walker::new(&dev, &layout);
        let mut next = 2;
        walker
            .values(|first, len, value| {
                assert_eq!(first, next);
                for n in (first..first + len).step_by(97).take(50) {
                    assert_eq!(walker.fat_entry(n), Ok(value));
                }
                next += len;
            })
            .unwrap();
        assert_eq!(next, layout.last_cluster() + 1);
    }
}
