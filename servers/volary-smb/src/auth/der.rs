//! The part of DER that SPNEGO needs: definite lengths, and one-byte tags.

use crate::wire::{Cursor, Short};

/// Reads the next value, which must have the tag `tag`.
pub(super) fn value<'a>(c: &mut Cursor<'a>, tag: u8) -> Result<&'a [u8], Short> {
    if c.u8()? != tag {
        return Err(Short);
    }
    let len = length(c)?;
    c.take(len)
}

/// Reads the next value, if it has the tag `tag`.
pub(super) fn optional<'a>(c: &mut Cursor<'a>, tag: u8) -> Result<Option<&'a [u8]>, Short> {
    if c.rest().first() == Some(&tag) {
        value(c, tag).map(Some)
    } else {
        Ok(None)
    }
}

fn length(c: &mut Cursor<'_>) -> Result<usize, Short> {
    let first = c.u8()?;
    match first {
        0..=0x7F => Ok(first.into()),
        0x81 => Ok(c.u8()?.into()),
        0x82 => Ok(u16::from_be_bytes(c.array()?).into()),
        // No valid value here has 64 KiB.
        _ => Err(Short),
    }
}

/// Returns a value with its tag and length.
pub(super) fn tagged(tag: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = parts.iter().map(|part| part.len()).sum();
    let mut out = vec![tag];
    match len {
        0..0x80 => out.push(len as u8),
        0x80..0x100 => out.extend([0x81, len as u8]),
        _ => {
            out.push(0x82);
            let len = u16::try_from(len).expect("nothing here has 64 KiB");
            out.extend(len.to_be_bytes());
        }
    }
    for part in parts {
        out.extend_from_slice(part);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for len in [0, 1, 127, 128, 255, 256, 65_535] {
            let content = vec![7; len];
            let written = tagged(4, &[&content]);
            let mut c = Cursor::new(&written);
            assert_eq!(value(&mut c, 4), Ok(&content[..]), "{len}");
            assert!(c.is_empty());
            assert_eq!(value(&mut Cursor::new(&written), 5), Err(Short));
            let cut = &written[..written.len() - 1];
            assert_eq!(value(&mut Cursor::new(cut), 4), Err(Short));
        }
    }
}
