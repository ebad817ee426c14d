//! Single bits of a cylinder group's head: where its tables stand, and how long they are; of a
//! directory's size.

use super::SHAPES;
use super::made::Made;
use crate::volumes::{attach, check};
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::CheckMode;
use volary_testkit::tree::Tree;
use volary_testkit::volumes::as_root;

/// From `cg_old_btotoff` to `cg_nclusterblks`.
const PLACES: std::ops::Range<usize> = 84..116;

/// What is wrong with how a bit is mended.
fn mended(m: &Made, bit: usize) -> Result<(), String> {
    let mut image = m.image.clone();
    image[bit / 8] ^= 1 << (bit % 8);
    let dev = Arc::new(MemDevice::from_vec(image));
    let (report, found) = check(dev.clone(), CheckMode::Mend);
    if report.left() > 0 {
        return Err(format!("left: {found:#?}"));
    }
    let (again, found) = check(dev.clone(), CheckMode::Mend);
    if (again.found, again.written) != (0, 0) {
        return Err(format!("found again: {found:#?}"));
    }
    let fs = attach(dev, "");
    let tree = as_root(|cx| Tree::read(&fs, cx)).map_err(|e| e.to_string())?;
    let lost = m.tree.differences(&tree);
    lost.is_empty().then_some(()).ok_or_else(|| lost.join("\n"))
}

#[test]
fn where_a_group_s_tables_stand_is_mended_by_one_run() {
    let mut failures = Vec::new();
    for shape in SHAPES {
        let m = Made::new(shape);
        let head = m.group(1);
        for byte in PLACES {
            for bit in (head + byte) * 8..(head + byte + 1) * 8 {
                if let Err(words) = mended(&m, bit) {
                    let within = bit - head * 8;
                    failures.push(format!("{}: bit {within}: {words}", m.shape.name()));
                }
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} fail: {}",
        failures.len(),
        failures.join("\n")
    );
}

/// There is no room to fill what it would have.
#[test]
fn a_directory_that_says_it_is_as_long_as_the_volume_ends_where_its_blocks_do() {
    for shape in SHAPES {
        let m = Made::new(shape);
        let mut image = m.image.clone();
        m.put(&mut image, m.size("many"), 8, 6 << 20);
        let dev = Arc::new(MemDevice::from_vec(image));
        let (report, told) = check(dev.clone(), CheckMode::Mend);
        assert_eq!(report.left(), 0, "{}: {told:#?}", m.shape.name());
        let (again, found) = check(dev.clone(), CheckMode::Mend);
        assert_eq!((again.found, again.written), (0, 0), "{found:#?}");
        let size = |image: &[u8]| m.get(image, m.size("many"), 8);
        let sizes = (size(&dev.to_vec()), size(&m.image));
        assert_eq!(sizes.0, sizes.1, "{}: {told:#?}", m.shape.name());
    }
}
