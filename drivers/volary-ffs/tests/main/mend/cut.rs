//! Mending that a power cut ends: what it leaves is mended by the next run, and nothing that could
//! be read before the first is lost.

use super::kinds::{Kind, kinds};
use super::made::Made;
use super::{SHAPES, damaged, is_whole, readable};
use crate::volumes::check;
use std::collections::HashSet;
use std::sync::Arc;
use volary_block::MemDevice;
use volary_core::CheckMode;
use volary_sim::{Bounds, Traced, choices, crash_points};

const BOUNDS: Bounds = Bounds {
    eager: 2,
    random: 1,
    garbage: false,
    seed: 1,
};

/// Damage whose repair writes more than one structure.
const KINDS: &[&str] = &[
    "a size past the last piece",
    "a pointer of one out of range",
    "one block, three files",
    "a file's in a directory's",
    "an indirect block, two files",
    "an indirect block among the data of double, one number in range",
    "an indirect block among the data of double, all numbers behind the end",
];

/// Returns what is wrong with how one kind of damage is mended in two runs.
fn mended_in_two_runs(m: &Made, kind: &Kind) -> Result<usize, String> {
    let image = damaged(m, kind)?;
    let is_of_sparse = kind.what.contains("double");
    let readable = |dev: &Arc<MemDevice>| readable(m, dev, is_of_sparse);
    let before = readable(&Arc::new(MemDevice::from_vec(image.clone())));
    let traced = Arc::new(Traced::new(volary_sim::Disk::new(image)));
    _ = check(traced.clone(), CheckMode::Mend);
    let each = if is_whole() { 1 } else { 3 };
    let mut seen = HashSet::new();
    for point in crash_points(&traced.take(), false) {
        for choice in choices(point.in_flight.len(), &BOUNDS)
            .into_iter()
            .step_by(each)
        {
            let disk = point.disk_after(&choice);
            if !seen.insert(disk.hash()) {
                continue;
            }
            let what = format!("event {}, {choice}", point.event);
            let dev = Arc::new(MemDevice::from_vec(disk.to_vec()));
            let (report, found) = check(dev.clone(), CheckMode::Mend);
            if report.left() > 0 {
                return Err(format!("{what}: {} left: {found:#?}", report.left()));
            }
            let (again, found) = check(dev.clone(), CheckMode::Mend);
            if (again.found, again.written) != (0, 0) {
                return Err(format!("{what}: found again: {found:#?}"));
            }
            let lost = readable(&dev).lost_since(&before);
            if !lost.is_empty() {
                return Err(format!("{what}: {}", lost.join("\n")));
            }
        }
    }
    Ok(seen.len())
}

#[test]
fn what_a_power_cut_leaves_of_mending_is_mended_and_nothing_is_lost() {
    let (mut failures, mut count) = (Vec::new(), 0);
    for shape in SHAPES.into_iter().take(if is_whole() { 4 } else { 1 }) {
        let m = Made::new(shape);
        for kind in kinds(&m).filter(|kind| is_whole() || KINDS.contains(&kind.what)) {
            match mended_in_two_runs(&m, kind) {
                Ok(states) => count += states,
                Err(words) => failures.push(format!("{}: {}: {words}", shape.name(), kind.what)),
            }
        }
    }
    println!("{count} states");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 100);
}
