//! The path table: every directory with its parent.

use crate::disk::ondisk::{DESCRIPTORS, PathTableRecord, SECTOR};
use crate::tree::dir::Reader;
use volary_core::{Error, Result};
use zerocopy::FromBytes;

/// The longest path table that is read, in bytes.
const PATH_TABLE_MAX: u64 = 16 << 20;

/// Returns the path table as stored.
///
/// # Errors
/// `Corrupt` for one that is too long or not on the device; `Io`.
pub(crate) fn table(reader: &Reader<'_>) -> Result<Vec<u8>> {
    let at = DESCRIPTORS * SECTOR + 132;
    let table = reader.check("path table", at, reader.volume.path_table)?;
    if table.len > PATH_TABLE_MAX {
        let expected = format!("at most {PATH_TABLE_MAX}");
        return Err(Error::corrupt(
            "path table size",
            at,
            table.len.to_string(),
            expected,
        ));
    }
    let mut bytes = vec![0; table.len as usize];
    reader.cache.read(table.start, &mut bytes)?;
    Ok(bytes)
}

/// Returns the records of a path table, with their names.
pub(crate) fn records(bytes: &[u8]) -> impl Iterator<Item = (PathTableRecord, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (raw, more) = PathTableRecord::read_from_prefix(rest).ok()?;
        let len = usize::from(raw.identifier_length);
        let name = more.get(..len).filter(|name| !name.is_empty())?;
        rest = more.get(len + len % 2..).unwrap_or_default();
        Some((raw, name))
    })
}

/// Returns where the directory of a path table record begins, in bytes.
pub(crate) fn start(reader: &Reader<'_>, raw: &PathTableRecord) -> u64 {
    let block = u64::from(raw.extent_location.get()) + u64::from(raw.extended_attribute_length);
    block * reader.volume.block
}

/// Returns where the parent of the directory at `dir` begins.
///
/// # Errors
/// `Corrupt` if the table does not know it, and as [`table`].
pub(crate) fn parent(reader: &Reader<'_>, dir: u64) -> Result<u64> {
    let bytes = table(reader)?;
    let own = records(&bytes).find(|(raw, _)| start(reader, raw) == dir);
    let number = own.map(|(raw, _)| usize::from(raw.parent_directory_number.get()));
    let number = number.and_then(|number| number.checked_sub(1));
    let parent = number.and_then(|number| records(&bytes).nth(number));
    let missing = || {
        let at = reader.volume.path_table.start;
        let found = format!("nothing of the directory at {dir}");
        Error::corrupt("path table", at, found, "where it belongs")
    };
    Ok(start(reader, &parent.ok_or_else(missing)?.0))
}
