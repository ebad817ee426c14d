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
    let mut l2_tables = Vec::new();
    each_entry(file, at, l1_len, |at, entry| {
        let l2 = entry & OFFSET;
        if l2 != 0 && l2 + (1 << tables.cluster_bits) > len {
            return Err(cut(at, l2, len));
        }
        // A table that two entries name is looked at once; a file has no more than fit into it.
        if l2 != 0 && l2_tables.last() != Some(&l2) && (l2_tables.len() as u64) < len >> 9 {
            l2_tables.push(l2);
        }
        Ok(())
    })?;
    // Without refcounts that make sense, each cluster is looked at.
    if counts && !count_past_end(file, tables, len).unwrap_or(true) {
        return Ok(());
    }
    for l2 in l2_tables {
        each_entry(file, l2, 1 << tables.cluster_bits, |at, entry| {
            let data = match entry & COMPRESSED {
                0 if entry & ZERO != 0 => 0,
                0 => entry & OFFSET,
                _ => entry & ((1 << (70 - tables.cluster_bits)) - 1),
            };
            match data >= len {
                true => Err(cut(at, data, len)),
                false => Ok(()),
            }
        })?;
    }
    Ok(())
}

/// Calls `look` with the entries of a table of `len` bytes, each with its offset in the file. Takes
/// little memory, whatever length the header tells.
fn each_entry(
    file: &File,
    at: u64,
    len: u64,
    mut look: impl FnMut(u64, u64) -> Result<()>,
) -> Result<()> {
    const PART: u64 = 64 << 10;
    let mut bytes = vec![0; PART as usize];
    let mut done = 0;
    while done < len {
        let here = at.saturating_add(done);
        let part = (len - done).min(PART);
        let part = bytes.get_mut(..part as usize).unwrap_or_default();
        read_exact_at(file, part, here).map_err(|e| io_error("read", here, part.len(), &e))?;
        let (numbers, _) = part.as_chunks();
        for (index, number) in numbers.iter().enumerate() {
            look(
                here.saturating_add(8 * index as u64),
                u64::from_be_bytes(*number),
            )?;
        }
        done += PART;
    }
    Ok(())
}

fn cut(at: u64, cluster: u64, len: u64) -> Error {
    let expected = format!("inside the file of {len} bytes (is the image truncated?)");
    Error::corrupt("a cluster's offset", at, cluster.to_string(), expected)
}
