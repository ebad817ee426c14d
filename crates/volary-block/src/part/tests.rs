use super::*;
use crate::MemDevice;
use proptest::prelude::*;

const SECTOR: usize = 512;

/// Returns an image with an MBR of these (type, first, count).
fn with_mbr(sectors: usize, entries: &[(u8, u32, u32)]) -> Vec<u8> {
    let mut image = vec![0; sectors * SECTOR];
    put_mbr(&mut image[..SECTOR], entries);
    image
}

fn put_mbr(sector: &mut [u8], entries: &[(u8, u32, u32)]) {
    for (i, (kind, first, count)) in entries.iter().enumerate() {
        let e = &mut sector[446 + 16 * i..][..16];
        e[4] = *kind;
        e[8..12].copy_from_slice(&first.to_le_bytes());
        e[12..16].copy_from_slice(&count.to_le_bytes());
    }
    sector[510..512].copy_from_slice(&[0x55, 0xaa]);
}

/// Writes a label with these entries (type, first, count) and a valid checksum.
fn put_label(at: &mut [u8], big: bool, entries: &[(u8, u32, u32)]) {
    let order = |v: u32| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    let half = |v: u16| {
        if big {
            v.to_be_bytes()
        } else {
            v.to_le_bytes()
        }
    };
    at[..4].copy_from_slice(&order(0x8256_4557));
    at[40..44].copy_from_slice(&order(512));
    at[132..136].copy_from_slice(&order(0x8256_4557));
    at[138..140].copy_from_slice(&half(entries.len() as u16));
    for (i, (kind, first, count)) in entries.iter().enumerate() {
        let e = &mut at[148 + 16 * i..][..16];
        e[..4].copy_from_slice(&order(*count));
        e[4..8].copy_from_slice(&order(*first));
        e[12] = *kind;
    }
    let words = at[..148 + 16 * entries.len()].chunks(2);
    let sum = words.fold([0, 0], |s, w| [s[0] ^ w[0], s[1] ^ w[1]]);
    at[136..138].copy_from_slice(&sum);
}

fn list(image: Vec<u8>) -> Vec<(String, u64, u64)> {
    let dev = MemDevice::from_vec(image);
    let sector = SECTOR as u64;
    partitions(&dev)
        .unwrap()
        .into_iter()
        .map(|p| (p.id, p.offset / sector, p.len / sector))
        .collect()
}

fn ids(rows: &[(&str, u64, u64)]) -> Vec<(String, u64, u64)> {
    rows.iter().map(|r| (r.0.to_owned(), r.1, r.2)).collect()
}

#[test]
fn primary_and_logical_partitions_are_listed() {
    let mut image = with_mbr(
        400,
        &[
            (0x0c, 10, 50),
            (0, 0, 0),
            (0x05, 100, 200),
            (0x83, 300, 100),
        ],
    );
    put_mbr(
        &mut image[100 * SECTOR..101 * SECTOR],
        &[(0x06, 2, 48), (0x05, 50, 50)],
    );
    put_mbr(&mut image[150 * SECTOR..151 * SECTOR], &[(0x0b, 1, 49)]);
    let expected = ids(&[
        ("1", 10, 50),
        ("4", 300, 100),
        ("5", 102, 48),
        ("6", 151, 49),
    ]);
    assert_eq!(list(image), expected);
}

#[test]
fn a_chain_that_loops_or_leaves_its_partition_is_corrupt() {
    for next in [0, 500] {
        let mut image = with_mbr(400, &[(0x0f, 100, 200)]);
        put_mbr(
            &mut image[100 * SECTOR..101 * SECTOR],
            &[(6, 2, 8), (0x05, next, 50)],
        );
        image.resize(1000 * SECTOR, 0);
        let e = partitions(&MemDevice::from_vec(image)).unwrap_err();
        assert_eq!(e, Kind::Corrupt);
    }
}

#[test]
fn partitions_past_the_end_are_not_listed() {
    assert_eq!(
        list(with_mbr(100, &[(6, 10, 20), (6, 50, 51)])),
        ids(&[("1", 10, 20)])
    );
}

#[test]
fn a_boot_sector_of_a_volume_is_no_table() {
    for bad in [
        [(6, 0, 50), (0, 0, 0)],
        [(6, 1, 50), (6, 20, 50)],
        [(6, 5000, 1), (0, 0, 0)],
    ] {
        assert_eq!(list(with_mbr(100, &bad)), []);
    }
    let mut active = with_mbr(100, &[(6, 1, 50)]);
    active[446] = 0x41;
    assert_eq!(list(active), []);
    assert_eq!(list(vec![0; 10]), []);
}

#[test]
fn a_missing_partition_is_named_with_those_that_there_are() {
    let dev = MemDevice::from_vec(with_mbr(100, &[(6, 10, 20), (6, 50, 10)]));
    let e = partition(&dev, "7").unwrap_err();
    assert_eq!(e.to_string(), "there is no partition 7; there are: 1, 2");
    assert_eq!(partition(&dev, "2").unwrap().offset, 50 * 512);
    let e = partition(&MemDevice::new(5000), "1").unwrap_err();
    assert_eq!(
        e.to_string(),
        "there is no partition 1: the device has no partition table"
    );
}

#[test]
fn disklabels_are_read_in_both_byte_orders_and_on_a_bare_disk() {
    for big in [false, true] {
        let mut image = vec![0; 200 * SECTOR];
        put_label(
            &mut image[SECTOR..],
            big,
            &[(7, 16, 84), (1, 100, 50), (0, 0, 200), (7, 150, 51)],
        );
        assert_eq!(list(image), ids(&[("a", 16, 84), ("b", 100, 50)]));
    }
}

#[test]
fn disklabels_inside_a_partition_count_as_their_system_does() {
    let cases = [(0xa5, 50, 60), (0xa5, 0, 10), (0xa6, 0, 60), (0xa9, 50, 60)];
    for (kind, whole, first) in cases {
        let mut image = with_mbr(200, &[(kind, 50, 100)]);
        put_label(
            &mut image[51 * SECTOR..],
            false,
            &[(7, first, 20), (0, 0, 0), (0, whole, 100)],
        );
        assert_eq!(
            list(image),
            ids(&[("1", 50, 100), ("1a", 60, 20)]),
            "{kind:x} {whole}"
        );
    }
}

#[test]
fn a_label_with_a_wrong_sum_is_corrupt() {
    let mut image = vec![0; 200 * SECTOR];
    put_label(&mut image[SECTOR..], false, &[(7, 16, 84)]);
    image[SECTOR + 150] ^= 1;
    let e = partitions(&MemDevice::from_vec(image)).unwrap_err();
    assert_eq!(e.as_corrupt().unwrap().what, "d_checksum");
}

/// Returns an image with a GPT of two partitions, made by the `gpt` crate.
fn with_gpt(sector: ::gpt::disk::LogicalBlockSize) -> Vec<u8> {
    let len = 4 << 20;
    let sectors = (len / u64::from(u32::try_from(sector.as_u64()).unwrap())) as u32;
    let mut image = std::io::Cursor::new(vec![0; len as usize]);
    let mbr = ::gpt::mbr::ProtectiveMBR::with_lb_size(sectors - 1);
    mbr.overwrite_lba0(&mut image).unwrap();
    let mut disk = ::gpt::GptConfig::new()
        .writable(true)
        .logical_block_size(sector)
        .create_from_device(image, None)
        .unwrap();
    let kinds = ::gpt::partition_types::EFI;
    disk.add_partition("boot µ", 1 << 20, kinds, 0, None)
        .unwrap();
    disk.add_partition("data", 1 << 20, ::gpt::partition_types::LINUX_FS, 0, None)
        .unwrap();
    disk.write().unwrap().into_inner()
}

#[test]
fn tables_made_by_another_program_are_read_with_both_sector_sizes() {
    for sector in [
        ::gpt::disk::LogicalBlockSize::Lb512,
        ::gpt::disk::LogicalBlockSize::Lb4096,
    ] {
        let found = partitions(&MemDevice::from_vec(with_gpt(sector))).unwrap();
        let names: Vec<_> = found
            .iter()
            .map(|p| (p.id.as_str(), p.name.as_str(), p.len))
            .collect();
        assert_eq!(names, [("1", "boot µ", 1 << 20), ("2", "data", 1 << 20)]);
        assert_eq!(found[0].kind, "C12A7328-F81F-11D2-BA4B-00A0C93EC93B");
        assert_eq!(found[0].scheme, Scheme::Gpt);
        assert!(found[0].offset + found[0].len <= found[1].offset);
    }
}

#[test]
fn a_damaged_header_is_replaced_by_its_copy_and_two_are_corrupt() {
    let good = with_gpt(::gpt::disk::LogicalBlockSize::Lb512);
    let mut image = good.clone();
    image[512 + 40] ^= 1;
    assert_eq!(list(image.clone()), list(good));
    let last = image.len() - 512;
    image[last + 40] ^= 1;
    let e = partitions(&MemDevice::from_vec(image)).unwrap_err();
    assert_eq!(e.as_corrupt().unwrap().what, "HeaderCRC32");
}

#[test]
fn a_table_under_an_mbr_of_another_use_is_not_read() {
    let mut image = with_gpt(::gpt::disk::LogicalBlockSize::Lb512);
    image[..512].fill(0);
    assert_eq!(list(image), []);
}

/// Reads the table of a damaged image. It must return partitions or an error, and every returned
/// partition must be on the device.
fn survives(mut image: Vec<u8>, damage: &[(u16, u8)]) {
    for (at, byte) in damage {
        let at = usize::from(*at) % image.len();
        image[at] = *byte;
    }
    let size = image.len() as u64;
    for p in partitions(&MemDevice::from_vec(image)).unwrap_or_default() {
        assert!(p.len > 0 && p.offset + p.len <= size);
    }
}

#[test]
fn any_bytes_are_survived() {
    let bytes = proptest::collection::vec(any::<u8>(), 0..4096);
    crate::seeded::check(256, bytes, |mut bytes| {
        survives(bytes.clone(), &[]);
        if bytes.len() > 1024 {
            bytes[510..520].copy_from_slice(b"\x55\xaaEFI PART");
            bytes[450] = 0xee;
            survives(bytes, &[]);
        }
    });
}

#[test]
fn damage_to_each_kind_of_table_is_survived() {
    let mut mbr = with_mbr(400, &[(0x0c, 10, 50), (0x05, 1, 9)]);
    put_mbr(&mut mbr[SECTOR..2 * SECTOR], &[(6, 1, 2), (0x05, 2, 3)]);
    let mut bsd = with_mbr(400, &[(0xa5, 1, 300)]);
    put_label(&mut bsd[2 * SECTOR..], true, &[(7, 16, 84), (1, 100, 50)]);
    let images = [mbr, with_gpt(::gpt::disk::LogicalBlockSize::Lb512), bsd];
    let damage = proptest::collection::vec((0..2048_u16, any::<u8>()), 1..8);
    crate::seeded::check(256, (damage, 0..images.len()), |(damage, kind)| {
        survives(images[kind].clone(), &damage);
    });
}
