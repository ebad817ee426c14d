//! Checks that the clusters of a qcow2 image lie in its file (docs/interop/qcow2.txt, "Cluster
//! mapping"). Those past its end would read as zeros.

use super::header::Tables;
use super::refcounts::count_past_end;
use crate::file::{io_error, read_exact_at};
use std::fs::File;
use volary_core::{Error, Result};

/// The bits of an entry that hold an offset.
const OFFSET: u64 = 0x00ff_ffff_ffff_fe00;
const COMPRESSED: u64 = 1 << 62;
/// The cluster reads as zeros, whatever its offset.
const ZERO: u64 = 1;

/// Checks that all tables of clusters lie in the file, of `len` bytes; and, if the refcounts tell of
/// clusters past its end, that none of these is in use. As for QEMU, the last cluster need not be
/// complete. `counts` is whether the refcounts are up to date.
///
/// # Errors
/// `Corrupt`, with the place of the entry; `Io`.
pub(super) fn check(file: &File, tables: &Tables, len: u64, counts: bool) -> Result<()> {
    let (at, l1_len) = tables.l1;
    let l1 = entries(file, at, l1_len)?;
    for (at, entry) in &l1 {
        let l2 = entry & OFFSET;
        if l2 + (1 << tables.cluster_bits) > len && l2 != 0 {
            return Err(cut(*at, l2, len));
        }
    }
    // Without refcounts that make sense, each cluster is looked at.
    if counts && !count_past_end(file, tables, len).unwrap_or(true) {
        return Ok(());
    }
    for (_, entry) in l1.iter().filter(|(_, entry)| entry & OFFSET != 0) {
        for (at, entry) in entries(file, entry & OFFSET, 1 << tables.cluster_bits)? {
            let data = match entry & COMPRESSED {
                0 if entry & ZERO != 0 => 0,
                0 => entry & OFFSET,
                _ => entry & ((1 << (70 - tables.cluster_bits)) - 1),
            };
            if data >= len {
                return Err(cut(at, data, len));
            }
        }
    }
    Ok(())
}

/// Returns the entries of a table, each with its offset in the file.
fn entries(file: &File, at: u64, len: u64) -> Result<Vec<(u64, u64)>> {
    let mut bytes = vec![0; usize::try_from(len).unwrap_or(usize::MAX)];
    read_exact_at(file, &mut bytes, at).map_err(|e| io_error("read", at, bytes.len(), &e))?;
    let (numbers, _) = bytes.as_chunks();
    let places = (at..).step_by(8);
    Ok(places
        .zip(numbers.iter().map(|bytes| u64::from_be_bytes(*bytes)))
        .collect())
}

fn cut(at: u64, cluster: u64, len: u64) -> Error {
    let expected = format!("inside the file of {len} bytes (is the image truncated?)");
    Error::corrupt("a cluster's offset", at, cluster.to_string(), expected)
}
