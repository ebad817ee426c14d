//! The System Use Sharing Protocol (IEEE P1281): tagged fields behind records.

use crate::disk::volume::Volume;
use volary_block::Cache;
use volary_core::{Error, Result};

/// A field: its signature, and the data after its version.
pub(crate) struct Field<'a> {
    pub(crate) signature: [u8; 2],
    pub(crate) data: &'a [u8],
}

/// The most continuation areas of a record, the length of one, and the length of all together, in
/// bytes.
const AREAS_MAX: usize = 64;
const AREA_LEN_MAX: u64 = 32 << 10;
const RECORD_LEN_MAX: u64 = 64 << 10;

/// How many bytes of continuation areas may still be read. Each area belongs to one record. If a
/// damaged volume shares areas among records, reading all would take far more work than the volume
/// has bytes.
pub(crate) struct Areas(u64);

impl Areas {
    /// Returns the bound for a scan that reads each record of the volume, or of a part of it, once.
    pub(crate) fn of_all(cache: &Cache) -> Self {
        Self(cache.size())
    }

    /// Takes `len` bytes from the bound. Returns false, and takes none, if fewer are left.
    fn take(&mut self, len: u64) -> bool {
        let left = self.0.checked_sub(len);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

/// Calls `each` for the fields of a system use area, in order, through all its continuation areas.
/// These count against `areas`. The record is at `at`.
///
/// # Errors
/// `Corrupt` for a continuation that is too long, lies outside of the volume, or exceeds the
/// allowed number, as in a loop; those of `each`; `Io`.
pub(crate) fn each_field(
    cache: &Cache,
    volume: &Volume,
    at: u64,
    area: &[u8],
    areas: &mut Areas,
    mut each: impl FnMut(&Field<'_>) -> Result<()>,
) -> Result<()> {
    let bad = |found: String, expected: String| Err(Error::corrupt("CE", at, found, expected));
    let mut next = fields(area, &mut each)?;
    let mut own = Areas(RECORD_LEN_MAX);
    for _ in 0..AREAS_MAX {
        let Some(more) = next else { return Ok(()) };
        let start = u64::from(more.block)
            .saturating_mul(volume.block)
            .saturating_add(more.offset.into());
        let len = u64::from(more.len);
        if len > AREA_LEN_MAX || start.saturating_add(len) > cache.size() {
            let expected = "a continuation area inside of the volume";
            return bad(format!("{len} bytes at {start}"), expected.into());
        }
        if !own.take(len) {
            return bad("more".into(), format!("at most {RECORD_LEN_MAX} bytes"));
        }
        if !areas.take(len) {
            let expected = "areas of which each belongs to one record";
            return bad(
                "more areas than the volume has room for".into(),
                expected.into(),
            );
        }
        let mut bytes = vec![0; len as usize];
        cache.read(start, &mut bytes)?;
        next = fields(&bytes, &mut each)?;
    }
    match next {
        None => Ok(()),
        Some(_) => bad("one more".into(), format!("at most {AREAS_MAX}")),
    }
}

/// A continuation area.
struct Continuation {
    block: u32,
    offset: u32,
    len: u32,
}

/// Calls `each` for the fields of one area. Returns the area that follows it, if there is one. A
/// field that does not fit ends the area, as in other readers: the rest is padding.
fn fields(
    area: &[u8],
    each: &mut impl FnMut(&Field<'_>) -> Result<()>,
) -> Result<Option<Continuation>> {
    let (mut rest, mut next) = (area, None);
    while let [a, b, len, _version, ..] = *rest {
        let Some(data) = rest.get(4..usize::from(len)) else {
            break;
        };
        match [a, b] {
            [b'C', b'E'] => next = continuation(data),
            [b'S', b'T'] => break,
            signature => each(&Field { signature, data })?,
        }
        rest = rest.get(usize::from(len)..).unwrap_or_default();
    }
    Ok(next)
}

fn continuation(data: &[u8]) -> Option<Continuation> {
    Some(Continuation {
        block: le32(data, 0)?,
        offset: le32(data, 8)?,
        len: le32(data, 16)?,
    })
}

/// Returns the little-endian half of a number in both byte orders.
pub(crate) fn le32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
