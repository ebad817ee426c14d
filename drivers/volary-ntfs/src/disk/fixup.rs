//! Update sequences, which show whether all sectors of a structure were written.

use crate::disk::ondisk::STRIDE;
use volary_core::{Error, Result};

/// Puts back the bytes that the update sequence replaced, in a structure that is at `at` on the
/// device.
///
/// # Errors
/// `Corrupt` for a sequence outside of the structure, and for a sector that was not written with
/// the others. The latter names the sector's place on the device.
pub(crate) fn restore(what: &'static str, at: u64, bytes: &mut [u8]) -> Result<()> {
    let word = |bytes: &[u8], at: usize| match bytes.get(at..) {
        Some(&[low, high, ..]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let (offset, count) = (usize::from(word(bytes, 4)), usize::from(word(bytes, 6)));
    let strides = bytes.len() / STRIDE;
    let end = offset.saturating_add(count.saturating_mul(2));
    let is_inside = count == strides + 1 && offset >= 8 && offset % 2 == 0 && end <= STRIDE - 2;
    if !is_inside {
        let found = format!("{count} words at {offset}");
        let expected = format!("{} words in the first {STRIDE} bytes", strides + 1);
        return Err(Error::corrupt(what, at.saturating_add(4), found, expected));
    }
    let sequence = word(bytes, offset);
    for stride in 0..strides {
        let last = (stride + 1) * STRIDE - 2;
        let found = word(bytes, last);
        if found != sequence {
            let at = at.saturating_add(last as u64);
            let found = format!("update sequence number {found:#06x}, a torn write");
            return Err(Error::corrupt(what, at, found, format!("{sequence:#06x}")));
        }
        let stored = word(bytes, offset + 2 + 2 * stride).to_le_bytes();
        if let Some(place) = bytes.get_mut(last..last + 2) {
            place.copy_from_slice(&stored);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block() -> Vec<u8> {
        let mut bytes = vec![9; 1024];
        bytes[4..8].copy_from_slice(&[0x30, 0, 3, 0]);
        bytes[0x30..0x36].copy_from_slice(&[7, 0, 1, 2, 3, 4]);
        bytes[510..512].copy_from_slice(&[7, 0]);
        bytes[1022..].copy_from_slice(&[7, 0]);
        bytes
    }

    #[test]
    fn words_come_back_and_torn_writes_are_told() {
        let mut bytes = block();
        restore("a record", 4096, &mut bytes).unwrap();
        assert_eq!(
            (&bytes[510..512], &bytes[1022..]),
            (&[1, 2][..], &[3, 4][..])
        );
        let mut bytes = block();
        bytes[1022] = 8;
        let e = restore("a record", 4096, &mut bytes).unwrap_err();
        assert_eq!(e.as_corrupt().map(|c| c.offset), Some(4096 + 1022));
        for (at, byte) in [(4, 0xff), (5, 0xff), (6, 2), (4, 0x31), (4, 0)] {
            let mut bytes = block();
            bytes[at] = byte;
            assert!(restore("a record", 0, &mut bytes).is_err(), "{at} {byte}");
        }
    }
}
