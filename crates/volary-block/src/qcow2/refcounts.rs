//! Checks refcounts (docs/interop/qcow2.txt, "Host cluster management"), as far as necessary before
//! a write, and to find that a file was cut.

use super::header::Tables;
use crate::file::io_error;
use crate::file::read_exact_at;
use std::fs::File;
use volary_core::{Error, Result};

/// The bits of a refcount table entry that hold an offset.
const OFFSET: u64 = 0xffff_ffff_ffff_fe00;

/// Checks that the clusters of the header, the refcount table and the L1 table have a refcount
/// above 0. Otherwise, imago may allocate them for data. Without the refcount block of cluster 0,
/// it recurses until the stack overflows.
///
/// # Errors
/// `Corrupt`, with the place of the refcount; `Io`.
pub(super) fn check(file: &File, tables: &Tables) -> Result<()> {
    let mut counts = Counts {
        file,
        tables,
        block: None,
    };
    for (offset, len) in [(0, 1), tables.refcounts, tables.l1] {
        let clusters =
            (offset >> tables.cluster_bits)..(offset + len).div_ceil(1 << tables.cluster_bits);
        for cluster in clusters {
            counts.check_used(cluster)?;
        }
    }
    Ok(())
}

/// Returns whether clusters that begin past the end of the file, of `len` bytes, have a refcount above
/// 0. They are used, or left over from a crash.
///
/// # Errors
/// `Io`.
pub(super) fn count_past_end(file: &File, tables: &Tables, len: u64) -> Result<bool> {
    let Tables {
        cluster_bits,
        count_bits,
        refcounts: (table, table_len),
        ..
    } = *tables;
    let first = len.div_ceil(1 << cluster_bits);
    let in_block = (8 << cluster_bits) / u64::from(count_bits);
    let mut block = vec![0; 1 << cluster_bits];
    for number in first / in_block..table_len / 8 {
        let mut entry = [0; 8];
        read(
            file,
            table.saturating_add(number.saturating_mul(8)),
            &mut entry,
        )?;
        let at = u64::from_be_bytes(entry) & OFFSET;
        if at == 0 {
            continue;
        }
        if at.saturating_add(block.len() as u64) > len {
            return Ok(true);
        }
        read(file, at, &mut block)?;
        let bit = first.saturating_sub(number.saturating_mul(in_block)) * u64::from(count_bits);
        let (byte, bits_before) = ((bit / 8) as usize, bit % 8);
        let mut counts = block.get(byte..).unwrap_or_default().iter();
        let starts = counts.next().is_some_and(|b| b >> bits_before != 0);
        if starts || counts.any(|b| *b != 0) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Looks up refcounts. Keeps the last refcount block.
struct Counts<'a> {
    file: &'a File,
    tables: &'a Tables,
    block: Option<(u64, Vec<u8>)>,
}

impl Counts<'_> {
    fn check_used(&mut self, cluster: u64) -> Result<()> {
        let Tables {
            cluster_bits,
            count_bits,
            refcounts: (table, len),
            ..
        } = *self.tables;
        let in_block = (8 << cluster_bits) / u64::from(count_bits);
        let entry = cluster / in_block * 8;
        if entry >= len {
            return Err(not_counted(cluster, table + len));
        }
        let mut number = [0; 8];
        read(self.file, table + entry, &mut number)?;
        let at = u64::from_be_bytes(number) & OFFSET;
        if at == 0 {
            return Err(not_counted(cluster, table + entry));
        }
        let bit = cluster % in_block * u64::from(count_bits);
        let block = self.block(at)?;
        let bytes = block.get((bit / 8) as usize..).unwrap_or_default();
        let is_used = match count_bits {
            // Refcounts of less than a byte are packed from the lowest bit on.
            1 | 2 | 4 => bytes
                .first()
                .is_some_and(|b| b >> (bit % 8) & ((1 << count_bits) - 1) != 0),
            bits => bytes.iter().take(bits as usize / 8).any(|b| *b != 0),
        };
        match is_used {
            true => Ok(()),
            false => Err(not_counted(cluster, at + bit / 8)),
        }
    }

    fn block(&mut self, at: u64) -> Result<&[u8]> {
        let block = match self.block.take() {
            Some(last) if last.0 == at => last,
            _ => {
                let mut bytes = vec![0; 1 << self.tables.cluster_bits];
                read(self.file, at, &mut bytes)?;
                (at, bytes)
            }
        };
        Ok(&self.block.insert(block).1)
    }
}

fn not_counted(cluster: u64, at: u64) -> Error {
    let expected =
        format!("a count of at least 1 for cluster {cluster}, which is the header's or a table's");
    Error::corrupt("refcount", at, "0", expected)
}

fn read(file: &File, at: u64, buf: &mut [u8]) -> Result<()> {
    let len = buf.len();
    read_exact_at(file, buf, at).map_err(|e| io_error("read", at, len, &e))
}
