//! The System Use Sharing Protocol (IEEE P1281): tagged fields behind records.

use crate::volume::Volume;
use volary_block::Cache;
use volary_core::{Error, Result};

/// A field: its signature, and what follows its version.
pub(crate) struct Field<'a> {
    pub(crate) signature: [u8; 2],
    pub(crate) data: &'a [u8],
}

/// How many continuation areas a record may have, and their length in bytes.
const AREAS_MAX: usize = 64;
const AREA_LEN_MAX: usize = 32 << 10;

/// Gives `each` the fields of a system use area, in order, through all its
/// continuation areas.
///
/// # Errors
/// `Corrupt` for a continuation that is too long, lies outside of the volume, or
/// is one of too many (a loop is); of `each`; `Io`.
pub(crate) fn each_field(
    cache: &Cache,
    volume: &Volume,
    at: u64,
    area: &[u8],
    mut each: impl FnMut(&Field<'_>) -> Result<()>,
) -> Result<()> {
    let mut next = fields(area, &mut each)?;
    for _ in 0..AREAS_MAX {
        let Some(more) = next else { return Ok(()) };
        let start = u64::from(more.block)
            .saturating_mul(volume.block)
            .saturating_add(more.offset.into());
        let len = more.len as usize;
        let end = start.saturating_add(len as u64);
        if len > AREA_LEN_MAX || end > cache.size() {
            let expected = "a continuation area inside of the volume";
            return Err(Error::corrupt(
                "CE",
                at,
                format!("{len} bytes at {start}"),
                expected,
            ));
        }
        let mut bytes = vec![0; len];
        cache.read(start, &mut bytes)?;
        next = fields(&bytes, &mut each)?;
    }
    match next {
        None => Ok(()),
        Some(_) => Err(Error::corrupt(
            "CE",
            at,
            "one more",
            format!("at most {AREAS_MAX}"),
        )),
    }
}

/// A continuation area.
struct Continuation {
    block: u32,
    offset: u32,
    len: u32,
}

/// The fields of one area; gives the area that follows it, if one does. A field
/// that does not fit ends the area, as in other readers: what follows is padding.
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

/// The little half of a number in both byte orders.
pub(crate) fn le32(data: &[u8], at: usize) -> Option<u32> {
    let bytes = data.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}
